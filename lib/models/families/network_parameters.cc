#include "models/families/network_parameters.h"

namespace headlight::models {
namespace {

class Walk {
 public:
  Walk(const NetworkSpec& spec, const TakeParameter& take) : spec_(spec), take_(take) {}

  void all() const {
    const EmbeddingSpec& embedding = spec_.embedding;
    table("word", embedding.vocabulary);
    table("position", embedding.positions);
    table("token_type", embedding.token_types);
    norm("embeddings.norm", embedding.norm, spec_.width);
    for (std::size_t number = 0; number < spec_.blocks.size(); ++number) {
      const std::string name = "blocks." + std::to_string(number);
      attention(name + ".attention", spec_.blocks[number]);
      feed_forward(name + ".feed_forward", spec_.blocks[number]);
    }
    norm("norm", spec_.last_norm, spec_.width);
  }

 private:
  void table(const char* name, std::int64_t rows) const {
    if (rows > 0) take_("embeddings." + std::string(name) + ".weight", {rows, spec_.width});
  }
  void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias) const {
    take_(name + ".weight", {out, in});
    if (bias) take_(name + ".bias", {out});
  }
  void norm(const std::string& name, const NormSpec& norm, std::int64_t width) const {
    if (!norm) return;
    take_(name + ".weight", {width});
    if (norm.kind == NormKind::layer && norm.bias) take_(name + ".bias", {width});
  }
  void residual(const std::string& name, const ResidualSpec& residual) const {
    norm(name + ".before", residual.before, spec_.width);
    norm(name + ".after", residual.after, spec_.width);
    norm(name + ".sum", residual.sum, spec_.width);
  }
  void attention(const std::string& name, const BlockSpec& block) const {
    const AttentionSpec& spec = block.attention;
    const std::int64_t queries = spec.heads * spec.head_dim, keys = spec.key_value_heads * spec.head_dim;
    linear(name + ".query", queries, spec_.width, spec.input_bias);
    linear(name + ".key", keys, spec_.width, spec.input_bias);
    linear(name + ".value", keys, spec_.width, spec.input_bias);
    linear(name + ".output", spec_.width, queries, spec.output_bias);
    norm(name + ".query_norm", spec.query_norm, spec.whole_width_norms ? queries : spec.head_dim);
    norm(name + ".key_norm", spec.key_norm, spec.whole_width_norms ? keys : spec.head_dim);
    if (spec.sinks) take_(name + ".sinks", {spec.heads});
    residual(name, block.attention_residual);
  }
  void feed_forward(const std::string& name, const BlockSpec& block) const {
    const FeedForwardSpec& spec = block.feed_forward;
    if (spec.gated) linear(name + ".gate", spec.hidden_width, spec_.width, spec.input_bias);
    linear(name + ".up", spec.hidden_width, spec_.width, spec.input_bias);
    linear(name + ".down", spec_.width, spec.hidden_width, spec.output_bias);
    residual(name, block.feed_forward_residual);
  }

  const NetworkSpec& spec_;
  const TakeParameter& take_;
};

}  // namespace

void for_each_parameter(const NetworkSpec& spec, const TakeParameter& take) { Walk(spec, take).all(); }

}  // namespace headlight::models
