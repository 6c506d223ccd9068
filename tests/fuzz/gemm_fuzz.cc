// Products through the C interface, of any shapes, strides and options; b as it lies, or packed as any type. A call
// refuses and writes nothing; or it gives the same bits with one worker and with three, leaves alone what lies between
// its rows, and is right on every instruction set.
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "c/arguments.h"
#include "fuzz/c_tensor.h"
#include "reference/activation.h"
#include "reference/number_types.h"

namespace headlight::fuzz::gemm_fuzz {
namespace {

using Floats = CTensor<float>;

// What c begins with.
const float kBefore = std::bit_cast<float>(0x5A5A5A5A);

enum class Packing { none, float32, bfloat16, float16, int8, int4 };

struct Product {
  explicit Product(Bytes& bytes) : random(bytes.byte()) {
    const std::uint8_t choice = bytes.byte();
    numbers = choice % 8 == 7 ? Numbers::any : Numbers::tame;
    packing = static_cast<Packing>(bytes.integer(0, 5));
    const bool is_large = choice % 8 == 6;
    m = bytes.integer(0, is_large ? 70 : 12);
    n = bytes.integer(0, is_large ? 140 : 40);
    k = bytes.integer(0, is_large ? 300 : 40);
    batch = packing == Packing::none && bytes.once_in(4) ? bytes.integer(0, 3) : -1;
    a.draw(bytes, shape(m, k), Floats::Kind::input, random, numbers);
    if (packing == Packing::none) {
      b.draw(bytes, shape(k, n), Floats::Kind::input, random, numbers);
    } else {
      b.draw(bytes, {k, n}, Floats::Kind::input, random, numbers);
    }
    c.draw(bytes, shape(m, n), Floats::Kind::output, random, numbers);
    if (bytes.once_in(3)) {
      alpha = draw_number(random, numbers);
      options.alpha = &alpha;
    }
    if (bytes.once_in(3)) {
      beta = 0x1p-60f * draw_number(random, numbers);  // of the large number that c begins with
      options.beta = &beta;
    }
    if (bytes.once_in(3)) {
      bias.draw(bytes, {n}, Floats::Kind::input, random, numbers);
      options.bias = bias.get();
    }
    if (bytes.once_in(4)) {
      residual.draw(bytes, shape(m, n), Floats::Kind::input, random, numbers);
      options.residual = residual.get();
    }
    options.activation = static_cast<headlight_activation>(bytes.wild(bytes.integer(0, HEADLIGHT_ACTIVATION_SILU)));
    const std::uint8_t twist = bytes.byte();
    if (twist == 255) options.struct_size = struct_size(bytes, options.struct_size);
    if (twist == 254) c.tensor() = a.tensor();
    if (twist == 253) options.reserved = 1;
  }

  [[nodiscard]] std::vector<std::int64_t> shape(std::int64_t rows, std::int64_t columns) const {
    if (batch < 0) return {rows, columns};
    return {batch, rows, columns};
  }

