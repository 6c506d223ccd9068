// What attention does to queries and keys before it compares them: each head normalised, then turned. (Su et al. 2021;
// normalised heads: Dehghani et al. 2023, Qwen3, Gemma 3)
//
// Tensors [N, H, D] are rows of H heads of D numbers: the heads of a row lie one behind the other, and rows lie at any
// distance, so that they may be columns of one product. Types are as with all operations on rows (normalization.h).
#pragma once

#include <span>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/norm_kind.h"
#include "headlight/rotary.h"
#include "headlight/typed_view.h"
#include "headlight/view.h"

namespace headlight {

// What is done to each head: a norm, and then a rotation.
struct HeadRowsOptions {
  // Over the D numbers of each head, as layer_norm() and rms_norm() do it over a row, with one weight and bias [D] for
  // all heads (empty: 1 and 0; a bias is of NormKind::layer alone); w = weight or, of NormKind::rms alone, 1 + weight.
  NormKind norm = NormKind::none;
  std::span<const float> weight{};
  std::span<const float> bias{};
  bool one_plus_weight = false;
  float epsilon = 1e-6f;
  // Behind the norm; nothing is turned where it is not given.
  Rotation rotation{};
};

// y = turned(norm(x)), both [N, H, D]; y may be x. Read and written once.
HEADLIGHT_API void head_rows(Engine& engine, const TypedView<3>& x, const MutableTypedView<3>& y,
                             const HeadRowsOptions& options);

// Where the gradients of head_rows() go; each is left out where it is not given.
struct HeadRowsGradients {
  // [N, H, D], written; may be y_gradient or x.
  MutableTypedView<3> x{};
  // [D] each, added to: sums over all heads of all rows, as in bias_backward(); of a norm that has them.
  std::span<float> weight{};
  std::span<float> bias{};
};
// y_gradient turned back, then the gradient of the norm (layer_norm_backward(), rms_norm_backward()). x [N, H, D] is
// that of the forward pass; without a norm it is not read and may be left out.
HEADLIGHT_API void head_rows_backward(Engine& engine, const TypedView<3>& x, const TypedView<3>& y_gradient,
                                      const HeadRowsGradients& gradients, const HeadRowsOptions& options);

}  // namespace headlight
