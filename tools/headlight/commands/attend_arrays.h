// What the parts of headlight attend have in common: lists of numbers that may be given, and the float64 arrays between
// which and those of the command line the reference computes.
#pragma once

#include <algorithm>
#include <string>

#include "headlight/models/errors.h"
#include "headlight/number_type.h"
#include "headlight/tensor.h"
#include "reference/number_types.h"
#include "tools/headlight/support/arrays.h"

namespace headlight::program {

// The array of one axis in `path`, if one is named. One without entries would pass for one that is not given; so it may
// have none only when `least` is 0.
template <class T>
[[nodiscard]] models::Array<T> read_numbers(const std::string& path, const std::string& meaning,
                                            std::int64_t least = 1) {
  if (path.empty()) return {};
  models::Array<T> numbers = read_array<T>(path, 1, meaning);
  if (numbers.values.empty() && least > 0) throw models::FileError(path, "has shape [0], expected " + meaning);
  return numbers;
}

[[nodiscard]] inline Tensor<double, 4> widen(const View<const float, 4>& narrow) {
  Tensor<double, 4> wide(narrow.shape);
  std::copy_n(narrow.data, wide.size(), wide.data());
  return wide;
}

// A result in float64, rounded into its place at the end; of none asked for, no view.
template <int Rank>
class WideResult {
 public:
  explicit WideResult(Tensor<float, Rank>& narrow) : narrow_(narrow) {
    if (narrow.data() != nullptr) wide_ = Tensor<double, Rank>(narrow.shape());
  }
  [[nodiscard]] View<double, Rank> view() { return wide_.data() == nullptr ? View<double, Rank>() : wide_.view(); }
  // Once, to numbers of that type.
  void round(NumberType type = NumberType::float32) {
    std::transform(wide_.begin(), wide_.end(), narrow_.begin(), [type](double x) {
      if (type == NumberType::bfloat16) x = reference::rounded_to_bfloat16(x);
      if (type == NumberType::float16) x = reference::rounded_to_float16(x);
      return static_cast<float>(x);
    });
  }

 private:
  Tensor<float, Rank>& narrow_;
  Tensor<double, Rank> wide_;
};

}  // namespace headlight::program
