#include "harness/histogram.h"

#include <cmath>
#include <map>

namespace headlight::bench {

std::vector<Bucket> histogram_of(const std::vector<double>& seconds) {
  std::map<int, std::int64_t> counts;
  // A clock that ticks in nanoseconds may call a short call 0 ns long.
  for (const double each : seconds)
    ++counts[static_cast<int>(std::floor(std::log10(std::fmax(each, 1e-9)) * kBucketsInADecade))];
  std::vector<Bucket> buckets;
  for (const auto& [index, calls] : counts)
    buckets.push_back({std::pow(10.0, static_cast<double>(index) / kBucketsInADecade), calls});
  return buckets;
}

}  // namespace headlight::bench