  test::Random random;
  Numbers numbers = Numbers::tame;
  Packing packing = Packing::none;
  std::int64_t batch = -1, m = 0, n = 0, k = 0;
  Floats a, b, c, bias, residual;
  float alpha = 1, beta = 0;
  headlight_gemm_options options = HEADLIGHT_OPTIONS(headlight_gemm_options);
};

headlight_status multiply(headlight_engine* engine, Product& product, const std::vector<float>& before,
                          headlight_error& error) {
  product.c.put_back(before);
  if (product.packing == Packing::none) {
    return headlight_gemm(engine, product.a.get(), product.b.get(), product.c.get(), &product.options, &error);
  }
  headlight_packed_matrix* packed = nullptr;
  constexpr headlight_type kTypes[] = {HEADLIGHT_FLOAT32, HEADLIGHT_BFLOAT16, HEADLIGHT_FLOAT16, HEADLIGHT_INT8,
                                       HEADLIGHT_INT4};
  const headlight_type type = kTypes[static_cast<int>(product.packing) - 1];
  headlight_status status = headlight_packed_matrix_create(engine, product.b.get(), type, &packed, &error);
  if (status != HEADLIGHT_OK) return status;
  must(headlight_packed_matrix_rows(packed) == product.k || product.b.get()->shape[0] != product.k, "rows of b");
  must(headlight_packed_matrix_type(packed) == type, "the type that was asked for");
  status = headlight_gemm_packed(engine, product.a.get(), packed, product.c.get(), &product.options, &error);
  headlight_packed_matrix_destroy(packed);
  return status;
}

// The elements of a matrix, or of a batch of them, in order; none of what is not given.
std::vector<double> elements(const Floats& tensor) {
  std::vector<double> all;
  if (!tensor.is_given()) return all;
  const auto add = [&](const View<const float, 3>& matrices) {
    for (std::int64_t b = 0; b < matrices.extent(0); ++b) {
      for (std::int64_t row = 0; row < matrices.extent(1); ++row) {
        for (std::int64_t column = 0; column < matrices.extent(2); ++column) {
          all.push_back(static_cast<double>(matrices(b, row, column)));
        }
      }
    }
  };
  if (tensor.get()->rank == 3) {
    add(c::view<const float, 3>("fuzz", "matrices", tensor.get()));
  } else if (tensor.get()->rank == 2) {
    const auto matrix = c::view<const float, 2>("fuzz", "matrix", tensor.get());
    add({matrix.data, {1, matrix.extent(0), matrix.extent(1)}, {0, matrix.stride(0), matrix.stride(1)}});
  } else {
    const auto vector = c::view<const float, 1>("fuzz", "vector", tensor.get());
    add({vector.data, {1, 1, vector.extent(0)}, {0, 0, vector.stride(0)}});
  }
  return all;
}

// The numbers that a line of `depth` becomes where it is quantized `group` at a time, each `step` behind the one
// before.
void quantize(double* line, std::int64_t depth, std::int64_t step, std::int64_t group,
              reference::Int8Numbers (*to_integers)(std::span<const float>)) {
  for (std::int64_t first = 0; first < depth; first += group) {
    std::vector<float> numbers;
    for (std::int64_t k = first; k < std::min(depth, first + group); ++k) {
      numbers.push_back(static_cast<float>(line[k * step]));
    }
    const reference::Int8Numbers made = to_integers(numbers);
    for (std::size_t n = 0; n < numbers.size(); ++n)
      line[(first + static_cast<std::int64_t>(n)) * step] = made.value(n);
  }
}

// The operands of a product as that type leaves them: rows of A, columns of B.
void quantize(const Product& product, std::vector<double>& a, std::vector<double>& b) {
  const std::int64_t m = product.m, n = product.n, k = product.k;
  const bool in_groups = product.packing == Packing::int4;
  const auto group = in_groups ? static_cast<std::int64_t>(reference::kInt4Group) : std::max<std::int64_t>(k, 1);
  for (std::int64_t row = 0; row < m && k > 0; ++row) {
    quantize(a.data() + row * k, k, 1, group, in_groups ? reference::symmetric_int8 : reference::asymmetric_int8);
  }
  for (std::int64_t column = 0; column < n && k > 0; ++column) {
    quantize(b.data() + column, k, n, group, in_groups ? reference::symmetric_int4 : reference::symmetric_int8);
  }
}

// What a product must be, and what float32 may be off by. Each of the K steps of a sum and of the few behind it rounds
// once, relative to the sizes of what is added; activations are nowhere steeper than 1.13, and err by less than 4u of
// their value and 4u absolute.
class Truth {
 public:
  explicit Truth(const Product& product) : k_(product.k) {
    std::vector<double> a = elements(product.a);
    std::vector<double> b = elements(product.b);
    if (product.packing == Packing::bfloat16) {
      for (std::vector<double>* const operand : {&a, &b}) {
        for (double& each : *operand) each = reference::rounded_to_bfloat16(each);
      }
    }
    if (product.packing == Packing::float16) {
      for (double& each : b) each = reference::rounded_to_float16(each);
    }
    // Sums of integers are exact, and have fewer roundings than float32's of as many numbers; of fewer numbers than
    // there are scales, 3, and the sum of a group, 2, more are rounded (support/gemm_types.h).
    if (product.packing == Packing::int8 || product.packing == Packing::int4) {
      quantize(product, a, b);
      k_ = std::max<std::int64_t>(k_, 3) + 2;
    }
    const std::vector<double> bias = elements(product.bias);
    const std::vector<double> residual = elements(product.residual);
    const double before = product.beta == 0 ? 0 : static_cast<double>(product.beta) * static_cast<double>(kBefore);
    const auto at = [](const std::vector<double>& list, std::int64_t n) {
      return list.empty() ? 0 : list[static_cast<std::size_t>(n)];
    };
    for (std::int64_t row = 0; row < std::max<std::int64_t>(product.batch, product.batch < 0 ? 1 : 0) * product.m;
         ++row) {
      const std::int64_t first_b = row / std::max<std::int64_t>(product.m, 1) * product.k * product.n;
      for (std::int64_t column = 0; column < product.n; ++column) {
        double sum = 0;
        double size = 0;
        for (std::int64_t k = 0; k < product.k; ++k) {
          const double term = at(a, row * product.k + k) * at(b, first_b + k * product.n + column);
          sum += term;
          size += std::abs(term);
        }
        const auto alpha = static_cast<double>(product.alpha);
        add(product, alpha * sum + before + at(bias, column),
            std::abs(alpha) * size + std::abs(before) + std::abs(at(bias, column)),
            at(residual, row * product.n + column));
      }
    }
  }

