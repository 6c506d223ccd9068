// Plain twin of a network by specification.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/layers/network_spec.h"
#include "headlight/tensor.h"
#include "reference/activation.h"
#include "reference/attention.h"
#include "reference/head_merge.h"
#include "reference/linear.h"
#include "reference/normalization.h"
#include "reference/rotary.h"

namespace headlight::reference {

// One sequence, and `weights`, whose matrix(name) and vector(name) are the parameters of the network, the latter not
// given where there is no such parameter. `spec` has every size set.
template <class Scalar, class Weights>
class Network {
 public:
  Network(const NetworkSpec& spec, const Weights& weights) : spec_(spec), weights_(weights) {}

  // hidden [L, E]
  [[nodiscard]] Tensor<Scalar, 2> operator()(std::span<const std::int64_t> ids, std::span<const std::int64_t> positions,
                                             std::span<const std::int64_t> token_types) const {
    const EmbeddingSpec& embedding = spec_.embedding;
    Tensor<Scalar, 2> x({static_cast<std::int64_t>(ids.size()), spec_.width});
    const auto add = [&](const char* table, std::span<const std::int64_t> rows) {
      const View<const Scalar, 2> from = weights_.matrix(std::string("embeddings.") + table + ".weight");
      for (std::int64_t t = 0; t < x.view().extent(0); ++t) {
        for (std::int64_t e = 0; e < spec_.width; ++e) x(t, e) += from(rows[static_cast<std::size_t>(t)], e);
      }
    };
    add("word", ids);
    if (embedding.positions > 0) add("position", positions);
    if (embedding.token_types > 0) add("token_type", token_types);
    for (Scalar& number : x) number *= static_cast<Scalar>(embedding.scale);
    x = norm("embeddings.norm", embedding.norm, x);
    for (std::size_t number = 0; number < spec_.blocks.size(); ++number) {
      x = block("blocks." + std::to_string(number) + ".", spec_.blocks[number], x, positions);
    }
    return norm("norm", spec_.last_norm, x);
  }

  // [L, vocabulary] of hidden states [L, E]
  [[nodiscard]] Tensor<Scalar, 2> logits(const Tensor<Scalar, 2>& hidden) const {
    const LogitsSpec& spec = spec_.logits;
    const bool tied = spec.weight == LogitsSpec::Weight::word_embeddings;
    const View<const Scalar, 2> weight = weights_.matrix(tied ? "embeddings.word.weight" : "logits.weight");
    Tensor<Scalar, 2> y({hidden.view().extent(0), weight.extent(0)});
    linear<Scalar>(hidden.view(), weight, weights_.vector("logits.bias"), y.view());
    const auto factor = static_cast<Scalar>(spec.factor), cap = static_cast<Scalar>(spec.cap);
    for (Scalar& number : y) number = cap > 0 ? softcap(factor, cap, number) : factor * number;
    return y;
  }

 private:
  using Rows = Tensor<Scalar, 2>;

  // Of each `width` numbers in turn.
  Rows norm(const std::string& name, const NormSpec& norm, const Rows& x, std::int64_t width = 0) const {
    if (!norm) return copy_of(x);
    const std::int64_t columns = width == 0 ? x.view().extent(1) : width;
    Rows y(x.shape());
    const View<const Scalar, 2> from(x.data(), {x.size() / columns, columns});
    const View<Scalar, 2> to(y.data(), from.shape);
    const auto epsilon = static_cast<Scalar>(norm.epsilon);
    if (norm.kind == NormKind::rms) {
      rms_norm<Scalar>(from, weights_.vector(name + ".weight"), norm.one_plus_weight, epsilon, {}, to);
    } else {
      layer_norm<Scalar>(from, {}, weights_.vector(name + ".weight"), weights_.vector(name + ".bias"), epsilon, to);
    }
    return y;
  }

