// Row-wise operations over memory of 16 bits a number: half the bytes to read and to write.
//
// Each tensor is of a type of its own, float32, bfloat16 or float16. Numbers are storage: a few rows at a time are
// widened, which is exact, all arithmetic is float32's, and what is written is rounded once, to the nearest number of
// its type, ties to even. So results have the bits of the same operation over the widened tensors, rounded; sums over
// rows and weights stay float32 and have its bits. An output may be an input where both are the same view of the same
// type, as with the operation in float32, whose shapes, meanings and errors are these, too.
//
// Rows lie widened in scratch memory of the engine, which stays in the first-level cache: at most four buffers a
// thread, of 9 KiB or one row each. A repeated call allocates nothing, nor does the first after reserve_typed_rows().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headlight/activation.h"
#include "headlight/dropout.h"
#include "headlight/normalization.h"
#include "headlight/typed_view.h"

namespace headlight {

// What an operation on rows reads and writes.
struct RowMatrices {
  TypedView<2> x;         // [N, E]
  MutableTypedView<2> y;  // [N, E]
};
// What goes back through an operation on rows.
struct RowGradients {
  TypedView<2> from;               // [N, E]: the operation's x, or softmax's y
  TypedView<2> y_gradient;         // [N, E]
  MutableTypedView<2> x_gradient;  // [N, E]
};

// softmax(), softmax_backward()
HEADLIGHT_API void softmax(Engine& engine, const RowMatrices& rows);
HEADLIGHT_API void softmax_backward(Engine& engine, const RowGradients& rows);

// activate(), activate_backward()
HEADLIGHT_API void activate(Engine& engine, Activation activation, const RowMatrices& rows);
HEADLIGHT_API void activate_backward(Engine& engine, Activation activation, const RowGradients& rows);

// LayerNormOptions with a residual of any type.
struct TypedLayerNormOptions {
  std::span<const float> weight{};  // [E], or empty: ones
  std::span<const float> bias{};    // [E], or empty: zeros
  float epsilon = 1e-5f;            // added to the variance
  TypedView<2> residual{};          // [N, E], added to x first, or not given
};
// layer_norm()
HEADLIGHT_API void layer_norm(Engine& engine, const RowMatrices& rows, const TypedLayerNormOptions& options = {});
// LayerNormGradients without that of x, which is rows.x_gradient, and may be left out.
struct TypedLayerNormGradients {
  TypedView<2> residual{};    // [N, E], added to x_gradient, or not given
  std::span<float> weight{};  // [E], added to, or empty
  std::span<float> bias{};    // [E], added to, or empty
};
// layer_norm_backward()
HEADLIGHT_API void layer_norm_backward(Engine& engine, const RowGradients& rows,
                                       const TypedLayerNormGradients& gradients,
                                       const TypedLayerNormOptions& options = {});

// dropout(): with a probability of 0, y = x + residual.
HEADLIGHT_API void dropout(Engine& engine, const RowMatrices& rows, const Dropout& dropout,
                           const TypedView<2>& residual = {});

// embed(), each table and out of a type of its own; and embed_backward(), into tables of float32.
struct TypedEmbedding {
  TypedView<2> table{};                 // [V, E]
  std::span<const std::int64_t> ids{};  // [N]
};
// What embed() adds up, and where.
struct TypedEmbeddings {
  std::span<const TypedEmbedding> tables;  // at least one
  MutableTypedView<2> out;                 // [N, E]
};
HEADLIGHT_API void embed(Engine& engine, const TypedEmbeddings& embeddings);
// What embed_backward() reads, and where it adds.
struct TypedEmbeddingGradients {
  TypedView<2> out_gradient;                  // [N, E]
  std::span<const EmbeddingGradient> tables;  // each [V, E]
};
HEADLIGHT_API void embed_backward(Engine& engine, const TypedEmbeddingGradients& gradients);

// bias_backward()
struct TypedRowSums {
  TypedView<2> c_gradient;         // [M, N]
  std::span<float> bias_gradient;  // [N], added to
};
HEADLIGHT_API void bias_backward(Engine& engine, const TypedRowSums& sums);

// What any of these takes from the engine for rows of so many numbers, beside what sums over rows take in float32; and
// taking it now. reserve_typed_rows() throws OutOfMemory.
[[nodiscard]] HEADLIGHT_API std::size_t typed_rows_bytes(const Engine& engine, std::int64_t columns) noexcept;
HEADLIGHT_API void reserve_typed_rows(Engine& engine, std::int64_t columns);

// The same with each matrix by itself, as soon as one of them is not float32. Templates without parameters of their
// own: where all are float32 two functions fit equally well, and then the one that is no template is called.
template <int = 0>
void softmax(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y) {
  softmax(engine, RowMatrices{x, y});
}
template <int = 0>
void activate(Engine& engine, Activation activation, const TypedView<2>& x, const MutableTypedView<2>& y) {
  activate(engine, activation, RowMatrices{x, y});
}
template <int = 0>
void layer_norm(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y,
                const TypedLayerNormOptions& options = {}) {
  layer_norm(engine, RowMatrices{x, y}, options);
}
template <int = 0>
void dropout(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y, const Dropout& drop,
             const TypedView<2>& residual = {}) {
  dropout(engine, RowMatrices{x, y}, drop, residual);
}

}  // namespace headlight
