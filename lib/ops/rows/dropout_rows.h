// Dropout on some rows of a larger tensor.
#pragma once

#include "headlight/dropout.h"

namespace headlight::ops {

// As dropout(), with row 0 of x in the place of row `first_row`.
void dropout_rows(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y, const Dropout& dropout,
                  const TypedView<2>& residual, std::int64_t first_row);

}  // namespace headlight::ops