  Rows product(const std::string& name, const Rows& x) const {
    const View<const Scalar, 2> weight = weights_.matrix(name + ".weight");
    Rows y({x.view().extent(0), weight.extent(0)});
    linear<Scalar>(x.view(), weight, weights_.vector(name + ".bias"), y.view());
    return y;
  }

  // The heads of x [L, heads · D], each turned, and repeated for so many heads that share it.
  Tensor<Scalar, 4> heads(const Rows& x, const AttentionSpec& spec, std::span<const std::int64_t> positions,
                          bool is_turned, std::int64_t shared_by) const {
    const std::int64_t length = x.view().extent(0), head_dim = spec.head_dim, count = x.view().extent(1) / head_dim;
    Tensor<Scalar, 3> turned({length, count, head_dim});
    std::copy(x.begin(), x.end(), turned.begin());
    if (is_turned && spec.rotary.dims > 0) {
      rotate<Scalar>(turned.view(), angles(spec, positions).view(), spec.rotary.pairing, false, turned.view());
    }
    Tensor<Scalar, 4> repeated({1, length, count * shared_by, head_dim});
    for (std::int64_t t = 0; t < length; ++t) {
      for (std::int64_t h = 0; h < count * shared_by; ++h) {
        for (std::int64_t d = 0; d < head_dim; ++d) repeated(0, t, h, d) = turned(t, h / shared_by, d);
      }
    }
    return repeated;
  }

  static Rows angles(const AttentionSpec& spec, std::span<const std::int64_t> positions) {
    const auto length = static_cast<std::int64_t>(positions.size());
    const std::int64_t end = positions.empty() ? 0 : *std::max_element(positions.begin(), positions.end()) + 1;
    const std::vector<double> theta = rotary_frequencies(spec.rotary, spec.head_dim, end);
    const double factor = rotary_attention_factor(spec.rotary.scaling);
    const auto pairs = static_cast<std::int64_t>(theta.size());
    const bool halves = spec.rotary.pairing == RotaryPairing::halves;
    Rows made({length, 2 * pairs});
    for (std::int64_t t = 0; t < length; ++t) {
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle =
            static_cast<double>(positions[static_cast<std::size_t>(t)]) * theta[static_cast<std::size_t>(i)];
        made(t, halves ? i : 2 * i) = static_cast<Scalar>(std::cos(angle) * factor);
        made(t, halves ? pairs + i : 2 * i + 1) = static_cast<Scalar>(std::sin(angle) * factor);
      }
    }
    return made;
  }

  // [1, H, L, L]: the table's row of the bucket of j − i, for each head.
  Tensor<float, 4> relative_biases(const AttentionSpec& spec, std::int64_t length) const {
    if (!spec.relative_bias) return {};
    const View<const Scalar, 2> table = weights_.matrix("relative_bias.weight");
    Tensor<float, 4> biases({1, spec.heads, length, length});
    for (std::int64_t i = 0; i < length; ++i) {
      for (std::int64_t j = 0; j < length; ++j) {
        const std::int64_t bucket = relative_bucket(spec.relative_bias, j - i);
        for (std::int64_t h = 0; h < spec.heads; ++h) biases(0, h, i, j) = static_cast<float>(table(bucket, h));
      }
    }
    return biases;
  }

  // The first of the bounds of buckets behind which the distance is not.
  static std::int64_t relative_bucket(const RelativeBiasSpec& spec, std::int64_t distance) {
    const std::int64_t half = spec.buckets / 2, exact = half / 2;
    const std::int64_t away = distance < 0 ? -distance : distance;
    const double most = static_cast<double>(spec.max_distance) / static_cast<double>(exact);
    std::int64_t bucket = std::min(away, exact);
    while (away >= exact && bucket < half - 1) {
      const double share = static_cast<double>(bucket + 1 - exact) / static_cast<double>(half - exact);
      const double bound = static_cast<double>(exact) * std::pow(most, share);
      if (static_cast<double>(away) < bound * (1 - 1e-12)) break;
      ++bucket;
    }
    return (distance > 0 ? half : 0) + bucket;
  }

