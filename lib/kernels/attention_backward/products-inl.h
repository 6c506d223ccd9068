// The products of a tile.
#pragma once

#include "kernels/attention/tile-inl.h"
#include "kernels/attention_backward/kernels.h"
#include "kernels/tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// c[r] ← c[r] + factor · sum, where the last vector of c ends after `lanes`.
struct AddScaled {
  float* c;
  std::int64_t stride;
  float factor;
  int lanes;

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void end(const A&, const B&, const Vec (&sums)[kRows][kVectors]) const {
    const Vec scale = broadcast(factor);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      float* row = c + r * stride;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const int count = v == kVectors - 1 ? lanes : kLanes;
        store_lanes(fma(sums[r][v], scale, load_lanes(row + v * kLanes, count)), row + v * kLanes, count);
      }
    }
  }
};

// A of rows for dQ, of columns for dK and dV; B are rows of whole vectors.
template <class A, class B>
using GradientProduct = RegisterTile<A, B, AddScaled>;

// What products are made of: floats, of which one iteration of a sum takes kOfWord.
struct BackwardFloats {
  using Right = TileVectors;
  static constexpr int kOfWord = 1;

  // sum + a · b where the number is seen.
  template <class Seen>
  static HEADLIGHT_INLINE Vec add_seen(float a, const float* b, Vec sum, std::int64_t number, const Seen& seen) {
    return seen(number) ? fma(broadcast(a), load(b), sum) : sum;
  }
};

// All columns of at most kValueRows rows of c.
template <class A, class B>
void gradient_rows(GradientProduct<A, B> product, std::int64_t rows, std::int64_t dim) {
  for (std::int64_t column = 0; column < dim; column += kValuePanel) {
    const std::int64_t columns = smaller(kValuePanel, dim - column);
    const std::int64_t vectors = divide_up(columns, kLanes);
    product.finish.lanes = static_cast<int>(columns - (vectors - 1) * kLanes);
    tile_of<kValueRows, kValueVectors, GradientProduct<A, B>>(rows, vectors)(product);
    product.b.at += kValuePanel;
    product.finish.c += kValuePanel;
  }
}

inline bool sees(const kernels::BackwardTile& tile, std::int64_t r, std::int64_t j) {
  if (tile.whole && tile.modifiers.masks.mask == nullptr) return true;
  if (!tile.whole && (j < tile.begin[r] || j >= tile.end[r])) return false;
  if (tile.modifiers.masks.mask == nullptr) return true;
  return (tile.modifiers.masks.mask[r][(tile.modifiers.first_key + j) * tile.modifiers.masks.mask_key_stride] != 0) ==
         tile.modifiers.masks.attend;
}

// Some of the rows r … r + rows − 1 see keys of [first, last), none sees others.
struct TileKeys {
  std::int64_t first;
  std::int64_t last;
};
inline TileKeys keys_that_are_seen(const kernels::BackwardTile& tile, std::int64_t r, std::int64_t rows) {
  if (tile.whole) return {0, tile.keys};
  TileKeys seen{tile.keys, 0};
  for (std::int64_t row = r; row < r + rows; ++row) {
    if (tile.begin[row] >= tile.end[row]) continue;
    seen.first = smaller(seen.first, tile.begin[row]);
    seen.last = larger(seen.last, tile.end[row]);
  }
  return seen.first < seen.last ? seen : TileKeys{0, 0};
}

// One row of c by the same chain, which leaves out what is not seen: 0 · NaN is NaN. seen(number): whether to take the
// row or key of that number, of which the product begins with `first`.
template <class Numbers, class A, class Seen>
void gradient_row_exactly(const GradientProduct<A, typename Numbers::Right>& product, std::int64_t a_stride,
                          std::int64_t dim, std::int64_t first, const Seen& seen) {
  for (std::int64_t column = 0; column < dim; column += kLanes) {
    Vec sum = zero();
    for (std::int64_t k = 0; k < product.depth; ++k) {
      sum = Numbers::add_seen(product.a.at[k * a_stride], product.b.at + k * product.b.stride + column, sum,
                              first + k * Numbers::kOfWord, seen);
    }
    float* c = product.finish.c + column;
    const int lanes = static_cast<int>(smaller(kLanes, dim - column));
    store_lanes(fma(sum, broadcast(product.finish.factor), load_lanes(c, lanes)), c, lanes);
  }
}

// The rows that see some of the keys j … j + keys − 1 lie in [first, last). Neither end of an interval goes back from
// row to row, so a search goes on where that of the keys before has ended.
struct SeenRows {
  std::int64_t first;
  std::int64_t last;

  void go_to(const kernels::BackwardTile& tile, std::int64_t j, std::int64_t keys) {
    while (first < tile.rows && tile.end[first] <= j) ++first;
    while (last < tile.rows && tile.begin[last] < j + keys) ++last;
  }
};

