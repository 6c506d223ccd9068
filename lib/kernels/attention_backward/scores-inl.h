// Weights and score gradients of a tile.
#pragma once

#include "kernels/attention/dropout-inl.h"
#include "kernels/attention/score_modifiers-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/attention/softmax-inl.h"
#include "kernels/attention_backward/kernels.h"
#include "kernels/attention_backward/products-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// One row between its scores and their gradients.
struct BackwardRow {
  float* weights;    // scores before
  float* gradients;  // (dO Vᵀ) before
  Vec scale;
  Vec minus_log_sum_exp;
  Vec delta;
  std::int64_t begin;
  std::int64_t end;
};

// One vector of keys: P = exp2(scale · score − log-sum-exp), weights P∘Z, gradients P∘(dP∘Z − δ).
template <bool kDropout, bool kHidden>
HEADLIGHT_INLINE void differentiate_vector(const BackwardRow& row, std::int64_t j, [[maybe_unused]] Vec factors) {
  const Vec score = load(row.weights + j);
  Vec probability_gradient = load(row.gradients + j);
  [[maybe_unused]] const Mask hidden = equal(score, broadcast(-kInfinity));
  Vec distance;
  if constexpr (kHidden) {
    // The scale may be negative, and the log-sum-exp infinite: their sum would be an invalid operation.
    distance = fma(select(hidden, zero(), score), row.scale, row.minus_log_sum_exp);
    distance = select(hidden, broadcast(-kInfinity), distance);
  } else {
    distance = fma(score, row.scale, row.minus_log_sum_exp);
  }
  const Vec probability = exp2_nonpositive(distance);
  Vec weight = probability;
  if constexpr (kDropout) {
    weight = mul(probability, factors);
    probability_gradient = mul(probability_gradient, factors);
  }
  Vec gradient = mul(probability, sub(probability_gradient, row.delta));
  if (j < row.begin || j + kLanes > row.end) {
    const auto clamped = [](std::int64_t n) { return static_cast<int>(larger(0, smaller(kLanes, n))); };
    const Mask before = mask_first(clamped(row.begin - j));
    const Mask until = mask_first(clamped(row.end - j));
    weight = select(before, zero(), select(until, weight, zero()));
    gradient = select(before, zero(), select(until, gradient, zero()));
  }
  if constexpr (kHidden) {
    // A masked key of a row that is NaN is still masked.
    weight = select(hidden, zero(), weight);
    gradient = select(hidden, zero(), gradient);
  }
  store(weight, row.weights + j);
  store(gradient, row.gradients + j);
}

// Keys first … last − 1, whole vectors.
template <bool kDropout, bool kHidden>
void differentiate_row(const kernels::BackwardTile& tile, std::int64_t r, const BackwardRow& row, std::int64_t first,
                       std::int64_t last) {
  if constexpr (!kDropout) {
#pragma GCC unroll 2
    for (std::int64_t j = first; j < last; j += kLanes) differentiate_vector<false, kHidden>(row, j, zero());
    return;
  }
  const DropoutRow place =
      dropout_row_of(*tile.dropout, {tile.first_row.row + static_cast<std::uint32_t>(r), tile.first_row.head});
  const Vec scale = broadcast(tile.dropout->scale);
  for (std::int64_t at = first / (4 * kLanes) * (4 * kLanes); at < last; at += 4 * kLanes) {
    IntVec words[4];
    dropout_words(place, static_cast<std::uint32_t>((tile.sequence_key + at) / 4), words);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const std::int64_t j = at + k * kLanes;
      if (j < first || j >= last) continue;
      differentiate_vector<true, kHidden>(row, j, keep_where_at_least(words[k], tile.dropout->threshold, scale));
    }
  }
}

// Raw scores of keys first … last − 1, whole vectors, through the cap, and its derivatives. Returns what is left to do.
inline kernels::ScoreModifiers cap_row(const kernels::BackwardTile& tile, float* scores, std::int64_t first,
                                       std::int64_t last) {
  cap_scores(tile.modifiers, last - first, scores + first, tile.cap_derivatives + first);
  kernels::ScoreModifiers behind = tile.modifiers;
  behind.asked -= static_cast<unsigned>(kernels::ScoreModifier::softcap);
  behind.product_scale = 1.0f;
  return behind;
}

// The row's products become scores.
inline void make_scores(const kernels::BackwardTile& tile, std::int64_t r, const BackwardRow& row, std::int64_t first,
                        std::int64_t last) {
  const auto apply = [&](const kernels::ScoreModifiers& modifiers) {
    if (modifiers.asked != 0 && row.begin < row.end) apply_modifiers(modifiers, r, row.begin, row.end, row.weights);
  };
  if (tile.cap_derivatives == nullptr) return apply(tile.modifiers);
  apply(cap_row(tile, row.weights, first, last));
}

