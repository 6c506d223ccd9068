// The plain twin of headlight::attention(): what the tiled kernels are held against.
//
// lib/reference includes public headers only. It takes the words of the interface from there (views, options, enums) so
// that both sides mean the same call, and it shares no computation with the kernels, so that one mistake cannot hide in
// both.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/attention.h"

namespace headlight::reference {

// What a call may write beside `out`, in the arithmetic's own type; either may be left out.
template <class Scalar>
struct AttentionRows {
  // [B, Hq, Lq]
  View<Scalar, 3> log_sum_exp{};
  // [B, Hq, Lq, Lk]
  View<Scalar, 4> probabilities{};
  // [B, Hq, Lq, Lk], at options.scores_at.
  View<Scalar, 4> scores{};
};

// query [B, Lq, Hq, Dqk], key [B, Lk, Hkv, Dqk], value [B, Lk, Hkv, Dv] → out [B, Lq, Hq, Dv], every option of
// headlight::attention() except its outputs (log_sum_exp, probabilities, scores), which `rows` replaces. Any strides.
// Arguments are trusted, not checked.
//
// Scalar = double is the truth that tests measure against; Scalar = float is the plain float32 computation whose error
// promises compare ours with. Time Hq · Lq · Lk · (Dqk + Dv), one row of scores in memory.
template <class Scalar>
void attention(View<const Scalar, 4> query, View<const Scalar, 4> key, View<const Scalar, 4> value, View<Scalar, 4> out,
               const AttentionOptions& options = {}, const AttentionRows<Scalar>& rows = {});

// The scores of the keys that query row i of head h sees in sample b, and their softmax.
template <class Scalar>
struct AttentionRow {
  std::vector<std::int64_t> keys;       // those that the row sees, ascending
  std::vector<Scalar> probabilities;    // one for each of them, before dropout
  std::vector<Scalar> dropout_factors;  // 0 or 1 / (1 − probability); 1 without dropout
  std::vector<Scalar> cap_derivatives;  // of the capped score by the raw one; 1 without a cap
  Scalar sink_probability;
  Scalar log_sum_exp;
};
template <class Scalar>
void attention_row(View<const Scalar, 4> query, View<const Scalar, 4> key, const AttentionOptions& options,
                   std::int64_t b, std::int64_t h, std::int64_t i, AttentionRow<Scalar>& row);

// The score of any row i and key j, seen or not; `masked` is −inf where not.
template <class Scalar>
[[nodiscard]] Scalar attention_score(View<const Scalar, 4> query, View<const Scalar, 4> key,
                                     const AttentionOptions& options, ScoreStage stage, std::int64_t b, std::int64_t h,
                                     std::int64_t i, std::int64_t j);

// The factor of the scores: the option, else 1 / sqrt(head_dim).
template <class Scalar>
[[nodiscard]] Scalar attention_scale(const AttentionOptions& options, std::int64_t head_dim);

extern template void attention(View<const double, 4>, View<const double, 4>, View<const double, 4>, View<double, 4>,
                               const AttentionOptions&, const AttentionRows<double>&);
extern template void attention(View<const float, 4>, View<const float, 4>, View<const float, 4>, View<float, 4>,
                               const AttentionOptions&, const AttentionRows<float>&);

// Where row i and key j stand in their own sequence: a sample, or one of the packed sequences.
struct PlaceInSequence {
  std::int64_t row;
  std::int64_t key;
  bool is_padding;  // the row
  // From the key's position to the row's, as windows, chunks and slopes count it.
  std::int64_t distance;
};
[[nodiscard]] PlaceInSequence place_in_sequence(const AttentionOptions& options, std::int64_t query_length,
                                                std::int64_t key_length, std::int64_t b, std::int64_t i,
                                                std::int64_t j);

// Whether query row i of head h sees key j in sample b, of Lq rows and Lk keys: all masks but the additive one.
[[nodiscard]] bool visible(const AttentionOptions& options, std::int64_t query_length, std::int64_t key_length,
                           std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j);

}  // namespace headlight::reference
