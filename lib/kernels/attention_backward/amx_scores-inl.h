// Weights and score gradients over tile registers: see amx-inl.h.
//
// Between the products of an iteration and the words that they become stands what scores-inl.h computes. Where nothing
// lies between a product and its score it is computed as the products leave it, with query rows in lanes, which may
// each see an interval of the keys. What is known by row, as modifiers and dropout are, has rows of scores:
// amx_rows-inl.h.
#pragma once

#include "kernels/attention_backward/amx-inl.h"
#include "kernels/attention_backward/amx_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// What is known of the rows of an iteration; those that are not there have weights of 0.
struct RowsAtOnce {
  Vec minus_log_sum_exp[2];
  Vec delta[2];
  Vec begin[2];  // of the keys that they see, as floats
  Vec end[2];
};
template <bool kEdges>
HEADLIGHT_INLINE RowsAtOnce rows_at_once(const kernels::BackwardTile& tile, std::int64_t r) {
  RowsAtOnce rows;
  for (int half = 0; half < 2; ++half) {
    const std::int64_t from = r + half * kLanes;
    const int count = static_cast<int>(larger(0, smaller(kLanes, tile.rows - from)));
    rows.minus_log_sum_exp[half] =
        select(mask_first(count), load_partial(tile.minus_log_sum_exp + from, count), broadcast(-kInfinity));
    rows.delta[half] = load_partial(tile.delta + from, count);
    if constexpr (kEdges) {
      float begin[kLanes] = {}, end[kLanes] = {};
      for (int n = 0; n < count; ++n) {
        begin[n] = static_cast<float>(tile.begin[from + n]);
        end[n] = static_cast<float>(tile.end[from + n]);
      }
      rows.begin[half] = load(begin);
      rows.end[half] = load(end);
    }
  }
  return rows;
}

// Of a key its weights and score gradients, as vectors of rows.
struct DifferentiatedKey {
  Vec weights[2];
  Vec gradients[2];
};

// P = exp2(scale · score − log-sum-exp), and P∘(dP − δ). kEdges: some row does not see the key, whose score may be
// anything.
template <bool kEdges>
HEADLIGHT_INLINE DifferentiatedKey differentiate_key(const RowsAtOnce& rows, const float* sums, std::int64_t j,
                                                     Vec scale) {
  DifferentiatedKey key;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const Vec score = load(sums + half * kLanes);
    const Vec change = sub(load(sums + kSumsAtOnce + half * kLanes), rows.delta[half]);
    if constexpr (kEdges) {
      const Vec here = broadcast(static_cast<float>(j));
      const Mask seen = mask_and(less_equal(rows.begin[half], here), less(here, rows.end[half]));
      const Vec distance = fma(select(seen, score, zero()), scale, rows.minus_log_sum_exp[half]);
      key.weights[half] = exp2_nonpositive(select(seen, distance, broadcast(-kInfinity)));
      key.gradients[half] = select(seen, mul(key.weights[half], change), zero());
    } else {
      key.weights[half] = exp2_nonpositive(fma(score, scale, rows.minus_log_sum_exp[half]));
      key.gradients[half] = mul(key.weights[half], change);
    }
  }
  return key;
}

HEADLIGHT_INLINE void put_keys(const IterationWords& to, std::int64_t n, const DifferentiatedKey& first,
                               const DifferentiatedKey& second) {
  const auto words = [](const Vec(&rows)[2]) { return narrow_to_bf16(rows[0], rows[1]); };
  float* const weights = to.weights + 2 * n * to.row_words;
  store(words(first.weights), weights);
  store(words(second.weights), weights + to.row_words);
  put_gradients(to, n, words(first.gradients), words(second.gradients));
}

HEADLIGHT_INLINE DifferentiatedKey no_key() { return {{zero(), zero()}, {zero(), zero()}}; }

// What the products of the next iteration read from the second cache level: it comes while vectors compute.
struct NextOperands {
  const float* query;
  const float* out_gradient;
  std::int64_t query_floats;  // for each of sixteen pairs of keys
  std::int64_t out_gradient_floats;

  HEADLIGHT_INLINE void fetch(std::int64_t pair) const {
    for (std::int64_t i = 0; i < query_floats; i += kFloatsOfLine) __builtin_prefetch(query + pair * query_floats + i);
    for (std::int64_t i = 0; i < out_gradient_floats; i += kFloatsOfLine)
      __builtin_prefetch(out_gradient + pair * out_gradient_floats + i);
  }
};

// Products become words; keys that are not there have zeros.
template <bool kEdges>
void differentiate_iteration(const kernels::BackwardTile& tile, std::int64_t r, std::int64_t j, const float* sums,
                             const IterationWords& to, const NextOperands& next) {
  const RowsAtOnce rows = rows_at_once<kEdges>(tile, r);
  const Vec scale = broadcast(tile.modifiers.exponent_scale);
  const auto key = [&](std::int64_t k) __attribute__((always_inline)) {
    return differentiate_key<kEdges>(rows, sums + k * kAtOnce, j + k, scale);
  };
  const std::int64_t keys = smaller(kAtOnce, tile.keys - j);
  std::int64_t k = 0;
  for (; k + 2 <= keys; k += 2) {
    next.fetch(k / 2);
    const DifferentiatedKey first = key(k), second = key(k + 1);
    put_keys(to, k / 2, first, second);
  }
  if (k < keys) {
    put_keys(to, k / 2, key(k), no_key());
    k += 2;
  }
  for (; k < kAtOnce; k += 2) put_keys(to, k / 2, no_key(), no_key());
}

