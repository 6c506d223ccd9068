// The row-wise operations over matrices of 16 bits a number, for those that take such.
#pragma once

#include "headlight/gemm.h"
#include "headlight/normalization.h"
#include "support/guarded_matrix.h"
#include "sweep/rows_operations.h"

namespace headlight::sweep {

// The matrices of a case, rounded to its types; the rest is as in RowsInput.
struct TypedRowsInput {
  TypedRowsInput(const RowsCase& c, const RowsInput& floats, test::Random random = test::Random(0))
      : x(c.types[0], c.rows, c.columns, c.gap, floats.side, random),
        other(c.types[1], c.rows, c.columns, c.gap, floats.side, random),
        table(c.types[3], c.groups, c.columns, c.gap, floats.side, random),
        given(floats) {
    take(floats.x, x);
    take(floats.other, other);
    take(floats.table, table);
  }

  test::GuardedMatrix x, other, table;
  const RowsInput& given;

 private:
  static void take(const test::GuardedRows& from, test::GuardedMatrix& to) {
    const View<float, 2> numbers = from.view();
    for (std::int64_t n = 0; n < numbers.extent(0); ++n) {
      for (std::int64_t e = 0; e < numbers.extent(1); ++e) to.set(n, e, numbers(n, e));
    }
  }
};

// What these give in memory: sums stay float32.
struct TypedRowsOutput {
  MutableTypedView<2> y;
  std::span<float> of_weight, of_bias;
};

inline TypedView<2> rows_if(const test::GuardedMatrix& rows, bool is_given) {
  return is_given ? rows.const_view() : TypedView<2>();
}

inline void call_typed(Softmax, Engine& engine, const RowsCase&, const TypedRowsInput& in, const TypedRowsOutput& out) {
  softmax(engine, in.x.const_view(), out.y);
}
inline void call_typed(SoftmaxBackward, Engine& engine, const RowsCase&, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  softmax_backward(engine, in.x.const_view(), in.other.const_view(), out.y);
}
inline void call_typed(LayerNorm, Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  layer_norm(engine, in.x.const_view(), out.y,
             {.weight = row_of(in.given.weight, c.weight),
              .bias = row_of(in.given.bias, c.bias),
              .epsilon = LayerNorm::kEpsilon,
              .residual = rows_if(in.other, c.residual)});
}
inline void call_typed(LayerNormBackward, Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  LayerNormGradients gradients{.x = out.y, .residual = rows_if(in.other, c.residual)};
  if (c.bias) {
    gradients.weight = out.of_weight;
    gradients.bias = out.of_bias;
  }
  layer_norm_backward(engine, in.x.const_view(), in.other.const_view(), gradients,
                      {.weight = row_of(in.given.weight, c.weight), .epsilon = LayerNorm::kEpsilon});
}
inline void call_typed(Activate, Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  activate(engine, c.activation, in.x.const_view(), out.y);
}
inline void call_typed(ActivateBackward, Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  activate_backward(engine, c.activation, in.x.const_view(), in.other.const_view(), out.y);
}
inline void call_typed(DropoutRows, Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  dropout(engine, in.x.const_view(), out.y, DropoutRows::options(c), rows_if(in.other, c.residual));
}
inline void call_typed(Embed, Engine& engine, const RowsCase& c, const TypedRowsInput& in, const TypedRowsOutput& out) {
  std::vector<std::vector<std::int64_t>> ids;
  std::vector<Embedding> tables;
  for (std::int64_t t = 0; t < c.tables; ++t) ids.push_back(Embed::ids(c, in.given, t));
  for (const auto& each : ids) tables.push_back({in.table.const_view(), each});
  embed(engine, tables, out.y);
}
// Of tables of float32, which stay so.
inline void call_typed(BiasBackward, Engine& engine, const RowsCase&, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  bias_backward(engine, in.x.const_view(), out.of_bias);
}
inline void call_typed(EmbedBackward, Engine& engine, const RowsCase&, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  const View<float, 2> table(static_cast<float*>(out.y.data), out.y.shape, out.y.strides);
  for (std::int64_t n = 0; n < table.extent(0); ++n) {
    for (std::int64_t e = 0; e < table.extent(1); ++e) table(n, e) = in.given.table.view()(n, e);
  }
  embed_backward(engine, in.x.const_view(), std::array{EmbeddingGradient{table, in.given.ids}});
}

template <class Operation>
concept TakesAnyTypes = requires(Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                                 const TypedRowsOutput& out) {
  call_typed(Operation(), engine, c, in, out);
};

}  // namespace headlight::sweep
