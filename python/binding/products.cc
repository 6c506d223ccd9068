#include "products.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "arguments.h"
#include "array.h"
#include "engine.h"
#include "headlight/gemm.h"
#include "interruptible.h"
#include "results.h"
#include "values.h"
#include "view_parts.h"

namespace headlight::python {
namespace {

constexpr const char* kName = "matmul";
constexpr const char* kPack = "pack";
constexpr std::array kWords{EngineWord{"c", "out"}};

constexpr std::array kActivations{
    Name<Activation>{"relu", Activation::relu}, Name<Activation>{"gelu", Activation::gelu},
    Name<Activation>{"gelu_tanh", Activation::gelu_tanh}, Name<Activation>{"silu", Activation::silu}};

// Products, one of each sample, of matrices as they are stored.
template <class View>
struct Matrix {
  View view;  // [batch, rows, columns], or [batch, columns, rows]
  Transpose transpose = Transpose::no;
  std::int64_t rows = 0, columns = 0;
};

// Two axes are one sample. Matrices whose columns lie close and whose rows do not are stored the other way round.
template <class View>
Matrix<View> matrix_of(View view) {
  auto& shape = view.shape;
  auto& strides = view.strides;
  Matrix<View> matrix{view, Transpose::no, shape[1], shape[2]};
  if (shape[2] > 1 && strides[2] != 1 && (strides[1] == 1 || shape[1] <= 1)) {
    std::swap(matrix.view.shape[1], matrix.view.shape[2]);
    std::swap(matrix.view.strides[1], matrix.view.strides[2]);
    matrix.transpose = Transpose::yes;
  }
  return matrix;
}

void expect_matrix(const char* argument, const Array& array) {
  if (array.rank() != 2 && array.rank() != 3) {
    refuse_value(kName, std::string(argument) + " has shape " + array.describe_shape() + ", expected 2 or 3 axes");
  }
}

View<float, 3> with_batch(const char* argument, const Array& array) {
  expect_matrix(argument, array);
  if (array.rank() == 3) return array.floats<3>();
  const View<float, 2> view = array.floats<2>();
  return {view.data, {1, view.shape[0], view.shape[1]}, {0, view.strides[0], view.strides[1]}};
}

MutableTypedView<3> typed_with_batch(const char* argument, const Array& array) {
  expect_matrix(argument, array);
  if (array.rank() == 3) return array.numbers<3>();
  const MutableTypedView<2> view = array.numbers<2>();
  return {view.type, view.data, {1, view.shape[0], view.shape[1]}, {0, view.strides[0], view.strides[1]}};
}

// The engine would name gemm() and the three axes that it is given, which here may also lie the other way round.
void expect_columns(const Array& a, std::int64_t rows_of_b) {
  if (a.extent(a.rank() - 1) == rows_of_b) return;
  refuse_value(kName, "a has shape " + a.describe_shape() + ", expected a last axis of " + std::to_string(rows_of_b) +
                          ", as many as b has rows");
}

// All samples as rows of one matrix, where they lie so.
template <class Pointer>
std::optional<AnyTypedView<2, Pointer>> flat(const AnyTypedView<3, Pointer>& view) {
  const auto [batch, rows, columns] = view.shape;
  if (batch != 1 && view.strides[0] != rows * view.strides[1]) return std::nullopt;
  return AnyTypedView<2, Pointer>{view.type, view.data, {batch * rows, columns}, {view.strides[1], view.strides[2]}};
}

// Whether one of the samples of C, which lie a stride above 0 apart, reaches into A.
bool writes_over(const MutableTypedView<3>& c, const MutableTypedView<3>& a) {
  const Reach whole(a), first(along(c, 0, 0, 1));
  const std::int64_t stride = c.strides[0] * static_cast<std::int64_t>(bytes_of(c.type));
  // The first sample that ends behind the beginning of A.
  const std::int64_t sample = whole.begin < first.end ? 0 : (whole.begin - first.end) / stride + 1;
  return sample < c.shape[0] && first.begin + sample * stride < whole.end;
}

void multiply_packed(Engine& engine, const Matrix<MutableTypedView<3>>& a, const PackedMatrix& b,
                     const MutableTypedView<3>& c, const GemmOptions& options) {
  const auto rows_of = [&](const MutableTypedView<2>& left, const MutableTypedView<2>& out) {
    with_names_of_python(kName, kWords, [&] { compute([&] { gemm(engine, left, b, out, options); }); });
  };
  if (a.transpose == Transpose::no || c.shape[0] == 1) {
    const auto left = flat(a.view), out = flat(c);
    if (left && out) return rows_of(*left, *out);
  }
  const auto matrix_of_sample = [](const MutableTypedView<3>& view, std::int64_t sample) {
    const MutableTypedView<3> one = along(view, 0, sample, 1);
    return MutableTypedView<2>{one.type, one.data, {one.shape[1], one.shape[2]}, {one.strides[1], one.strides[2]}};
  };
  const std::int64_t samples = c.shape[0];
  if (samples > 1 && c.size() > 0) {
    if (!is_separate(c)) refuse_value(kName, "out overlaps itself in memory");
    for (std::int64_t sample = 1; sample < samples; ++sample) {
      if (writes_over(along(c, 0, 0, sample), along(a.view, 0, sample, 1))) {
        refuse_value(kName, "out overlaps a in memory");
      }
    }
  }
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    rows_of(matrix_of_sample(a.view, sample), matrix_of_sample(c, sample));
  }
}

// The sizes of the result; of samples there is one where a and b have two axes each.
struct ResultShape {
  ResultShape(bool batched, std::int64_t batch, std::int64_t rows, std::int64_t columns)
      : extents{batch, rows, columns}, first(batched ? 0 : 1) {}
  [[nodiscard]] std::span<const std::int64_t> span() const { return std::span(extents).subspan(first); }
  std::array<std::int64_t, 3> extents;
  std::size_t first;
};

// The engine would tell all samples as rows of one matrix, or those of one sample.
void expect_shape(const Array& out, const std::array<std::int64_t, 3>& of_view, const ResultShape& expected) {
  if (of_view == expected.extents) return;
  refuse_value(kName, "out has shape " + out.describe_shape() + ", expected " + describe(expected.span()));
}

nb::object matmul(nb::handle a, nb::handle b, nb::handle bias, nb::handle activation, nb::handle out,
                  nb::handle engine) {
  const Array left(kName, "a", a);
  Engine& on = engine_of(kName, engine);
  GemmOptions options;
  std::optional<Array> added;
  if (!bias.is_none()) options.bias = added.emplace(kName, "bias", bias).vector();
  if (!activation.is_none()) options.activation = one_of(kName, "activation", activation, kActivations);

  const PackedMatrix* packed = nullptr;
  if (nb::try_cast(b, packed, false) && packed != nullptr) {
    const Matrix rows = matrix_of(typed_with_batch("a", left));
    expect_columns(left, packed->rows());
    options.transpose_a = rows.transpose;
    const ResultShape shape(left.rank() == 3, rows.view.shape[0], rows.rows, packed->columns());
    const Result result(kName, "out", out, left, shape.span(), left.number_type());
    const MutableTypedView<3> c = typed_with_batch("out", result.array());
    expect_shape(result.array(), c.shape, shape);
    multiply_packed(on, rows, *packed, c, options);
    return result.object();
  }
  const Array right(kName, "b", b);
  Matrix<View<const float, 3>> rows = matrix_of(View<const float, 3>(with_batch("a", left)));
  Matrix<View<const float, 3>> columns = matrix_of(View<const float, 3>(with_batch("b", right)));
  expect_columns(left, right.extent(right.rank() - 2));
  // A matrix for all samples, as in NumPy.
  const std::int64_t batch = rows.view.shape[0] == 1 ? columns.view.shape[0] : rows.view.shape[0];
  if (columns.view.shape[0] != 1 && columns.view.shape[0] != batch) {
    refuse_value(kName, "b has shape " + right.describe_shape() + ", expected a first axis of 1 or " +
                            std::to_string(batch) + ", as a has");
  }
  for (View<const float, 3>* view : {&rows.view, &columns.view}) {
    if (view->shape[0] == 1) view->shape[0] = batch, view->strides[0] = 0;
  }
  options.transpose_a = rows.transpose;
  options.transpose_b = columns.transpose;
  const ResultShape shape(left.rank() == 3 || right.rank() == 3, batch, rows.rows, columns.columns);
  const Result result(kName, "out", out, left, shape.span());
  const View<float, 3> c = with_batch("out", result.array());
  expect_shape(result.array(), c.shape, shape);
  with_names_of_python(kName, kWords, [&] { compute([&] { gemm(on, rows.view, columns.view, c, options); }); });
  return result.object();
}

PackedMatrix pack(nb::handle b, nb::handle precision, nb::handle engine) {
  const Array array(kPack, "b", b);
  Engine& on = engine_of(kPack, engine);
  const View<const float, 2> view = array.floats<2>();
  const Matrix matrix = matrix_of(
      View<const float, 3>(view.data, {1, view.shape[0], view.shape[1]}, {0, view.strides[0], view.strides[1]}));
  const View<const float, 2> stored{
      view.data, {matrix.view.shape[1], matrix.view.shape[2]}, {matrix.view.strides[1], matrix.view.strides[2]}};
  const NumberType type = precision_of(kPack, precision);
  std::optional<PackedMatrix> packed;
  with_names_of_python(kPack, {}, [&] { compute([&] { packed.emplace(on, stored, matrix.transpose, type); }); });
  return std::move(*packed);
}

constexpr const char* kPackSignature =
    "def pack(b: Array, precision: PrecisionLike = 'float32', *, engine: Engine | None = None) -> PackedMatrix";
constexpr const char* kSignature =
    "def matmul(a: A, b: Array | PackedMatrix, *, bias: Array | None = None, activation: Activation | None = None, "
    "out: Array | None = None, engine: Engine | None = None) -> A";

}  // namespace