// The iterations over rows, each counted as one, and the keys that some of its rows see, or all.
inline constexpr std::int64_t kMostIterations = kernels::BackwardTile::kMostRowsOfTiles / kAtOnce;
struct RowIterations {
  std::int64_t count;
  TileKeys some[kMostIterations];
  TileKeys all[kMostIterations];

  explicit RowIterations(const kernels::BackwardTile& tile) : count(divide_up(tile.rows, kAtOnce)) {
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t first = n * kAtOnce, last = smaller(first + kAtOnce, tile.rows);
      some[n] = keys_that_are_seen(tile, first, last - first);
      all[n] = {0, tile.keys};
      for (std::int64_t r = first; r < last && !tile.whole; ++r)
        all[n] = {larger(all[n].first, tile.begin[r]), smaller(all[n].last, tile.end[r])};
    }
  }

  // Rows that see some of the keys of an iteration lie in [first, last), which is of whole iterations.
  [[nodiscard]] TileKeys rows_of(std::int64_t j) const {
    TileKeys rows{count, 0};
    for (std::int64_t n = 0; n < count; ++n) {
      if (some[n].last <= j || some[n].first >= j + kAtOnce) continue;
      rows.first = smaller(rows.first, n);
      rows.last = n + 1;
    }
    return {rows.first * kAtOnce, rows.last * kAtOnce};
  }
};

// Asks for the rows that are worked on next, and for the query gradients that are added to soon, some with each
// iteration of keys and rows.
HEADLIGHT_INLINE void prefetch_rows(const kernels::BackwardTile& tile, std::int64_t j, std::int64_t r) {
  const std::int64_t of_rows = divide_up(tile.rows, kAtOnce);
  const std::int64_t share = j / kAtOnce * of_rows + r / kAtOnce, shares = divide_up(tile.keys, kAtOnce) * of_rows;
  prefetch_share<0>(distant_rows(tile.next_query, tile.next_rows, tile.head_dim), share, shares);
  prefetch_share<0>(distant_rows(tile.next_out_gradient, tile.next_rows, tile.value_dim), share, shares);
  if (tile.query_gradient.data == nullptr) return;
  const kernels::Operand gradient{.stride = tile.query_gradient.stride, .data = tile.query_gradient.data};
  prefetch_share<1>(distant_rows(gradient, tile.rows, tile.head_dim), share, shares);
}

// Weights and score gradients as words, for the sum over keys, and the sums over rows. The words of A stay for an
// iteration of keys where products become words by themselves.
inline void tile_score_gradients(const kernels::BackwardTile& tile) noexcept {
  AmxRegisters registers;
  registers.configure(kAtOnce);
  const TileRoom room = room_of(tile);
  const RowIterations iterations(tile);
  const bool by_row = !tile.keys_are_rows || tile.large_maximum != nullptr;
  if (by_row) {
    for (std::int64_t r = 0; r < tile.rows; r += kAtOnce) {
      const WeightRows rows{tile.score_gradients, tile.score_gradients + kAtOnce * tile.stride};
      differentiate_rows_at_once(tile, r, rows);
      turn_rows(tile, room, r, rows);
    }
  }
  for (std::int64_t j = 0; j < tile.keys; j += kAtOnce) {
    const TileKeys rows = iterations.rows_of(j);
    if (rows.first >= rows.last) continue;
    const std::int64_t words = by_row ? j * room.row_words : 0;
    for (std::int64_t r = rows.first; r < rows.last && !by_row; r += kAtOnce) {
      products_of_iteration(tile, j, r, room.sums);
      prefetch_rows(tile, j, r);
      const TileKeys& all = iterations.all[r / kAtOnce];
      const bool edges = all.first > j || all.last < smaller(j + kAtOnce, tile.keys);
      const IterationWords to{room.weights + r / 2, room.gradients + r / 2, room.row_words, room.pairs_of(j, r)};
      const std::int64_t head_words = words_of(tile.head_dim), value_words = words_of(tile.value_dim);
      const std::int64_t ahead = r + kAtOnce < rows.last ? r + kAtOnce : rows.first;
      const NextOperands next{tile.query + ahead * head_words, tile.out_gradient + ahead * value_words, 2 * head_words,
                              2 * value_words};
      (edges ? differentiate_iteration<true> : differentiate_iteration<false>)(tile, r, j, room.sums, to, next);
    }
    add_key_value_gradients(tile, room, j, rows.first, rows.last, room.weights + words, room.gradients + words);
  }
}

inline void float_tile_score_gradients(const kernels::BackwardTile& tile) noexcept {
  AmxRegisters registers;
  registers.configure(kAtOnce);
  for (std::int64_t r = 0; r < tile.rows; r += kAtOnce)
    differentiate_rows_at_once(tile, r, WeightRows{tile.weights, tile.score_gradients}.behind(r * tile.stride));
}

}  // namespace headlight::HEADLIGHT_TARGET
