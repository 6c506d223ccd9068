// The promise on accuracy, for cases of any size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/compare.h"

namespace headlight::sweep {

// at_most_twice_the_plain_error() measures by the worst row of the plain float32 computation. In a case of a row or two
// that is small now and then by luck, and says nothing of what float32 costs. So before such a case fails, the same
// case is drawn with other numbers, and the worst row of all draws counts.
class PlainErrors {
 public:
  // of_seed(seed): the worst row errors of each result of the plain computation, with the numbers of that seed.
  explicit PlainErrors(std::function<std::vector<double>(std::uint64_t)> of_seed, std::uint64_t seed)
      : of_seed_(std::move(of_seed)), seed_(seed) {}

  // `given`: what the arguments themselves are off by, and the plain computation does without.
  template <class Actual, class Plain, class Truth, class Yardstick>
  [[nodiscard]] testing::AssertionResult hold(std::size_t result, const Actual& actual, const Plain& plain,
                                              const Truth& truth, const Yardstick& yardstick, double given = 0) {
    const auto once = test::at_most_twice_the_plain_error(actual, plain, truth, yardstick);
    if (once) return once;
    const double error = worst(result);
    return test::within(actual, truth, 2 * error + 8 * test::kUnitRoundoff + given, yardstick)
           << " (plain float32, worst of several draws: " << error << ")";
  }

 private:
  // A multiple of 3 apart, for scores that are asked for at a stage that the seed names.
  static constexpr std::uint64_t kDraws = 32, kStep = 3;

  [[nodiscard]] double worst(std::size_t result) {
    for (; draws_ < kDraws; ++draws_) {
      const std::vector<double> errors = of_seed_(seed_ + draws_ * kStep);
      worst_.resize(errors.size());
      for (std::size_t each = 0; each < errors.size(); ++each) worst_[each] = std::max(worst_[each], errors[each]);
    }
    return worst_[result];
  }

  std::function<std::vector<double>(std::uint64_t)> of_seed_;
  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  std::vector<double> worst_;
};

}  // namespace headlight::sweep
