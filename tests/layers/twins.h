// The float64 (and plain float32) twins of layers, made from the layers' own weights.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "headlight/layers.h"
#include "reference/transformer.h"
#include "support/random.h"

namespace headlight::test {

// Every parameter of a layer, converted. The views handed out below live as long as this.
template <class Scalar>
class TwinWeights {
 public:
  explicit TwinWeights(const Weights& weights) {
    for (const auto& [name, weight] : weights) {
      shapes_[name] = weight.shape;
      values_[name].assign(weight.values.begin(), weight.values.end());
    }
  }

  // Rows [first, first + count) of a matrix; all with count = −1.
  [[nodiscard]] View<const Scalar, 2> matrix(const std::string& name, std::int64_t first = 0,
                                             std::int64_t count = -1) const {
    const std::vector<std::int64_t>& shape = shapes_.at(name);
    return {values_.at(name).data() + first * shape[1], {count < 0 ? shape[0] : count, shape[1]}};
  }
  // Nothing where there is no such parameter.
  [[nodiscard]] View<const Scalar, 1> vector(const std::string& name, std::int64_t first = 0,
                                             std::int64_t count = -1) const {
    if (!values_.contains(name)) return {};
    return {values_.at(name).data() + first, {count < 0 ? shapes_.at(name)[0] : count}};
  }
  // To change: the next layer made of them sees it.
  [[nodiscard]] std::vector<Scalar>& values(const std::string& name) { return values_.at(name); }
  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }

  [[nodiscard]] reference::Linear<Scalar> linear(const std::string& prefix) const {
    return {matrix(prefix + "weight"), vector(prefix + "bias")};
  }
  [[nodiscard]] reference::LayerNorm<Scalar> layer_norm(const std::string& prefix, double epsilon) const {
    return {vector(prefix + "weight"), vector(prefix + "bias"), static_cast<Scalar>(epsilon)};
  }

  // The twin knows as many key/value heads as query heads: each of ours is repeated for its group.
  [[nodiscard]] reference::MultiHeadAttention<Scalar> attention(const std::string& prefix, std::int64_t heads,
                                                                std::int64_t key_value_heads,
                                                                Merge merge = Merge::concatenate) {
    const std::int64_t width = matrix(prefix + "out_proj.weight").extent(0);
    const std::int64_t columns = width / heads * key_value_heads;
    const auto projection = [&](const char* separate, std::int64_t begin, std::int64_t count) {
      const bool is_packed = has(prefix + "in_proj_weight");
      return reference::Linear<Scalar>{
          is_packed ? matrix(prefix + "in_proj_weight", begin, count) : matrix(prefix + separate),
          vector(prefix + "in_proj_bias", begin, count)};
    };
    return {heads,
            projection("q_proj_weight", 0, width),
            repeated(projection("k_proj_weight", width, columns), heads, key_value_heads),
            repeated(projection("v_proj_weight", width + columns, columns), heads, key_value_heads),
            linear(prefix + "out_proj."),
            merge_of(prefix, merge)};
  }

  [[nodiscard]] reference::HeadMerge<Scalar> merge_of(const std::string& prefix, Merge merge) const {
    const auto projection = [&](const char* name) {
      return has(prefix + name) ? matrix(prefix + name) : View<const Scalar, 2>();
    };
    return {merge, vector(prefix + "merge_logits"),
            projection(merge == Merge::weighted_by_input ? "merge_proj.weight" : "gate_proj.weight")};
  }

  [[nodiscard]] reference::FeedForward<Scalar> feed_forward(const std::string& prefix, Activation activation) const {
    return {linear(prefix + "linear1."), linear(prefix + "linear2."), activation};
  }

  [[nodiscard]] reference::EncoderLayer<Scalar> encoder_layer(const std::string& prefix,
                                                              const TransformerLayerOptions& options) {
    return {attention(prefix + "self_attn.", options.heads, options.heads, options.merge),
            feed_forward(prefix, options.activation), layer_norm(prefix + "norm1.", options.layer_norm_epsilon),
            layer_norm(prefix + "norm2.", options.layer_norm_epsilon), options.norm == Norm::pre};
  }

  [[nodiscard]] reference::DecoderLayer<Scalar> decoder_layer(const TransformerLayerOptions& options) {
    return {attention("self_attn.", options.heads, options.heads, options.merge),
            attention("multihead_attn.", options.heads, options.heads, options.merge),
            feed_forward("", options.activation),
            layer_norm("norm1.", options.layer_norm_epsilon),
            layer_norm("norm2.", options.layer_norm_epsilon),
            layer_norm("norm3.", options.layer_norm_epsilon),
            options.norm == Norm::pre};
  }

 private:
  reference::Linear<Scalar> repeated(const reference::Linear<Scalar>& from, std::int64_t heads,
                                     std::int64_t key_value_heads) {
    const std::int64_t group = heads / key_value_heads;
    const std::int64_t head_dim = from.weight.extent(0) / key_value_heads;
    const std::int64_t in = from.weight.extent(1);
    std::vector<Scalar>& weight = made_.emplace_back(static_cast<std::size_t>(heads * head_dim * in));
    std::vector<Scalar>& bias = made_.emplace_back(static_cast<std::size_t>(heads * head_dim));
    for (std::int64_t row = 0; row < heads * head_dim; ++row) {
      const std::int64_t source = row / head_dim / group * head_dim + row % head_dim;
      for (std::int64_t e = 0; e < in; ++e) weight[static_cast<std::size_t>(row * in + e)] = from.weight(source, e);
      if (from.bias) bias[static_cast<std::size_t>(row)] = from.bias(source);
    }
    return {{weight.data(), {heads * head_dim, in}},
            from.bias ? View<const Scalar, 1>(bias.data(), {heads * head_dim}) : View<const Scalar, 1>()};
  }

  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::map<std::string, std::vector<Scalar>> values_;
  std::list<std::vector<Scalar>> made_;
};

// The dropouts of a transformer layer in that step, as headlight/layers/training.h numbers them.
inline reference::LayerDropouts dropouts_of(const TrainingStep& step, float probability) {
  return {step.dropout(probability, 0), step.dropout(probability, 1), step.dropout(probability, 2),
          step.dropout(probability, 3), step.dropout(probability, 4), step.dropout(probability, 5)};
}

// Weights as they begin, and biases and normalisations off their 0 and 1, so that a test sees them at work.
inline void randomize(Layer& layer, Random& random) {
  layer.initialize(random.next());
  for (const Parameter& parameter : layer.parameters()) {
    if (parameter.shape.size() != 1) continue;
    for (float& value : parameter.values) value += 0.3f * random.uniform();
  }
  layer.freeze();
}

}  // namespace headlight::test
