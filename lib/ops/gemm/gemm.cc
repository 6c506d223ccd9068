#include "headlight/gemm.h"

#include <algorithm>
#include <array>
#include <string>

#include "headlight/out_of_memory.h"
#include "ops/check.h"
#include "ops/gemm/internal.h"
#include "ops/typed_check.h"
#include "runtime/parallel.h"

namespace headlight {
namespace {

using ops::GemmBatch;

// One operand with its batch axis in front; without one, a batch of one.
template <class T>
View<T, 3> batched(View<T, 2> view) {
  return {view.data, {1, view.extent(0), view.extent(1)}, {0, view.stride(0), view.stride(1)}};
}
template <class Pointer>
AnyTypedView<3, Pointer> batched(const AnyTypedView<2, Pointer>& view) {
  return {view.type, view.data, {1, view.extent(0), view.extent(1)}, {0, view.stride(0), view.stride(1)}};
}

// Speaks of shapes as the caller wrote them: without the batch axis in a single product.
struct Names {
  bool has_batch;

  [[nodiscard]] std::span<const std::int64_t> named(const std::array<std::int64_t, 3>& axes) const {
    return std::span(axes).subspan(has_batch ? 0 : 1);
  }
  template <class T>
  ops::Extent check_view(std::string_view argument, const View<T, 3>& view) const {
    return ops::check_view("gemm", argument, view.data, sizeof(T), named(view.shape), named(view.strides));
  }
  template <class Pointer>
  ops::Extent check_view(std::string_view argument, const AnyTypedView<3, Pointer>& view) const {
    return ops::check_view("gemm", argument, view.data, bytes_of(view.type), named(view.shape), named(view.strides));
  }

