// Compiled once per instruction set.
#include "kernels/tile_probe.h"

#include "kernels/attention/scores-inl.h"
#include "kernels/gemm/tile-inl.h"
#include "kernels/tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

using test::TileA;
using test::TileB;
using test::TileProbe;
using test::TileProduct;

constexpr int kMostRows = 4;  // a compiler unrolls every shape of them
constexpr int kMostVectors = 4;

template <class A, class B>
bool multiply(const TileProduct& product, const B& b) noexcept {
  using Tile = RegisterTile<A, B, StoreScores>;
  const Tile tile{{product.a, product.a_stride}, b, product.depth, {product.sums, product.sums_stride, nullptr}};
  tile_of<kMostRows, kMostVectors, Tile>(product.rows, product.vectors)(tile);
  return true;
}

template <class A, class Numbers>
bool multiply_narrow(const TileProduct& product) noexcept {
  return multiply<A>(product, TileMemory<false, true, Numbers>{product.narrow_b, product.b_stride, 0, kLanes});
}

template <class A>
bool multiply(const TileProduct& product) noexcept {
  switch (product.of_b) {
    case TileB::vectors:
      return multiply<A>(product, TileVectors{product.b, product.b_stride});
    case TileB::memory:
      return multiply<A>(product, TileMemory<false, true>{product.b, product.b_stride, 0, kLanes});
    case TileB::partial:
      return multiply<A>(product, TileMemory<true, true>{product.b, product.b_stride, 0, product.last_lanes});
    case TileB::bfloat16:
      return multiply_narrow<A, StoredBFloat16>(product);
    case TileB::float16:
      return multiply_narrow<A, StoredFloat16>(product);
    case TileB::panels:
      break;
  }
  return false;
}

bool run(const TileProduct& product) noexcept {
  if (product.of_a == TileA::columns) return multiply<TileColumns>(product);
  if (product.of_b != TileB::panels) return multiply<TileRows>(product);
  return multiply<TileRows>(product,
                            GemmPanels{product.b, product.b_stride, product.panel_stride, product.b, 0, nullptr});
}

}  // namespace

extern const TileProbe tile_probe;
const TileProbe tile_probe = {kLanes, kMostRows, kMostVectors, kGemmPanelVectors, run};

}  // namespace headlight::HEADLIGHT_TARGET
