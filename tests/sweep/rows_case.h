// What the cases of row-wise operations share: their fields, what is drawn for a call, and where its results go.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "headlight/activation.h"
#include "headlight/head_rows.h"
#include "headlight/number_type.h"
#include "support/guarded_rows.h"
#include "sweep/case.h"

namespace headlight::sweep {

class RowsCase : public Case {
 public:
  void make_valid() override {
    rows = std::max<std::int64_t>(rows, 0);
    columns = std::max<std::int64_t>(columns, 1);
    gap = std::max<std::int64_t>(gap, 0);
    groups = std::max<std::int64_t>(groups, 1);
    tables = std::clamp<std::int64_t>(tables, 1, 8);
    if (!(probability >= 0 && probability < 1)) probability = 0;
    heads = std::clamp<std::int64_t>(heads, 1, columns);
    while (columns % heads != 0) --heads;
    dims = std::clamp<std::int64_t>(dims / 2 * 2, 0, columns / heads);
  }

  // The same case with other numbers.
  [[nodiscard]] virtual std::unique_ptr<RowsCase> with_seed(std::uint64_t other) const = 0;

  std::int64_t rows = 1, columns = 1;
  std::int64_t gap = 0;     // between rows
  float size = 1;           // of the numbers
  float offset = 0;         // added to each
  bool weight = false;      // where there may be one, as all below
  bool bias = false;        // of a gradient: its sums over rows
  bool residual = false;    // or what is added to a gradient
  bool normalize = false;   // pooled rows
  float probability = 0;    // of dropout
  std::int64_t groups = 1;  // pooled sequences, or rows of a table
  std::int64_t tables = 1;  // of embeddings
  Activation activation = Activation::none;
  bool one_plus = false;   // of a weight
  std::int64_t heads = 1;  // of a row
  std::int64_t dims = 0;   // of a head, that are turned
  NormKind norm = NormKind::none;
  RotaryPairing pairing = RotaryPairing::halves;
  // Of x, of the other matrix (a residual, a gradient), of y and of a table, in a call beside that of float32.
  std::array<NumberType, 4> types = {};

 protected:
  void visit(Fields& fields) override {
    static constexpr const char* kActivations[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};
    fields.number("rows", rows, std::int64_t{1});
    fields.number("columns", columns, std::int64_t{1});
    fields.number("gap", gap, std::int64_t{0});
    fields.number("size", size, 1.0f);
    fields.number("offset", offset, 0.0f);
    fields.flag("weight", weight);
    fields.flag("bias", bias);
    fields.flag("residual", residual);
    fields.flag("normalize", normalize);
    fields.number("probability", probability, 0.0f);
    fields.number("groups", groups, std::int64_t{1});
    fields.number("tables", tables, std::int64_t{1});
    fields.choice("activation", activation, kActivations);
    static constexpr const char* kNorms[] = {"none", "layer", "rms"};
    static constexpr const char* kPairings[] = {"halves", "interleaved"};
    fields.flag("one_plus", one_plus);
    fields.number("heads", heads, std::int64_t{1});
    fields.number("dims", dims, std::int64_t{0});
    fields.choice("norm", norm, kNorms);
    fields.choice("pairing", pairing, kPairings);
    static constexpr const char* kTypes[] = {"float32", "bfloat16", "float16"};
    static constexpr const char* kMatrices[] = {"x", "other", "y", "table"};
    for (std::size_t n = 0; n < types.size(); ++n) fields.choice(kMatrices[n], types[n], kTypes);
  }
};

// The numbers of a case, the same ones with any gap.
struct RowsInput {
  RowsInput(const RowsCase& c, std::int64_t gap)
      : side(test::kBothSides[c.seed % 2]),
        x(c.rows, c.columns, gap, side),
        other(c.rows, c.columns, gap, side),
        table(c.groups, c.columns, gap, side),
        weight(1, c.columns, 0, side),
        bias(1, c.columns, 0, side),
        angles(c.rows, c.dims, gap, side) {
    test::Random random(c.seed);
    x.fill(random, c.size);
    for (test::GuardedRows* each : {&other, &table, &weight, &bias}) each->fill(random);
    for (std::int64_t n = 0; n < c.rows; ++n) {
      for (std::int64_t e = 0; e < c.columns; ++e) x.view()(n, e) += c.offset;
    }
    for (std::int64_t n = 0; n < c.rows; ++n) {
      ids.push_back(random.integer(0, c.groups - 1));
      labels.push_back(random.once_in(5) ? -100 : random.integer(0, c.columns - 1));
    }
    for (std::int64_t s = 0; s <= c.groups; ++s) offsets.push_back(random.integer(0, c.rows));
    angles.fill(random);
    offsets.front() = 0;
    offsets.back() = c.rows;
    std::sort(offsets.begin(), offsets.end());
  }

  test::Against side;
  test::GuardedRows x, other, table, weight, bias, angles;
  std::vector<std::int64_t> ids, labels, offsets;
};

// What the twins read.
template <class Scalar>
struct RowsNumbers {
  explicit RowsNumbers(const RowsInput& in)
      : x(in.x.to<Scalar>()),
        other(in.other.to<Scalar>()),
        table(in.table.to<Scalar>()),
        weight(in.weight.to<Scalar>()),
        bias(in.bias.to<Scalar>()),
        angles(in.angles.to<Scalar>()),
        given(in) {}
  [[nodiscard]] View<const Scalar, 2> other_if(bool is) const { return is ? other.view() : View<const Scalar, 2>(); }
  [[nodiscard]] View<const Scalar, 1> weight_if(bool is) const { return vector(weight, is); }
  [[nodiscard]] View<const Scalar, 1> bias_if(bool is) const { return vector(bias, is); }

  Tensor<Scalar, 2> x, other, table, weight, bias, angles;
  const RowsInput& given;

 private:
  static View<const Scalar, 1> vector(const Tensor<Scalar, 2>& row, bool is) {
    return is ? View<const Scalar, 1>(row.data(), {row.shape()[1]}) : View<const Scalar, 1>();
  }
};

// And what they write: sums begin at the numbers of `bias`.
template <class Scalar>
struct RowsResults {
  RowsResults(const RowsInput& in, std::int64_t rows)
      : y({rows, in.x.view().extent(1)}), of_weight(in.bias.to<Scalar>()), of_bias(in.bias.to<Scalar>()) {}
  [[nodiscard]] View<Scalar, 1> weight_sums() { return {of_weight.data(), {of_weight.shape()[1]}}; }
  [[nodiscard]] View<Scalar, 1> bias_sums() { return {of_bias.data(), {of_bias.shape()[1]}}; }

  Tensor<Scalar, 2> y, of_weight, of_bias;
  double loss = 0;
};

// What the engine writes.
struct RowsOutput {
  View<float, 2> y;
  std::span<float> of_weight, of_bias;
  double loss = 0;
};

}  // namespace headlight::sweep
