#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/dropout.h"

namespace headlight::reference {
namespace {

template <class Scalar>
constexpr Scalar kNothing = -std::numeric_limits<Scalar>::infinity();

float bias_at(const View<const float, 4>& bias, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  if (!bias) return 0.0f;
  const auto& shape = bias.shape;
  return bias(shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, shape[2] == 1 ? 0 : i, shape[3] == 1 ? 0 : j);
}

// Scores of visible keys → probabilities, in place, and that of the sink. A score of −inf is a weight of 0, and a row
// of nothing else (or of no keys) is zeros. +inf and NaN make the row NaN: exp(inf − inf) and exp(NaN) are.
template <class Scalar>
void softmax_row(Scalar sink, AttentionRow<Scalar>& row) {
  Scalar maximum = sink;
  for (const Scalar score : row.probabilities) maximum = std::max(maximum, score);
  const auto weight = [&](Scalar score) { return score == kNothing<Scalar> ? 0 : std::exp(score - maximum); };
  row.sink_probability = weight(sink);
  Scalar total = row.sink_probability;
  for (Scalar& score : row.probabilities) {
    score = weight(score);
    total += score;
  }
  row.log_sum_exp = kNothing<Scalar>;
  if (total == 0) return;
  for (Scalar& score : row.probabilities) score /= total;
  row.sink_probability /= total;
  row.log_sum_exp = maximum + std::log(total);
}

template <class Scalar>
Scalar raw_score(const View<const Scalar, 4>& query, const View<const Scalar, 4>& key, const AttentionOptions& options,
                 std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const std::int64_t key_head = h / (query.extent(2) / key.extent(2));
  Scalar dot = 0;
  for (std::int64_t d = 0; d < query.extent(3); ++d) dot += query(b, i, h, d) * key(b, j, key_head, d);
  return attention_scale<Scalar>(options, query.extent(3)) * dot;
}

template <class Scalar>
Scalar capped(const AttentionOptions& options, Scalar raw) {
  const auto cap = static_cast<Scalar>(options.softcap);
  return cap == 0 ? raw : cap * std::tanh(raw / cap);
}

template <class Scalar>
Scalar cap_derivative(const AttentionOptions& options, Scalar raw) {
  const auto cap = static_cast<Scalar>(options.softcap);
  if (cap == 0) return 1;
  const Scalar share = std::tanh(raw / cap);
  return 1 - share * share;
}

// What is added behind the cap.
template <class Scalar>
Scalar addend(const AttentionOptions& options, const PlaceInSequence& place, std::int64_t b, std::int64_t h,
              std::int64_t i, std::int64_t j) {
  auto sum = static_cast<Scalar>(bias_at(options.bias, b, h, i, j));
  if (!options.alibi.empty()) {
    sum -=
        static_cast<Scalar>(options.alibi[static_cast<std::size_t>(h)]) * static_cast<Scalar>(std::abs(place.distance));
  }
  return sum;
}

}  // namespace

template <class Scalar>
Scalar attention_scale(const AttentionOptions& options, std::int64_t head_dim) {
  if (options.scale) return static_cast<Scalar>(*options.scale);
  // Without head_dims every dot product is an empty sum: 0, whatever the scale.
  return head_dim == 0 ? 0 : 1 / std::sqrt(static_cast<Scalar>(head_dim));
}

template <class Scalar>
void attention_row(View<const Scalar, 4> query, View<const Scalar, 4> key, const AttentionOptions& options,
                   std::int64_t b, std::int64_t h, std::int64_t i, AttentionRow<Scalar>& row) {
  const std::int64_t query_length = query.extent(1);
  const std::int64_t key_length = key.extent(1);
  const auto number_of_head = static_cast<std::uint32_t>(b * query.extent(2) + h);
  row = {};
  for (std::int64_t j = 0; j < key_length; ++j) {
    if (!visible(options, query_length, key_length, b, h, i, j)) continue;
    const Scalar raw = raw_score(query, key, options, b, h, i, j);
    const PlaceInSequence place = place_in_sequence(options, query_length, key_length, b, i, j);
    row.keys.push_back(j);
    row.probabilities.push_back(capped(options, raw) + addend<Scalar>(options, place, b, h, i, j));
    row.cap_derivatives.push_back(cap_derivative(options, raw));
    row.dropout_factors.push_back(
        static_cast<Scalar>(dropout_factor(options.dropout, place.key, place.row, number_of_head)));
  }
  const bool is_padding = place_in_sequence(options, query_length, key_length, b, i, 0).is_padding;
  const bool has_sink = !options.sinks.empty() && !is_padding;
  softmax_row(has_sink ? static_cast<Scalar>(options.sinks[static_cast<std::size_t>(h)]) : kNothing<Scalar>, row);
}

template <class Scalar>
Scalar attention_score(View<const Scalar, 4> query, View<const Scalar, 4> key, const AttentionOptions& options,
                       ScoreStage stage, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const Scalar raw = raw_score(query, key, options, b, h, i, j);
  if (stage == ScoreStage::raw) return raw;
  if (stage == ScoreStage::capped) return capped(options, raw);
  const std::int64_t query_length = query.extent(1);
  const std::int64_t key_length = key.extent(1);
  if (!visible(options, query_length, key_length, b, h, i, j)) return kNothing<Scalar>;
  const PlaceInSequence place = place_in_sequence(options, query_length, key_length, b, i, j);
  return capped(options, raw) + addend<Scalar>(options, place, b, h, i, j);
}

template <class Scalar>
void attention(View<const Scalar, 4> query, View<const Scalar, 4> key, View<const Scalar, 4> value, View<Scalar, 4> out,
               const AttentionOptions& options, const AttentionRows<Scalar>& rows) {
  // Where nothing is written, one axis may still count 2^30 of nothing.
  if (out.size() == 0 && rows.log_sum_exp.size() == 0 && rows.probabilities.size() == 0 && rows.scores.size() == 0) {
    return;
  }
  const auto [batch, query_length, query_heads, head_dim] = query.shape;
  const std::int64_t key_length = key.extent(1);
  const std::int64_t group = key.extent(2) == 0 ? 1 : query_heads / key.extent(2);

  AttentionRow<Scalar> row;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < query_heads; ++h) {
      for (std::int64_t i = 0; i < query_length; ++i) {
        attention_row(query, key, options, b, h, i, row);
        for (std::int64_t d = 0; d < out.extent(3); ++d) {
          Scalar sum = 0;
          for (std::size_t k = 0; k < row.keys.size(); ++k) {
            sum += row.probabilities[k] * row.dropout_factors[k] * value(b, row.keys[k], h / group, d);
          }
          out(b, i, h, d) = sum;
        }
        if (rows.log_sum_exp) rows.log_sum_exp(b, h, i) = row.log_sum_exp;
        if (rows.probabilities) {
          for (std::int64_t j = 0; j < key_length; ++j) rows.probabilities(b, h, i, j) = 0;
          for (std::size_t k = 0; k < row.keys.size(); ++k) {
            rows.probabilities(b, h, i, row.keys[k]) = row.probabilities[k];
          }
        }
        for (std::int64_t j = 0; rows.scores && j < key_length; ++j) {
          rows.scores(b, h, i, j) = attention_score(query, key, options, options.scores_at, b, h, i, j);
        }
      }
    }
  }
}

template void attention_row(View<const double, 4>, View<const double, 4>, const AttentionOptions&, std::int64_t,
                            std::int64_t, std::int64_t, AttentionRow<double>&);
template void attention_row(View<const float, 4>, View<const float, 4>, const AttentionOptions&, std::int64_t,
                            std::int64_t, std::int64_t, AttentionRow<float>&);
template double attention_score(View<const double, 4>, View<const double, 4>, const AttentionOptions&, ScoreStage,
                                std::int64_t, std::int64_t, std::int64_t, std::int64_t);
template float attention_score(View<const float, 4>, View<const float, 4>, const AttentionOptions&, ScoreStage,
                               std::int64_t, std::int64_t, std::int64_t, std::int64_t);
template double attention_scale(const AttentionOptions&, std::int64_t);
template float attention_scale(const AttentionOptions&, std::int64_t);
template void attention(View<const double, 4>, View<const double, 4>, View<const double, 4>, View<double, 4>,
                        const AttentionOptions&, const AttentionRows<double>&);
template void attention(View<const float, 4>, View<const float, 4>, View<const float, 4>, View<float, 4>,
                        const AttentionOptions&, const AttentionRows<float>&);

}  // namespace headlight::reference
