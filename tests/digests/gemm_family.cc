// Products and the gradient of their bias.
#include <algorithm>
#include <utility>

#include "digests/draws.h"
#include "digests/family.h"
#include "headlight/gemm.h"

namespace headlight::test {
namespace gemm_family {

struct Size {
  std::int64_t m = 0, n = 0, k = 0;
};

Size draw_size(Random& random) {
  switch (random.integer(0, 11)) {
    case 0:
    case 1:
      return {random.integer(0, 9), random.integer(0, 9), random.integer(0, 9)};
    case 2:  // one row
      return {1, random.integer(1, 700), random.integer(1, 1200)};
    case 3:  // a few rows, several blocks of k
      return {random.integer(2, 60), random.integer(1, 130), random.integer(700, 2500)};
    case 4:  // several blocks of k for many
      return {random.integer(60, 150), random.integer(60, 150), random.integer(769, 1000)};
    case 5:
      return {random.integer(100, 420), random.integer(1, 40), random.integer(1, 300)};
    case 6:
      return {random.integer(1, 40), random.integer(100, 700), random.integer(1, 300)};
    case 7:
      return {random.integer(100, 260), random.integer(100, 260), random.integer(20, 120)};
    default:
      return {random.integer(1, 90), random.integer(1, 90), random.integer(1, 200)};
  }
}

constexpr Activation kActivations[] = {Activation::none, Activation::none, Activation::none,
                                       Activation::relu, Activation::gelu, Activation::gelu_tanh};
constexpr float kBetas[] = {0.0f, 0.0f, 1.0f, 0.5f, -1.25f};

// What does not depend on whether there is one product or a batch. The bias lies in `memory`.
GemmOptions draw_options(Random& random, DigestMemory& memory, const Size& size, std::ostream& words) {
  GemmOptions options;
  options.transpose_a = random.once_in(3) ? Transpose::yes : Transpose::no;
  options.transpose_b = random.once_in(2) ? Transpose::yes : Transpose::no;
  if (random.once_in(4)) options.alpha = random.uniform();
  options.beta = one_of(random, kBetas);
  if (random.once_in(2)) {
    const View<float, 1> bias(memory.floats(size.n), {size.n});
    fill(random, bias);
    options.bias = {bias.data, static_cast<std::size_t>(size.n)};
  }
  options.activation = one_of(random, kActivations);
  words << " m=" << size.m << " n=" << size.n << " k=" << size.k
        << " transposed=" << (options.transpose_a == Transpose::yes ? "a" : "")
        << (options.transpose_b == Transpose::yes ? "b" : "") << " alpha=" << options.alpha << " beta=" << options.beta
        << (options.bias.empty() ? "" : " bias") << " activation=" << static_cast<int>(options.activation);
  return options;
}

View<float, 2> draw_matrix(Random& random, DigestMemory& memory, std::int64_t rows, std::int64_t columns,
                           Transpose transpose) {
  const View<float, 2> matrix =
      transpose == Transpose::yes ? memory.rows(random, columns, rows) : memory.rows(random, rows, columns);
  fill(random, matrix);
  return matrix;
}

void one_product(DigestCase& c) {
  DigestMemory memory;
  const Size size = draw_size(c.random);
  GemmOptions options = draw_options(c.random, memory, size, c.words);
  const View<float, 2> a = draw_matrix(c.random, memory, size.m, size.k, options.transpose_a);
  const View<float, 2> b = draw_matrix(c.random, memory, size.k, size.n, options.transpose_b);
  const View<float, 2> out = draw_matrix(c.random, memory, size.m, size.n, Transpose::no);
  if (c.random.once_in(20)) put_specials(c.random, a);
  if (c.random.once_in(20)) put_specials(c.random, b);
  const std::int64_t residual = c.random.integer(0, 4);
  if (residual == 0) options.residual = draw_matrix(c.random, memory, size.m, size.n, Transpose::no);
  if (residual == 1) options.residual = out;
  const bool packed = c.random.once_in(2);
  c.words << " residual=" << residual << (packed ? " packed" : "");
  if (packed) {
    const PackedMatrix packed_b(c.engine, b, options.transpose_b);
    gemm(c.engine, a, packed_b, out, options);
  } else {
    gemm(c.engine, a, b, out, options);
  }
  c.digest.add(out);
}

void batch_of_products(DigestCase& c) {
  DigestMemory memory;
  Size size = draw_size(c.random);
  size.m = std::min<std::int64_t>(size.m, 70);
  size.n = std::min<std::int64_t>(size.n, 90);
  size.k = std::min<std::int64_t>(size.k, 900);
  const std::int64_t batch = c.random.integer(0, 5);
  GemmOptions options = draw_options(c.random, memory, size, c.words);
  const auto draw = [&](std::int64_t rows, std::int64_t columns, Transpose transpose, bool may_repeat) {
    if (transpose == Transpose::yes) std::swap(rows, columns);
    const bool repeats = may_repeat && c.random.once_in(4);
    const View<float, 2> stacked = draw_matrix(c.random, memory, repeats ? rows : batch * rows, columns, Transpose::no);
    const std::int64_t row = stacked.stride(0);
    return View<float, 3>(stacked.data, {batch, rows, columns}, {repeats ? 0 : rows * row, row, 1});
  };
  const View<float, 3> a = draw(size.m, size.k, options.transpose_a, true);
  const View<float, 3> b = draw(size.k, size.n, options.transpose_b, true);
  const View<float, 3> out = draw(size.m, size.n, Transpose::no, false);
  if (c.random.once_in(4)) options.batched_residual = draw(size.m, size.n, Transpose::no, true);
  c.words << " batch=" << batch << (options.batched_residual ? " residual" : "");
  gemm(c.engine, a, b, out, options);
  c.digest.add(out);
}

void sum_of_rows(DigestCase& c) {
  DigestMemory memory;
  const std::int64_t rows = c.random.integer(0, 400), columns = c.random.integer(1, 200);
  const View<float, 2> gradient = draw_matrix(c.random, memory, rows, columns, Transpose::no);
  const View<float, 1> sums(memory.floats(columns), {columns});
  fill(c.random, sums);
  c.words << " bias_backward rows=" << rows << " columns=" << columns;
  bias_backward(c.engine, gradient, {sums.data, static_cast<std::size_t>(columns)});
  c.digest.add(sums);
}

}  // namespace gemm_family

void digest_gemm(DigestCase& c) {
  const std::int64_t kind = c.number % 10;
  if (kind < 7) {
    gemm_family::one_product(c);
  } else if (kind < 9) {
    gemm_family::batch_of_products(c);
  } else {
    gemm_family::sum_of_rows(c);
  }
}

}  // namespace headlight::test