  void check(std::string_view argument, const std::array<std::int64_t, 3>& shape,
             const std::array<std::int64_t, 3>& expected, std::string_view single, std::string_view many) const {
    ops::check_shape("gemm", argument, named(shape), named(expected), has_batch ? many : single);
  }
};

bool is_transposed(Transpose transpose) { return transpose == Transpose::yes; }

// Checks everything but B, whose columns N and extent are given, and returns the product without B.
GemmBatch check_product(Names names, const TypedView<3>& a, std::int64_t k, std::int64_t n, const ops::Extent& b_extent,
                        const MutableTypedView<3>& c, const GemmOptions& options,
                        const View<const float, 3>& residual) {
  const ops::Extent a_extent = names.check_view("a", a);
  const ops::Extent c_extent = names.check_view("c", c);
  const bool transposed = is_transposed(options.transpose_a);
  const std::int64_t batch = c.extent(0);
  const std::int64_t m = a.extent(transposed ? 2 : 1);
  if (transposed) {
    names.check("a", a.shape, {batch, k, -1}, "[K, M] with transpose_a, K that of b",
                "[batch, K, M] with transpose_a, K that of b, batch that of c");
  } else {
    names.check("a", a.shape, {batch, -1, k}, "[M, K], K that of b", "[batch, M, K], K that of b, batch that of c");
  }
  names.check("c", c.shape, {batch, m, n}, "[M, N]", "[batch, M, N]");
  ops::check_no_self_overlap("gemm", "c", names.named(c.shape), names.named(c.strides));
  ops::check_disjoint("gemm", "c", c_extent, "a", a_extent);
  ops::check_disjoint("gemm", "c", c_extent, "b", b_extent);

  GemmBatch product;
  product.product = ops::gemm_block({a.type, a.data, {a.extent(1), a.extent(2)}, {a.stride(1), a.stride(2)}}, {},
                                    {c.type, c.data, {m, n}, {c.stride(1), c.stride(2)}}, options.transpose_a,
                                    Transpose::no, options.alpha, options.beta);
  product.count = batch;
  product.a_stride = a.stride(0);
  product.c_stride = c.stride(0);
  kernels::GemmEpilogue& epilogue = product.product.epilogue;
  epilogue.activation = options.activation;
  if (options.activation > kLastActivation) ops::fail("gemm", "activation is none of the enumeration's values");
  if (!options.bias.empty()) {
    const View<const float, 1> bias(options.bias.data(), {static_cast<std::int64_t>(options.bias.size())});
    const ops::Extent bias_extent = ops::check_view("gemm", "bias", bias);
    ops::check_shape("gemm", "bias", bias.shape, std::array{n}, "[N], N that of b");
    ops::check_disjoint("gemm", "c", c_extent, "bias", bias_extent);
    epilogue.bias = bias.data;
  }
  if (residual) {
    const ops::Extent residual_extent = names.check_view("residual", residual);
    names.check("residual", residual.shape, c.shape, "[M, N]", "[batch, M, N]");
    const bool is_c = c.type == NumberType::float32 && residual.data == c.data &&
                      ops::are_same_places(c.shape, c.strides, residual.strides);
    if (!is_c) ops::check_disjoint("gemm", "c", c_extent, "residual", residual_extent);
    epilogue.residual = residual.data;
    epilogue.residual_row_stride = residual.stride(1);
    product.residual_stride = residual.stride(0);
  }
  return product;
}

void multiply(Engine& engine, Names names, const View<const float, 3>& a, const View<const float, 3>& b,
              const View<float, 3>& c, const GemmOptions& options, const View<const float, 3>& residual) {
  const ops::Extent b_extent = names.check_view("b", b);
  const bool transposed = is_transposed(options.transpose_b);
  if (names.has_batch && b.extent(0) != c.extent(0)) {
    names.check("b", b.shape, {c.extent(0), -1, -1}, "",
                transposed ? "[batch, N, K] with transpose_b, batch that of c" : "[batch, K, N], batch that of c");
  }
  GemmBatch product = check_product(names, a, b.extent(transposed ? 2 : 1), b.extent(transposed ? 1 : 2), b_extent, c,
                                    options, residual);
  product.product.b = ops::gemm_operand(
      {NumberType::float32, b.data, {b.extent(1), b.extent(2)}, {b.stride(1), b.stride(2)}}, options.transpose_b);
  product.b_stride = b.stride(0);
  ops::run_gemm_batch(engine, product);
}

// Of A and C beside a packed B.
void check_matrix_type(std::string_view argument, NumberType type) {
  if (type == NumberType::float32 || type == NumberType::bfloat16) return ops::check_built_type("gemm", argument, type);
  ops::fail("gemm", argument, " has type ", ops::type_name(type), ", expected float32 or bfloat16");
}

// K and N are those of b.
template <int Rank>
void check_b_given(const View<const float, Rank>& a, const View<const float, Rank>& b, const View<float, Rank>& c,
                   const GemmOptions& options) {
  const std::int64_t k = a.extent(is_transposed(options.transpose_a) ? Rank - 2 : Rank - 1);
  ops::check_given("gemm", "b", b, k == 0 && c.extent(Rank - 1) == 0);
}

}  // namespace

void gemm(Engine& engine, View<const float, 2> a, View<const float, 2> b, View<float, 2> c,
          const GemmOptions& options) {
  check_b_given(a, b, c, options);
  if (options.batched_residual) ops::fail("gemm", "batched_residual is given for a single product, expected residual");
  multiply(engine, {.has_batch = false}, batched(a), batched(b), batched(c), options, batched(options.residual));
}

void gemm(Engine& engine, View<const float, 3> a, View<const float, 3> b, View<float, 3> c,
          const GemmOptions& options) {
  check_b_given(a, b, c, options);
  if (options.residual) ops::fail("gemm", "residual is given for a batch of products, expected batched_residual");
  multiply(engine, {.has_batch = true}, a, b, c, options, options.batched_residual);
}

void gemm(Engine& engine, const TypedView<2>& a, const PackedMatrix& b, const MutableTypedView<2>& c,
          const GemmOptions& options) {
  if (options.batched_residual) ops::fail("gemm", "batched_residual is given for a single product, expected residual");
  if (!b) ops::fail("gemm", "b is an empty PackedMatrix, expected one made from a matrix");
  if (b.isa() != engine.isa()) {
    ops::fail("gemm", "b was packed for the instruction set ", name(b.isa()), ", expected ", name(engine.isa()),
              ", that of the engine");
  }
  check_matrix_type("a", a.type);
  check_matrix_type("c", c.type);
  if (a.type != NumberType::float32 && !ops::takes_narrow_a(b.type())) {
    ops::fail("gemm", "a has type bfloat16 and b ", ops::type_name(b.type()),
              ", expected an a of float32 or a b of bfloat16, int8 or int4");
  }
  const ops::Extent b_extent = ops::extent_of(std::span(static_cast<const std::byte*>(b.data()), b.bytes()));
  GemmBatch product = check_product({.has_batch = false}, batched(a), b.rows(), b.columns(), b_extent, batched(c),
                                    options, batched(options.residual));
  product.product.b = ops::gemm_panels(ops::gemm_kernels(engine, b.type()), b.type(), b.rows(), b.columns(), b.data());
  ops::run_gemm_batch(engine, product);
}

namespace {

// As A may be, but for a transposed one of bfloat16, which is rounded as one of float32.
struct OfA {
  NumberType type;
  bool transposed;
};
constexpr OfA kOfA[] = {{NumberType::float32, false}, {NumberType::float32, true}, {NumberType::bfloat16, false}};

// The largest of all products of that shape: A may lie either way, and so may a B that is not packed. A β asks for the
// most.
ops::GemmBytes bytes_of(const Engine& engine, const GemmShape& shape) {
  const std::array extents{shape.batch, shape.m, shape.n, shape.k};
  const auto refuse = [&](const char* why) { ops::fail("gemm", "shape ", extents, " ([batch, M, N, K]) ", why); };
  for (const std::int64_t extent : extents) {
    if (extent < 0) refuse("has a negative extent");
  }
  ops::check_product_type("gemm", "type", shape.type);
  if (!shape.packed && shape.type != NumberType::float32) {
    refuse(("has a B of " + std::string(name(shape.type)) + " that is not packed, expected float32").c_str());
  }
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) return {};
  const std::int64_t matrices[][2] = {{shape.m, shape.k}, {shape.k, shape.n}, {shape.m, shape.n}};
  for (const auto& [rows, columns] : matrices) {
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(rows, columns, &bytes) || __builtin_mul_overflow(bytes, shape.batch, &bytes) ||
        __builtin_mul_overflow(bytes, std::int64_t{sizeof(float)}, &bytes)) {
      refuse("has more elements than 64 bits address");
    }
  }
  ops::GemmBytes most;
  // One column may be computed as one row (run.cc).
  if (shape.n == 1 && shape.m > 1 && !shape.packed)
    most = bytes_of(engine, {shape.batch, 1, shape.m, shape.k, false, NumberType::float32});
  for (const auto layout :
       {kernels::OperandLayout::panels, kernels::OperandLayout::rows, kernels::OperandLayout::columns}) {
    if ((layout == kernels::OperandLayout::panels) != shape.packed) continue;
    for (const auto& [a_type, transposed] : kOfA) {
      if (a_type != NumberType::float32 && !ops::takes_narrow_a(shape.type)) continue;
      kernels::GemmBlock product{};
      product.a_type = a_type;
      product.rows = shape.m;
      product.columns = shape.n;
      product.depth = shape.k;
      product.a_depth_stride = transposed ? 2 : 1;
      product.b.type = shape.type;
      product.b.layout = layout;
      product.epilogue.beta = 1.0f;
      const ops::GemmBytes bytes = ops::gemm_batch_bytes(engine, {.product = product, .count = shape.batch});
      most = {std::max(most.wanted, bytes.wanted), std::max(most.least, bytes.least)};
    }
  }
  return most;
}

}  // namespace

std::size_t workspace_bytes(const Engine& engine, const GemmShape& shape) { return bytes_of(engine, shape).wanted; }

void reserve(Engine& engine, const GemmShape& shape) {
  const ops::GemmBytes bytes = bytes_of(engine, shape);
  if (bytes.wanted == 0) return;
  try {
    return runtime::reserve_scratch(engine, &bytes.wanted, 1, "gemm");
  } catch (const OutOfMemory&) {
    if (bytes.least >= bytes.wanted) throw;
  }
  // As the call itself does.
  runtime::reserve_scratch(engine, &bytes.least, 1, "gemm");
}

}  // namespace headlight
