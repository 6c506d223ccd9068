// A B whose columns come from somewhere a few at a time: the rows of a weight that is stored in another form, which
// nobody widens as a whole.
#pragma once

#include <cstdint>

namespace headlight::ops {

struct RowSource {
  // Of the weight [N, K].
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  // Rows first … first + count − 1 as floats, one behind another; asked by several threads at a time. Where
  // scales_of_row is not 0 they are integers, and `scales` takes so many scales of each row, one behind another: those
  // that panels of int8 have for it, one, or of int4, one for each group of kInt4Group numbers.
  void (*read)(const void* context, std::int64_t first, std::int64_t count, float* to, float* scales) noexcept;
  const void* context = nullptr;
  std::int64_t scales_of_row = 0;
};

}  // namespace headlight::ops
