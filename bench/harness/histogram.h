// Times of many calls in buckets that grow by a constant factor, so that one picture holds microseconds and seconds.
#pragma once

#include <cstdint>
#include <vector>

namespace headlight::bench {

struct Bucket {
  double seconds;  // its lower end; the upper one is a factor of 10^(1/kBucketsInADecade) above
  std::int64_t calls;
};

inline constexpr int kBucketsInADecade = 20;

// The buckets that hold calls, shortest first.
[[nodiscard]] std::vector<Bucket> histogram_of(const std::vector<double>& seconds);

}  // namespace headlight::bench
