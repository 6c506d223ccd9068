// The yardsticks themselves: the multiply-add peak, of float32, bfloat16 and int8, and the read bandwidth of each level
// of memory.
#include "harness/fma_peak.h"
#include "harness/read_bandwidth.h"
#include "harness/statistics.h"
#include "harness/suite.h"

namespace headlight::bench {
namespace {

Work peak(const CaseContext& context, NumberType type) {
  FmaMeter meter(context.engine, type);
  std::vector<double> bursts;
  for (int burst = 0; burst < (context.options.smoke ? 2 : 300); ++burst) bursts.push_back(meter.burst());
  Work work;
  work.facts = {{"gflops_best", greatest(bursts)}, {"gflops_median", median(bursts)}};
  return work;
}

Work read(const CaseContext& context, const std::string& level) {
  Work work;
  const std::vector<double> bursts =
      read_bandwidth(context.engine.isa(), context.engine.threads(), level, context.options.smoke ? 1 : 20);
  if (!bursts.empty()) work.facts = {{"gbps_best", greatest(bursts)}, {"gbps_median", median(bursts)}};
  return work;
}

std::vector<Case> cases() {
  const auto peak_of = [](NumberType type) {
    return [type](const CaseContext& context) { return peak(context, type); };
  };
  std::vector<Case> all = {{"fma_peak", peak_of(NumberType::float32), true, true},
                           {"bfloat16_peak", peak_of(NumberType::bfloat16), true, true},
                           {"int8_peak", peak_of(NumberType::int8), true, true}};
  for (const char* level : {"L1", "L2", "L3", "memory"}) {
    all.push_back({std::string("read/") + level, [level](const CaseContext& context) { return read(context, level); },
                   true, std::string(level) == "L1"});
  }
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  return headlight::bench::run_suite("machine", headlight::bench::cases(), argc, argv);
}