// Rows that lie in the tensors, in bytes.
struct DistantRows {
  const char* data;
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t length;
};
inline DistantRows distant_rows(const kernels::Operand& from, std::int64_t rows, std::int64_t dim) {
  const std::int64_t size = kernels::bytes_of_number(from.type);
  return {static_cast<const char*>(from.data), from.stride * size, rows, dim * size};
}

// Asks for one of so many shares of the rows: they come while products are worked out. With heads side by side each
// lies in a page of its own, which no hardware prefetcher follows. A few at a time, for a core that waits for sixteen
// lines at once stands still. Inline, or g++ finds a function without effects and leaves its calls out.
template <int kWrite>
HEADLIGHT_INLINE void prefetch_share(const DistantRows& rows, std::int64_t share, std::int64_t shares) {
  for (std::int64_t r = rows.rows * share / shares; r < rows.rows * (share + 1) / shares; ++r) {
    for (std::int64_t at = 0; at < rows.length; at += kBytesOfLine) {
      __builtin_prefetch(rows.data + r * rows.stride + at, kWrite);
    }
  }
}

// c[j] += Σ_r x[r][j] · y[r] for all keys j: with x the weights and y = dO, or x the score gradients and y the queries.
template <class Numbers>
void sum_over_rows(const kernels::BackwardTile& tile, const float* x, const float* y, std::int64_t padded,
                   const kernels::Rows<float>& c, const DistantRows& next) {
  const std::int64_t groups = divide_up(tile.keys, kValueRows);
  SeenRows rows{0, tile.whole ? tile.rows : 0};
  for (std::int64_t j = 0; j < tile.keys; j += kValueRows) {
    const std::int64_t keys = smaller(kValueRows, tile.keys - j);
    prefetch_share<0>(next, j / kValueRows, groups);
    if (!tile.whole) rows.go_to(tile, j, keys);
    if (rows.first >= rows.last) continue;
    const std::int64_t first = rows.first / Numbers::kOfWord;
    GradientProduct<TileColumns, typename Numbers::Right> product{{x + first * tile.stride + j, tile.stride},
                                                                  {y + first * padded, padded},
                                                                  divide_up(rows.last, Numbers::kOfWord) - first,
                                                                  {c.row(j), c.stride, 1.0f, kLanes}};
    if (!tile.exactly) {
      gradient_rows(product, keys, padded);
      continue;
    }
    for (std::int64_t key = j; key < j + keys; ++key, ++product.a.at, product.finish.c += c.stride) {
      gradient_row_exactly<Numbers>(product, tile.stride, padded, first * Numbers::kOfWord,
                                    [&](std::int64_t row) { return row < tile.rows && sees(tile, row, key); });
    }
  }
}

template <class Numbers>
void key_value_gradients(const kernels::BackwardTile& tile) noexcept {
  if (tile.value_gradient.data != nullptr) {
    sum_over_rows<Numbers>(tile, tile.weights, tile.out_gradient_of_sums, tile.padded_value_dim, tile.value_gradient,
                           distant_rows(tile.next_out_gradient, tile.next_rows, tile.value_dim));
  }
  if (tile.key_gradient.data != nullptr) {
    sum_over_rows<Numbers>(tile, tile.score_gradients, tile.query_of_sums, tile.padded_head_dim, tile.key_gradient,
                           distant_rows(tile.next_query, tile.next_rows, tile.head_dim));
  }
}

template <class Numbers>
void query_gradient(const kernels::BackwardTile& tile) noexcept {
  const float* const gradients = Numbers::kOfWord == 1 ? tile.score_gradients : tile.key_pair_gradients;
  const std::int64_t stride = tile.stride / Numbers::kOfWord;
  const std::int64_t group_rows = rows_of_group<kValueRows>(tile.rows);
  for (std::int64_t r = 0; r < tile.rows; r += group_rows) {
    const std::int64_t rows = smaller(group_rows, tile.rows - r);
    const TileKeys seen = keys_that_are_seen(tile, r, rows);
    if (seen.first >= seen.last) continue;
    const std::int64_t first = seen.first / Numbers::kOfWord;
    GradientProduct<TileRows, typename Numbers::Right> product{
        {gradients + r * stride + first, stride},
        {tile.key + first * tile.padded_head_dim, tile.padded_head_dim},
        divide_up(seen.last, Numbers::kOfWord) - first,
        {tile.query_gradient.row(r), tile.query_gradient.stride, tile.scale, kLanes}};
    if (!tile.exactly) {
      gradient_rows(product, rows, tile.head_dim);
      continue;
    }
    for (std::int64_t row = r; row < r + rows; ++row) {
      gradient_row_exactly<Numbers>(product, 1, tile.head_dim, first * Numbers::kOfWord,
                                    [&](std::int64_t key) { return key < tile.keys && sees(tile, row, key); });
      product.a.at += product.a.stride;
      product.finish.c += product.finish.stride;
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