  Rows attend(const std::string& name, const AttentionSpec& spec, const Rows& x,
              std::span<const std::int64_t> positions) const {
    const std::int64_t group = spec.heads / spec.key_value_heads;
    const std::int64_t whole = spec.whole_width_norms ? 1 : 0;  // 0 stands for the width of all heads
    const auto width = [&](std::int64_t head_dim) { return whole == 1 ? 0 : head_dim; };
    const Rows query = norm(name + "query_norm", spec.query_norm, product(name + "query", x), width(spec.head_dim));
    const Rows key = norm(name + "key_norm", spec.key_norm, product(name + "key", x), width(spec.head_dim));
    const Rows value = product(name + "value", x);
    AttentionOptions options;
    options.causal = spec.causal ? Causal::top_left : Causal::none;
    options.window = {spec.window_before, spec.window_after};
    if (spec.scale != 0) options.scale = spec.scale;
    options.softcap = spec.softcap;
    std::vector<float> sinks;
    if (spec.sinks) {
      const View<const Scalar, 1> logits = weights_.vector(name + "sinks");
      for (std::int64_t h = 0; h < spec.heads; ++h) sinks.push_back(static_cast<float>(logits(h)));
      options.sinks = sinks;
    }
    const Tensor<float, 4> biases = relative_biases(spec, x.view().extent(0));
    if (spec.relative_bias) options.bias = biases.view();
    Rows joined({x.view().extent(0), spec.heads * spec.head_dim});
    attention<Scalar>(heads(query, spec, positions, true, 1), heads(key, spec, positions, true, group),
                      heads(value, spec, positions, false, group),
                      {joined.data(), {1, x.view().extent(0), spec.heads, spec.head_dim}}, options);
    HeadMerge<Scalar> merge = {spec.merge, weights_.vector(name + "merge_logits")};
    if (spec.merge == Merge::weighted_by_input) merge.projection = weights_.matrix(name + "merge.weight");
    if (spec.merge >= Merge::gated_by_head) merge.projection = weights_.matrix(name + "gate.weight");
    return product(name + "output", merged_heads<Scalar>(merge, x.view(), joined.view(), spec.heads));
  }

  Rows feed(const std::string& name, const FeedForwardSpec& spec, const Rows& x) const {
    Rows hidden = product(name + (spec.gated ? "gate" : "up"), x);
    for (Scalar& number : hidden) number = activate(spec.activation, number);
    if (spec.gated) {
      const Rows up = product(name + "up", x);
      for (std::int64_t i = 0; i < up.size(); ++i) hidden.data()[i] *= up.data()[i];
    }
    return product(name + "down", hidden);
  }

  // x + factor · after(part)
  Rows joined(const std::string& name, const ResidualSpec& spec, const Rows& x, const Rows& part) const {
    Rows y = norm(name + "after", spec.after, part);
    for (std::int64_t i = 0; i < y.size(); ++i) {
      y.data()[i] = x.data()[i] + static_cast<Scalar>(spec.factor) * y.data()[i];
    }
    return norm(name + "sum", spec.sum, y);
  }

  Rows block(const std::string& name, const BlockSpec& spec, const Rows& x,
             std::span<const std::int64_t> positions) const {
    const std::string first = name + "attention.", second = name + "feed_forward.";
    const Rows before = norm(first + "before", spec.attention_residual.before, x);
    const Rows attended = joined(first, spec.attention_residual, x, attend(first, spec.attention, before, positions));
    const Rows read = norm(second + "before", spec.feed_forward_residual.before, spec.parallel ? x : attended);
    return joined(second, spec.feed_forward_residual, attended, feed(second, spec.feed_forward, read));
  }

  static Rows copy_of(const Rows& x) {
    Rows y(x.shape());
    std::copy(x.begin(), x.end(), y.begin());
    return y;
  }

  const NetworkSpec& spec_;
  const Weights& weights_;
};

}  // namespace headlight::reference
