#include "harness/eviction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "headlight/system.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace headlight::bench {
namespace {

constexpr std::size_t kLine = 64 / sizeof(float);

#if defined(__x86_64__)

bool can_flush_lines() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
}

__attribute__((target("clflushopt"))) void flush_lines(std::span<const float> memory) {
  for (std::size_t at = 0; at < memory.size(); at += kLine) _mm_clflushopt(const_cast<float*>(&memory[at]));
  // The last line begins less than a step before the end wherever the memory does not begin with a line.
  if (!memory.empty()) _mm_clflushopt(const_cast<float*>(&memory.back()));
}

void wait_for_flushes() { _mm_mfence(); }

#else

bool can_flush_lines() { return false; }
void flush_lines(std::span<const float>) {}
void wait_for_flushes() {}

#endif

}  // namespace

Eviction::Eviction(std::vector<std::span<const float>> operands) : operands_(std::move(operands)) {
  if (!operands_.empty() && can_flush_lines()) return;
  const std::int64_t bytes = std::clamp<std::int64_t>(2 * system_info().l3_bytes, 64 << 20, 256 << 20);
  sweep_ = Tensor<float, 1>({bytes / static_cast<std::int64_t>(sizeof(float))});
}

void Eviction::operator()() {
  for (std::int64_t n = 0; n < sweep_.size(); n += static_cast<std::int64_t>(kLine)) sweep_.data()[n] += 1;
  if (!by_line()) return;
  for (const std::span<const float>& memory : operands_) flush_lines(memory);
  wait_for_flushes();
}

}  // namespace headlight::bench
