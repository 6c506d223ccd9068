// The one kind of overlap that row-wise operations allow.
#pragma once

#include "ops/check.h"

namespace headlight::ops {

// An output may be the very same view as an input (element by element) or lie apart from it, nothing between.
template <class Input, class Output, int Rank>
void check_same_or_disjoint(std::string_view operation, std::string_view output, const View<Output, Rank>& y,
                            Extent y_extent, std::string_view input, const View<Input, Rank>& x, Extent x_extent) {
  const bool same = static_cast<const void*>(x.data) == static_cast<const void*>(y.data) && x.strides == y.strides;
  if (!same) check_disjoint(operation, output, y_extent, input, x_extent);
}

}  // namespace headlight::ops
