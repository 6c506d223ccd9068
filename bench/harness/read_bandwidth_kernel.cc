// Compiled once per instruction set: the fastest that memory can be read.
#include "harness/read_bandwidth_kernel.h"

#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

constexpr int kSums = 8;  // independent, so that the latency of an addition hides no load
constexpr std::int64_t kStep = kSums * kLanes;
constexpr std::int64_t kLine = 16;  // floats in a cache line of 64 bytes

template <int kAhead>
HEADLIGHT_INLINE void read_step(const float* data, Vec (&sums)[kSums]) {
  if constexpr (kAhead > 0) {
#pragma GCC unroll 8
    for (std::int64_t at = 0; at < kStep; at += kLine) __builtin_prefetch(data + at + kAhead);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kSums; ++i) sums[i] = add(sums[i], load(data + i * kLanes));
}

HEADLIGHT_INLINE void finish(Vec (&sums)[kSums], const float* rest, std::int64_t count, float* result) {
  Vec total = zero();
#pragma GCC unroll 8
  for (int i = 0; i < kSums; ++i) total = add(total, sums[i]);
  for (; count > 0; count -= kLanes, rest += kLanes)
    total = add(total, load_partial(rest, count < kLanes ? static_cast<int>(count) : kLanes));
  *result = sum_of_lanes(total);
}

template <int kAhead>
void read_one_stream(const float* data, std::int64_t count, float* result) noexcept {
  Vec sums[kSums];
#pragma GCC unroll 8
  for (int i = 0; i < kSums; ++i) sums[i] = zero();
  for (; count >= kStep; count -= kStep, data += kStep) read_step<kAhead>(data, sums);
  finish(sums, data, count, result);
}

void read_four_streams(const float* data, std::int64_t count, float* result) noexcept {
  Vec sums[kSums];
#pragma GCC unroll 8
  for (int i = 0; i < kSums; ++i) sums[i] = zero();
  const std::int64_t quarter = count / 4 / kStep * kStep;
  for (std::int64_t at = 0; at < quarter; at += kStep) {
#pragma GCC unroll 4
    for (int stream = 0; stream < 4; ++stream) read_step<0>(data + stream * quarter + at, sums);
  }
  finish(sums, data + 4 * quarter, count - 4 * quarter, result);
}

}  // namespace

extern const ReadKernel read_kernel;
const ReadKernel read_kernel = {{read_one_stream<0>, read_one_stream<512>, read_four_streams}};

}  // namespace headlight::HEADLIGHT_TARGET
