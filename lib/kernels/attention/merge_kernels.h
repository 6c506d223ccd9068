// How heads are put together before the last product, weighted or gated; and attention over some keys each. One thread,
// no allocation.
//
// Every row's bits depend on that row alone. y may be x itself with the same row distance.
#pragma once

#include <cstdint>

#include "kernels/rows/rows.h"

namespace headlight::kernels {

// x holds heads side by side, [rows, heads · head_dim].
struct MergeArguments {
  Rows<const float> x;
  Rows<const float> by;  // what weighs or gates; with a stride of 0 the same for every row
  Rows<float> y;
  std::int64_t rows;
  std::int64_t heads;
  std::int64_t head_dim;
};

// The way back: from the gradient of y those of x and of `by`. x_gradient may be x itself with the same row distance.
struct MergeBackwardArguments {
  Rows<const float> x;
  Rows<const float> by;  // 0: the same for every row
  Rows<const float> y_gradient;
  Rows<float> x_gradient;
  Rows<float> by_gradient;  // a row for each row of x; weigh_heads_backward alone takes null: not wanted
  std::int64_t rows;
  std::int64_t heads;
  std::int64_t head_dim;
};

// One row of attention over the keys of all parts, from those over the keys of each.
struct MergePartsArguments {
  const float* const* parts;  // [count], each a row of `columns`
  const float* log_sum_exps;  // [count]
  float* weights;             // scratch: [count]
  std::int64_t count;
  std::int64_t columns;
  float* out;  // may be one of the parts
};

struct MergeKernels {
  // y[d] = Σ_h by[h] · x[h · D + d], h ascending; by [rows, heads], y [rows, head_dim].
  void (*weigh_heads)(const MergeArguments& arguments) noexcept;
  // y[h · D + d] = x[h · D + d] · σ(by[h]); by [rows, heads], y as x.
  void (*gate_heads)(const MergeArguments& arguments) noexcept;
  // y = x ∘ σ(by); by as x.
  void (*gate_elements)(const MergeArguments& arguments) noexcept;
  // With g = y_gradient and s = σ(by):
  // x_gradient[h · D + d] = by[h] · g[d], by_gradient[h] = Σ_d x[h · D + d] · g[d].
  void (*weigh_heads_backward)(const MergeBackwardArguments& arguments) noexcept;
  // x_gradient[h · D + d] = s[h] · g[h · D + d], by_gradient[h] = σ′(by[h]) Σ_d x[h · D + d] · g[h · D + d].
  void (*gate_heads_backward)(const MergeBackwardArguments& arguments) noexcept;
  // x_gradient = s ∘ g, by_gradient = σ′(by) ∘ x ∘ g.
  void (*gate_elements_backward)(const MergeBackwardArguments& arguments) noexcept;
  // log_sum_exp = log Σ_p exp(log_sum_exps[p]), which it returns; out = Σ_p exp(log_sum_exps[p] − log_sum_exp) ·
  // parts[p], p ascending. A part whose log-sum-exp is −inf is not read.
  float (*merge_parts)(const MergePartsArguments& arguments) noexcept;
};

}  // namespace headlight::kernels