void define_products(nb::module_& module) {
  nb::class_<PackedMatrix>(module, "PackedMatrix",
                           "What pack() makes: a matrix laid out once, for any number of products.")
      .def_prop_ro(
          "shape", [](const PackedMatrix& matrix) { return nb::make_tuple(matrix.rows(), matrix.columns()); }, "(K, N)")
      .def_prop_ro(
          "precision", [](const PackedMatrix& matrix) { return name(matrix.type()); }, kPrecisions)
      .def_prop_ro("nbytes", &PackedMatrix::bytes, "Bytes of memory that it takes.")
      .def("__repr__", [](const PackedMatrix& matrix) {
        return "<headlight.PackedMatrix [" + std::to_string(matrix.rows()) + ", " + std::to_string(matrix.columns()) +
               "] of " + std::string(name(matrix.type())) + ">";
      });
  define(module, "pack", kPackSignature, &pack,
         "b [K, N] of float32, laid out once for matmul(a, pack(b)): weights.\n\n"
         "precision: 'float32'; 'float16' takes half of the memory and rounds b; 'bfloat16', 'int8' and\n"
         "'int4' take a half, a quarter and a seventh, and round b here and a in each product; 'fp32', 'fp16' and\n"
         "'bf16' are the same three. b may be the "
         "transpose of a matrix (weight.T). Nothing of b is "
         "kept.",
         argument("b"), argument("precision") = "float32", nb::kw_only(), argument("engine") = nb::none());
  define(
      module, "matmul", kSignature, &matmul,
      "activation(a @ b + bias).\n\n"
      "a [M, K] or [B, M, K]; b [K, N], [B, K, N] or what pack() made; bias [N] -> [M, N] or [B, M, N]. float32; out\n"
      "may be bfloat16, too, and a beside a packed b of bfloat16, int8 or int4. Either matrix may be a transpose "
      "(x.T).\n"
      "activation: None, 'relu', 'gelu' (with erf), 'gelu_tanh' or 'silu'. A row's bits depend on the row alone, not "
      "on M,\n"
      "threads or the batch.",
      argument("a"), argument("b"), nb::kw_only(), argument("bias") = nb::none(), argument("activation") = nb::none(),
      argument("out") = nb::none(), argument("engine") = nb::none());
}

}  // namespace headlight::python