  void check(const Floats& c) const {
    const std::vector<double> actual = elements(c);
    must(actual.size() == values_.size(), "c has the shape of the product");
    for (std::size_t n = 0; n < actual.size(); ++n) must_be_near(actual[n], values_[n], allowed_[n], "c is right");
  }

 private:
  void add(const Product& product, double sum, double size, double residual) {
    const auto activation = product.options.activation == HEADLIGHT_ACTIVATION_DEFAULT
                                ? Activation::none
                                : static_cast<Activation>(product.options.activation - HEADLIGHT_ACTIVATION_NONE);
    const double value = reference::activate(activation, sum);
    values_.push_back(value + residual);
    allowed_.push_back((1.13 * static_cast<double>(k_ + 8) * size + 8 * (1 + std::abs(value) + std::abs(residual))) *
                       0x1p-24);
  }

  std::int64_t k_;
  std::vector<double> values_;
  std::vector<double> allowed_;
};

void check(Product& product) {
  static const Engines engines;
  const std::vector<float> before = product.c.copy();
  headlight_error error{};
  if (!accepted(multiply(engines.pairs.front()->one.get(), product, before, error), error)) {
    must(product.c.holds(before), "a refused call writes nothing");
    return;
  }
  const bool is_twinned =
      product.numbers == Numbers::tame && product.a.is_sane() && product.b.is_sane() && product.c.is_sane();
  const std::unique_ptr<Truth> truth = is_twinned ? std::make_unique<Truth>(product) : nullptr;
  for (const auto& pair : engines.pairs) {
    must(accepted(multiply(pair->one.get(), product, before, error), error),
         "all instruction sets take the same calls");
    if (truth != nullptr) truth->check(product.c);
    const std::vector<float> by_one = product.c.copy();
    must(accepted(multiply(pair->three.get(), product, before, error), error), "any number of workers takes the same");
    must(product.c.holds(by_one), "workers change no bit");
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Product product(bytes);
  check(product);
}

}  // namespace headlight::fuzz::gemm_fuzz
