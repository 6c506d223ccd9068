// Where the gradients of a layer's inputs may lie: they are written one after another, while inputs and other gradients
// are still read.
#pragma once

#include <string_view>

#include "ops/check.h"
#include "ops/rows/in_place.h"

namespace headlight::layers {

// A gradient that is written, its shape already checked; not given: nothing to check.
template <int Rank>
class GradientPlace {
 public:
  GradientPlace(std::string_view layer, std::string_view name, const View<float, Rank>& gradient)
      : layer_(layer), name_(name), gradient_(gradient) {
    if (!gradient_) return;
    extent_ = ops::check_view(layer, name, gradient);
    ops::check_no_self_overlap(layer, name, gradient.shape, gradient.strides);
  }

  template <class T, int OtherRank>
  const GradientPlace& apart_from(std::string_view name, const View<T, OtherRank>& other) const {
    if (gradient_ && other) {
      ops::check_disjoint(layer_, name_, extent_, name, ops::check_view(layer_, name, other));
    }
    return *this;
  }
  const GradientPlace& same_as_or_apart_from(std::string_view name, const View<const float, Rank>& other) const {
    if (gradient_ && other) {
      ops::check_same_or_disjoint(layer_, name_, gradient_, extent_, name, other, ops::check_view(layer_, name, other));
    }
    return *this;
  }

 private:
  std::string_view layer_;
  std::string_view name_;
  View<float, Rank> gradient_;
  ops::Extent extent_;
};

}  // namespace headlight::layers
