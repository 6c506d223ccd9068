// The register tile against its twin: every operand, every shape, ragged depths, between guard pages.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/storage_types.h"
#include "kernels/tile_probe.h"
#include "runtime/isa_list.h"
#include "support/compare.h"
#include "support/guarded.h"
#include "support/isas.h"
#include "support/random.h"

#define HEADLIGHT_DECLARE(isa)             \
  namespace headlight::isa {               \
  extern const test::TileProbe tile_probe; \
  }
HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_DECLARE)
#undef HEADLIGHT_DECLARE

namespace headlight::test {

const TileProbe& tile_probe(Isa isa) {
  switch (isa) {
#define HEADLIGHT_CASE(name) \
  case Isa::name:            \
    return headlight::name::tile_probe;
    HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_CASE)
#undef HEADLIGHT_CASE
    default:
      break;
  }
  __builtin_unreachable();
}

}  // namespace headlight::test

namespace headlight::test::tile_test {

using TileTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TileTest);

struct Operands {
  TileA a;
  TileB b;
};
constexpr Operands kOperands[] = {
    {TileA::rows, TileB::vectors},     {TileA::rows, TileB::memory},     {TileA::rows, TileB::partial},
    {TileA::rows, TileB::panels},      {TileA::columns, TileB::vectors}, {TileA::columns, TileB::memory},
    {TileA::columns, TileB::partial},  {TileA::rows, TileB::bfloat16},   {TileA::rows, TileB::float16},
    {TileA::columns, TileB::bfloat16}, {TileA::columns, TileB::float16}};

// 0, an odd and an even number of iterations, more than are written out at once, and some hundred.
constexpr std::int64_t kDepths[] = {0, 1, 2, 3, 4, 5, 7, 16, 17, 131};

// A chain of k multiply-adds rounds each of its terms at most k times, whether the product is rounded by itself or not:
// |found − Σ a·b| ≤ γ_k Σ |a·b| with γ_k = k·u / (1 − k·u) (Higham 2002, section 3.1). The twin has rounded as often.
double gamma(std::int64_t terms) {
  const auto bound = [&](double unit_roundoff) {
    const double product = static_cast<double>(terms) * unit_roundoff;
    return product / (1 - product);
  };
  return bound(kUnitRoundoff) + bound(0x1p-53);
}

std::int64_t at_a(const TileProduct& product, std::int64_t r, std::int64_t k) {
  return product.of_a == TileA::rows ? r * product.a_stride + k : k * product.a_stride + r;
}

std::int64_t at_b(const TileProbe& probe, const TileProduct& product, std::int64_t k, std::int64_t j) {
  const std::int64_t width = product.of_b == TileB::panels ? probe.panel_vectors * probe.lanes : j + 1;
  return k * product.b_stride + j / width * product.panel_stride + j % width;
}

void fill(Random& random, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = random.normal();
}

bool is_narrow(TileB b) { return b == TileB::bfloat16 || b == TileB::float16; }

// The number nearest to x that B holds, and its bits where these are 16.
float stored(TileB b, float x, std::uint16_t* bits) {
  if (!is_narrow(b)) return x;
  const auto keep = [bits](auto number) {
    *bits = number.bits;
    return static_cast<float>(number);
  };
  return b == TileB::bfloat16 ? keep(BFloat16(x)) : keep(Float16(x));
}

void check(Isa isa, Random& random, TileProduct product, Against side) {
  const TileProbe& probe = tile_probe(isa);
  const std::int64_t width = product.vectors * probe.lanes;
  const std::int64_t columns = product.of_b == TileB::partial ? width - probe.lanes + product.last_lanes : width;
  product.a_stride = (product.of_a == TileA::rows ? product.depth : product.rows) + 3;
  product.b_stride = columns;
  if (product.of_b == TileB::panels) {
    product.b_stride = std::min<std::int64_t>(width, probe.panel_vectors * probe.lanes);
    product.panel_stride = product.depth * product.b_stride;
  }
  product.sums_stride = width + 1;
  const bool is_empty = product.depth == 0;
  const std::int64_t a_count = is_empty ? 0 : at_a(product, product.rows - 1, product.depth - 1) + 1;
  const std::int64_t b_count = is_empty ? 0 : at_b(probe, product, product.depth - 1, columns - 1) + 1;
  const Guarded<float> a(a_count, side);
  const Guarded<float> b(b_count, side);
  const Guarded<std::uint16_t> narrow_b(is_narrow(product.of_b) ? b_count : 0, side);
  const Guarded<float> sums((product.rows - 1) * product.sums_stride + width, side);
  fill(random, a_count, a.data());
  fill(random, b_count, b.data());
  for (std::int64_t i = 0; i < b_count; ++i) {
    b.data()[i] = stored(product.of_b, b.data()[i], is_narrow(product.of_b) ? narrow_b.data() + i : nullptr);
  }
  std::fill_n(sums.data(), (product.rows - 1) * product.sums_stride + width, std::nanf(""));
  product.a = a.data();
  product.b = b.data();
  product.narrow_b = narrow_b.data();
  product.sums = sums.data();
  ASSERT_TRUE(probe.run(product));
  for (std::int64_t r = 0; r < product.rows; ++r) {
    for (std::int64_t j = 0; j < width; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t k = 0; k < product.depth && j < columns; ++k) {
        const double term = static_cast<double>(a.data()[at_a(product, r, k)]) *
                            static_cast<double>(b.data()[at_b(probe, product, k, j)]);
        sum += term;
        size += std::abs(term);
      }
      EXPECT_NEAR(static_cast<double>(sums.data()[r * product.sums_stride + j]), sum, gamma(product.depth) * size)
          << r << ", " << j;
    }
  }

  // A tile of one row and one vector has the same bits.
  TileProduct one = product;
  one.rows = one.vectors = 1;
  std::vector<float> alone(static_cast<std::size_t>(probe.lanes));
  one.sums = alone.data();
  one.a += at_a(product, product.rows - 1, 0);
  one.b += at_b(probe, product, 0, width - probe.lanes);
  one.narrow_b += is_narrow(product.of_b) ? at_b(probe, product, 0, width - probe.lanes) : 0;
  ASSERT_TRUE(probe.run(one));
  const float* const last = sums.data() + (product.rows - 1) * product.sums_stride + width - probe.lanes;
  for (std::int64_t j = 0; j < probe.lanes; ++j) EXPECT_EQ(alone[static_cast<std::size_t>(j)], last[j]) << j;
}

TEST_P(TileTest, EveryShapeAgreesWithTheTwin) {
  Random random(1);
  const TileProbe& probe = tile_probe(GetParam());
  for (const Operands& operands : kOperands) {
    for (std::int64_t rows = 1; rows <= probe.most_rows; ++rows) {
      for (std::int64_t vectors = 1; vectors <= probe.most_vectors; ++vectors) {
        for (const std::int64_t depth : kDepths) {
          SCOPED_TRACE(testing::Message()
                       << "A " << static_cast<int>(operands.a) << ", B " << static_cast<int>(operands.b) << ", " << rows
                       << " rows of " << vectors << " vectors, depth " << depth);
          TileProduct product{};
          product.of_a = operands.a;
          product.of_b = operands.b;
          product.rows = rows;
          product.vectors = vectors;
          product.depth = depth;
          product.last_lanes = 1 + static_cast<int>((rows + vectors + depth) % probe.lanes);
          for (const Against side : kBothSides) check(GetParam(), random, product, side);
        }
      }
    }
  }
}

}  // namespace headlight::test::tile_test