// Gradients by capped scores → by raw ones. A product that is NaN has a derivative that is: where its key is hidden,
// the gradient stays 0.
inline void differentiate_cap(const kernels::BackwardTile& tile, float* gradients, std::int64_t first,
                              std::int64_t last) {
  for (std::int64_t j = first; j < last; j += kLanes) {
    const Vec gradient = load(gradients + j);
    const Vec product = mul(gradient, load(tile.cap_derivatives + j));
    store(select(equal(gradient, zero()), gradient, product), gradients + j);
  }
}

// Where the scores of rows are, which become weights, and their gradients; `stride` of the tile apart.
struct WeightRows {
  float* weights;
  float* gradients;

  [[nodiscard]] HEADLIGHT_INLINE WeightRows behind(std::int64_t floats) const {
    return {weights + floats, gradients + floats};
  }
};

// The power of a key that the row does not see, of any score, might overflow: what lies outside of what it sees in
// [first, last) has the score that ends as 0.
inline void hide_outside(const BackwardRow& row, float exponent_scale, std::int64_t first, std::int64_t last) {
  const Vec nothing = broadcast(exponent_scale < 0 ? kInfinity : -kInfinity);
  const auto clamped = [](std::int64_t n) { return static_cast<int>(larger(0, smaller(kLanes, n))); };
  for (std::int64_t j = first; j < last; j += kLanes) {
    if (row.begin <= j && j + kLanes <= row.end) {
      j = larger(j, row.end / kLanes * kLanes - kLanes);  // on to the last vector that is seen whole
      continue;
    }
    const Vec seen = select(mask_first(clamped(row.end - j)), load(row.weights + j), nothing);
    store(select(mask_first(clamped(row.begin - j)), nothing, seen), row.weights + j);
  }
}

// A finite score that could overflow as it changes its unit counts as one that weighs nothing: see kLowestScore.
[[gnu::noinline]] inline void raise_low_scores(float* scores, std::int64_t first, std::int64_t last) {
  const Vec nothing = broadcast(-kInfinity);
  for (std::int64_t j = first; j < last; j += kLanes) {
    const Vec score = load(scores + j);
    store(select(equal(score, nothing), nothing, max(broadcast(kLowestScore), score)), scores + j);
  }
}

// The row's products → scores, which are added to what is known of those of other blocks. The steps are those of
// differentiate() for such a row, so each score is the one that it will meet.
[[gnu::noinline]] inline void add_to_running_sum(const kernels::BackwardTile& tile, std::int64_t r,
                                                 const BackwardRow& row, std::int64_t first, std::int64_t last) {
  for (std::int64_t j = first; j < last; j += kLanes) {
    store(scaled_carefully(load(row.weights + j), row.scale), row.weights + j);
  }
  hide_outside(row, 1.0f, first, last);
  kernels::RunningSum& running = tile.running_sums[r];
  const VectorRange range = vectors_of(first, last);
  const float maximum = max_of_lanes(maximum_with(broadcast(running.maximum), row.weights, range));
  if (maximum == -kInfinity) return;  // nothing is seen yet
  const Vec least = least_beside(broadcast(-maximum));
  const auto weight = [&](Vec score) __attribute__((always_inline)) {
    return exp2_nonpositive(sub(max(least, score), broadcast(maximum)));
  };
  Vec sum = zero();
  for (std::int64_t v = range.begin; v < range.end; ++v) sum = add(sum, weight(load(row.weights + v * kLanes)));
  const Vec before = mul(broadcast(running.sum), weight(broadcast(running.maximum)));
  running = {maximum, sum_of_lanes(sum) + max_of_lanes(before)};
}

