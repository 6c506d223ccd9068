// Rows of heads, as headlight/head_rows.h has them. One thread, no allocation. A row's bits depend on that row alone.
#pragma once

#include <cstdint>

#include "kernels/rows/rows.h"

namespace headlight::kernels {

// Rows of `heads` heads of head_dim numbers each, which are normalised as rms_norm does it, or not, and turned.
struct HeadRowsArguments {
  Rows<const float> x;
  void* y;  // of the kernel's numbers; x itself, or apart from it
  std::int64_t y_stride;
  Rows<const float> angles;  // of `dims` numbers, in the order of Rotation
  std::int64_t rows;
  std::int64_t heads;
  std::int64_t head_dim;
  std::int64_t dims;  // even; 0: nothing is turned
  bool interleaved;
  bool inverse;
  bool normalizes;
  const float* weight;  // [head_dim]; null: 1
  bool one_plus_weight;
  float epsilon;
};

// Of bfloat16, with the features that round to it.
struct HeadKernels {
  void (*head_rows)(const HeadRowsArguments& arguments) noexcept;
};

}  // namespace headlight::kernels
