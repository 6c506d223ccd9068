#include "harness/read_bandwidth.h"

#include <unistd.h>

#include <algorithm>

#include "harness/clock.h"
#include "harness/read_bandwidth_kernel.h"
#include "headlight/system.h"
#include "headlight/tensor.h"
#include "runtime/isa_list.h"

#define HEADLIGHT_DECLARE(isa)         \
  namespace headlight::isa {           \
  extern const ReadKernel read_kernel; \
  }
HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_DECLARE)
#undef HEADLIGHT_DECLARE

namespace headlight::bench {
namespace {

const ReadKernel& kernel_of(Isa isa) {
  switch (isa) {
#define HEADLIGHT_CASE(name) \
  case Isa::name:            \
    return headlight::name::read_kernel;
    HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_CASE)
#undef HEADLIGHT_CASE
    default:
      break;
  }
  __builtin_unreachable();
}

using Memory = std::vector<std::span<const float>>;

// Part `thread` of `threads`: equal numbers of floats, across the ends of spans.
Memory part_of(const Memory& memory, std::size_t total, std::size_t thread, std::size_t threads) {
  std::size_t begin = total * thread / threads;
  std::size_t count = total * (thread + 1) / threads - begin;
  Memory part;
  for (const std::span<const float>& span : memory) {
    if (begin >= span.size()) {
      begin -= span.size();
      continue;
    }
    const std::size_t here = std::min(count, span.size() - begin);
    if (here > 0) part.push_back(span.subspan(begin, here));
    count -= here;
    begin = 0;
  }
  return part;
}

}  // namespace

ReadMeter::ReadMeter(Isa isa, int threads, Memory memory) : isa_(isa), crew_(threads) {
  std::size_t total = 0;
  for (const std::span<const float>& span : memory) total += span.size();
  bytes_ = static_cast<std::int64_t>(total * sizeof(float));
  for (int thread = 0; thread < threads; ++thread)
    parts_.push_back(part_of(memory, total, static_cast<std::size_t>(thread), static_cast<std::size_t>(threads)));
  const double once = pass(0, 1);
  const double seconds = static_cast<double>(bytes_) / (once * 1e9);
  repeats_ = static_cast<int>(std::clamp(100e-6 / seconds, 1.0, 10'000.0));
  double best = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (int way = 0; way < kReadWays; ++way) {
      const double gbps = pass(way, repeats_);
      if (gbps > best) {
        best = gbps;
        way_ = way;
      }
    }
  }
}

double ReadMeter::burst() { return pass(way_, repeats_); }

double ReadMeter::pass(int way, int repeats) {
  const ReadKernel::Run read = kernel_of(isa_).ways[way];
  const auto read_part = [&](int thread) {
    float result = 0;
    for (const std::span<const float>& span : parts_[static_cast<std::size_t>(thread)]) {
      read(span.data(), static_cast<std::int64_t>(span.size()), &result);
      volatile float sink = result;
      static_cast<void>(sink);
    }
  };
  std::vector<double> seconds(parts_.size());
  crew_.run([&](int thread) {
    // What fits a core's own cache may lie in another's from the work before.
    if (repeats > 1) read_part(thread);
    const auto start = Clock::now();
    for (int repeat = 0; repeat < repeats; ++repeat) read_part(thread);
    seconds[static_cast<std::size_t>(thread)] = seconds_since(start);
  });
  return static_cast<double>(bytes_) * repeats / *std::max_element(seconds.begin(), seconds.end()) * 1e-9;
}

std::vector<double> read_bandwidth(Isa isa, int threads, std::string_view level, int bursts) {
  const SystemInfo system = system_info();
  const std::int64_t quarter_of_memory = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE) / 4;
  std::int64_t bytes = 0;
  if (level == "L1") bytes = threads * system.l1_data_bytes / 2;
  if (level == "L2") bytes = threads * system.l2_bytes / 2;
  if (level == "L3") bytes = std::min<std::int64_t>(system.l3_bytes / 2, 16 * threads * system.l2_bytes);
  if (level == "memory") bytes = std::min(std::max<std::int64_t>(256 << 20, 2 * system.l3_bytes), quarter_of_memory);
  std::vector<double> gbps;
  if (bytes == 0) return gbps;
  const Tensor<float, 1> memory({bytes / static_cast<std::int64_t>(sizeof(float))});
  ReadMeter meter(isa, threads, {{memory.data(), static_cast<std::size_t>(memory.size())}});
  for (int burst = 0; burst < bursts; ++burst) gbps.push_back(meter.burst());
  return gbps;
}

}  // namespace headlight::bench
