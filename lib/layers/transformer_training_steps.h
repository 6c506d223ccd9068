// The step around each part of a layer in training, forward and backward. Post-LN: y = LN(z), z = x + dropout(F(x));
// Pre-LN: y = x + dropout(F(n)), n = LN(x). `inner` is what a step keeps beside its input: z or n.
#pragma once

#include "headlight/layers/transformer.h"
#include "layers/row_visitor.h"
#include "layers/rows.h"
#include "layers/saved_state.h"
#include "layers/segments.h"
#include "layers/transformer_steps.h"
#include "ops/check.h"
#include "ops/rows/dropout_rows.h"
#include "ops/rows/in_place.h"

namespace headlight::layers {

// to = dropout(from) + residual, rows counted through the batch; with probability 0 a copy.
inline void drop(Engine& engine, const Dropout& dropout, View<const float, 3> from, View<float, 3> to,
                 View<const float, 3> residual, const RowVisitor& rows) {
  rows.visit(
      from.extent(0),
      [&](std::int64_t first_row, View<const float, 2> x, View<float, 2> y, View<const float, 2> added) {
        ops::dropout_rows(engine, x, y, dropout, added, first_row);
      },
      from, to, residual);
}

inline void normalize_backward(Engine& engine, LayerNorm& norm, View<const float, 3> x, View<const float, 3> y_gradient,
                               View<float, 3> x_gradient, View<const float, 3> residual, const RowVisitor& rows) {
  rows.sum(
      engine, norm.gradients(), x.extent(0),
      [&](std::int64_t, View<const float, 2> in, View<const float, 2> from, View<float, 2> to,
          View<const float, 2> added) { norm.backward(engine, in, from, to, added); },
      x, y_gradient, x_gradient, residual);
}

// part(in, out, residual) computes out = F(in) + residual; `out` is not given where nobody wants y. Not inlined: a
// layer takes two or three steps, one after another, and their temporaries would all have a place in its frame.
template <class Part>
[[gnu::noinline]] void training_step(Engine& engine, Norm norm, const LayerNorm& layer_norm, View<const float, 3> x,
                                     View<float, 3> inner, View<float, 3> y, const Dropout& dropout,
                                     const RowVisitor& rows, Part part) {
  View<const float, 3> in = x;
  View<float, 3> out = inner;
  if (norm == Norm::pre) {
    normalize(engine, layer_norm, x, inner);
    in = inner;
    out = y;
  }
  if (dropout.probability > 0) {
    part(in, out, View<const float, 3>());
    if (out) drop(engine, dropout, out, out, x, rows);
  } else {
    part(in, out, x);
  }
  if (norm == Norm::post && y) normalize(engine, layer_norm, inner, y);
}

// Scratch of a backward step: gradients of the sum and of the part's output.
struct StepGradients {
  StepGradients(const View<const float, 3>& x, bool drops, std::byte* memory = nullptr)
      : place(memory), sum(place.rows(x.extent(0), x.extent(1), x.extent(2))) {
    if (drops) part = place.rows(x.extent(0), x.extent(1), x.extent(2));
  }

  Placement place;
  View<float, 3> sum;
  View<float, 3> part{};  // not there without dropout
};

// The lines of training_step(), from the last to the first. part(in, out_gradient, in_gradient, residual) writes the
// gradient of F's input + residual. x_gradient may be y_gradient.
template <class Part>
[[gnu::noinline]] void training_step_backward(Engine& engine, Norm norm, LayerNorm& layer_norm, View<const float, 3> x,
                                              View<const float, 3> inner, View<const float, 3> y_gradient,
                                              View<float, 3> x_gradient, const Dropout& dropout, const RowVisitor& rows,
                                              const StepGradients& memory, Part part) {
  View<const float, 3> sum_gradient = y_gradient;
  if (norm == Norm::post) {
    normalize_backward(engine, layer_norm, inner, y_gradient, memory.sum, {}, rows);
    sum_gradient = memory.sum;
  }
  View<const float, 3> part_gradient = sum_gradient;
  if (dropout.probability > 0) {
    drop(engine, dropout, sum_gradient, memory.part, {}, rows);
    part_gradient = memory.part;
  }
  if (norm == Norm::post) {
    part(x, part_gradient, x_gradient, sum_gradient);
  } else {
    part(inner, part_gradient, memory.sum, View<const float, 3>());
    normalize_backward(engine, layer_norm, x, memory.sum, x_gradient, sum_gradient, rows);
  }
}

// What backward() of a layer of that width reads and writes for x and y.
inline void check_gradients(std::string_view layer, const View<const float, 3>& x, std::int64_t width,
                            const View<const float, 3>& y_gradient, const View<float, 3>& x_gradient) {
  const ops::Extent x_extent = check_x(layer, x, width);
  const ops::Extent from = ops::check_view(layer, "y_gradient", y_gradient);
  const ops::Extent to = ops::check_view(layer, "x_gradient", x_gradient);
  ops::check_shape(layer, "y_gradient", y_gradient.shape, x.shape, "the shape of x");
  ops::check_shape(layer, "x_gradient", x_gradient.shape, x.shape, "the shape of x");
  ops::check_no_self_overlap(layer, "x_gradient", x_gradient.shape, x_gradient.strides);
  ops::check_disjoint(layer, "x_gradient", to, "x", x_extent);
  ops::check_same_or_disjoint(layer, "x_gradient", x_gradient, to, "y_gradient", y_gradient, from);
}

inline bool keeps_linear(const SavedState& saved) noexcept { return keeps_linear(saved.checkpoint()); }

// Where the dropouts of a layer take their numbers.
enum Place : std::uint32_t { kSelfAttention, kSelfOutput, kMemoryAttention, kMemoryOutput, kActivation, kFeedForward };

}  // namespace headlight::layers