inline void differentiate(const kernels::BackwardTile& tile, std::int64_t r, const WeightRows& at, std::int64_t first,
                          std::int64_t last) {
  BackwardRow row{at.weights,
                  at.gradients,
                  broadcast(tile.modifiers.exponent_scale),
                  broadcast(tile.minus_log_sum_exp[r]),
                  broadcast(tile.delta[r]),
                  tile.whole ? 0 : tile.begin[r],
                  tile.whole ? tile.keys : tile.end[r]};
  const bool hides = kernels::asks_for(tile.modifiers.asked, kernels::ScoreModifier::mask);
  make_scores(tile, r, row, first, last);
  if (tile.running_sums != nullptr) return add_to_running_sum(tile, r, row, first, last);
  if (tile.large_maximum != nullptr && tile.large_maximum[r] != 0.0f) {
    for (std::int64_t j = first; j < last; j += kLanes) {
      const Vec maximum = broadcast(tile.large_maximum[r]);
      const Vec score = scaled_beside(load(row.weights + j), row.scale, neg(maximum));
      store(sub(score, maximum), row.weights + j);
    }
    row.scale = broadcast(1.0f);
  } else if (tile.modifiers.may_be_low) {
    raise_low_scores(row.weights, first, last);
  }
  if (row.begin > first || row.end < last) {
    const bool is_large = tile.large_maximum != nullptr && tile.large_maximum[r] != 0.0f;
    hide_outside(row, is_large ? 1.0f : tile.modifiers.exponent_scale, first, last);
  }
  if (tile.dropout != nullptr) {
    (hides ? differentiate_row<true, true> : differentiate_row<true, false>)(tile, r, row, first, last);
  } else {
    (hides ? differentiate_row<false, true> : differentiate_row<false, false>)(tile, r, row, first, last);
  }
  if (tile.cap_derivatives != nullptr) differentiate_cap(tile, row.gradients, first, last);
}

inline void clear_vectors(const WeightRows& at, std::int64_t first, std::int64_t last) {
  for (std::int64_t j = first; j < last; j += kLanes) {
    store(zero(), at.weights + j);
    store(zero(), at.gradients + j);
  }
}

// Both products of a block of rows: scores Q Kᵀ, where the weights will be, and dO Vᵀ, where their gradients will be.
template <class Numbers>
void score_products(const kernels::BackwardTile& tile, std::int64_t r, std::int64_t rows, const TileKeys& seen,
                    const WeightRows& to) {
  using Right = typename Numbers::Right;
  const std::int64_t head_words = tile.head_dim / Numbers::kOfWord, value_words = tile.value_dim / Numbers::kOfWord;
  const std::int64_t query_stride = Numbers::kOfWord == 1 ? tile.padded_head_dim : head_words;
  const std::int64_t gradient_stride = Numbers::kOfWord == 1 ? tile.padded_value_dim : value_words;
  const std::int64_t panels = divide_up(seen.last, kKeyPanel) - seen.first / kKeyPanel;
  std::int64_t panel = 0;
  for (std::int64_t j = seen.first / kKeyPanel * kKeyPanel; j < seen.last; j += kKeyPanel) {
    const std::int64_t from = larger(j, seen.first);
    const std::int64_t vectors = divide_up(smaller(j + kKeyPanel, seen.last) - from, kLanes);
    const std::int64_t width = smaller(kKeyPanel, tile.keys - j);
    if (tile.query_gradient.data != nullptr) {
      const kernels::Operand gradient{.stride = tile.query_gradient.stride, .data = tile.query_gradient.row(r)};
      prefetch_share<1>(distant_rows(gradient, rows, tile.head_dim), panel++, panels);
    }
    score_panel<Right>({{tile.query + r * query_stride, query_stride},
                        {tile.key_panels + j * head_words + from - j, width},
                        head_words,
                        {to.weights + from, tile.stride, nullptr}},
                       rows, vectors);
    score_panel<Right>({{tile.out_gradient + r * gradient_stride, gradient_stride},
                        {tile.value_panels + j * value_words + from - j, width},
                        value_words,
                        {to.gradients + from, tile.stride, nullptr}},
                       rows, vectors);
  }
}

// Weights and score gradients of at most kBlockRows rows from r on, of the keys that are returned, whole vectors.
template <class Numbers>
TileKeys differentiate_rows(const kernels::BackwardTile& tile, std::int64_t r, std::int64_t rows,
                            const WeightRows& to) {
  const TileKeys keys = keys_that_are_seen(tile, r, rows);
  const TileKeys seen{keys.first / kLanes * kLanes, round_up(keys.last, kLanes)};
  score_products<Numbers>(tile, r, rows, seen, to);
  if (seen.first >= seen.last) return seen;
  for (std::int64_t n = 0; n < rows; ++n) differentiate(tile, r + n, to.behind(n * tile.stride), seen.first, seen.last);
  return seen;
}

template <class Numbers>
void score_gradients(const kernels::BackwardTile& tile) noexcept {
  const std::int64_t all = round_up(tile.keys, kLanes);
  for (std::int64_t r = 0; r < tile.rows; r += kBlockRows) {
    const std::int64_t rows = smaller(kBlockRows, tile.rows - r);
    const WeightRows to = WeightRows{tile.weights, tile.score_gradients}.behind(r * tile.stride);
    const TileKeys seen = differentiate_rows<Numbers>(tile, r, rows, to);
    for (std::int64_t n = 0; n < rows; ++n) {
      clear_vectors(to.behind(n * tile.stride), 0, seen.first);
      clear_vectors(to.behind(n * tile.stride), seen.last, all);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
