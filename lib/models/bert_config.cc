#include "models/bert_config.h"

#include <limits>

#include "files/json_value.h"
#include "headlight/models/errors.h"
#include "models/folder_keys.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// Larger than any model, small enough that products of two stay far below 2⁶³.
constexpr std::int64_t kLargestSize = std::numeric_limits<std::int32_t>::max();

std::int64_t size(const JsonValue& config, std::string_view key, std::int64_t least) {
  const auto value = config.integer(key);
  if (!value) config.fail(key, "is missing");
  if (*value < least || *value > kLargestSize) {
    config.fail(key, "is " + std::to_string(*value) + ", expected " + std::to_string(least) + " to " +
                         std::to_string(kLargestSize));
  }
  return *value;
}

Activation activation(const JsonValue& config) {
  const std::string name = config.string("hidden_act").value_or("gelu");
  std::string expected;
  for (const ActivationName& known : kActivationNames) {
    if (name == known.name) return known.activation;
    expected += (expected.empty() ? "" : ", ") + std::string(known.name);
  }
  config.fail("hidden_act", "is " + in_quotes(name) + ", expected one of " + expected);
}

// How heads are put together: a key of our own, absent where they are concatenated as in all published files.
Merge merge(const JsonValue& config) {
  const std::string given = config.string("head_merge").value_or("concatenate");
  const std::optional<Merge> known = parse_merge(given);
  if (!known) config.fail("head_merge", "is " + in_quotes(given) + ", expected the name of a Merge");
  return *known;
}

EncoderOptions read_encoder(const JsonValue& config) {
  EncoderOptions options;
  options.vocabulary = size(config, "vocab_size", 1);
  options.max_positions = size(config, "max_position_embeddings", 2);
  options.token_types = config.integer("type_vocab_size") ? size(config, "type_vocab_size", 0) : 2;
  options.width = size(config, "hidden_size", 1);
  options.heads = size(config, "num_attention_heads", 1);
  options.feed_forward_width = size(config, "intermediate_size", 1);
  options.layers = size(config, "num_hidden_layers", 0);
  options.norm = Norm::post;
  options.merge = merge(config);
  options.activation = activation(config);
  if (options.width % options.heads != 0) {
    config.fail("num_attention_heads", "is " + std::to_string(options.heads) + ", which does not divide hidden_size " +
                                           std::to_string(options.width));
  }
  const double epsilon = config.number("layer_norm_eps").value_or(1e-12);
  if (!(epsilon >= 0 && epsilon <= 1)) {
    config.fail("layer_norm_eps", "is " + std::to_string(epsilon) + ", expected 0 to 1");
  }
  options.layer_norm_epsilon = static_cast<float>(epsilon);
  const double dropout = config.number("hidden_dropout_prob").value_or(0.1);
  if (!(dropout >= 0 && dropout < 1)) {
    config.fail("hidden_dropout_prob", "is " + std::to_string(dropout) + ", expected 0 to below 1");
  }
  options.dropout = static_cast<float>(dropout);
  return options;
}

}  // namespace

BertConfig read_bert_config(const ModelFolder& folder, std::vector<std::string>& unknown) {
  const JsonValue config = folder.json(kConfigFile);
  const std::string family = config.string("model_type").value_or("bert");  // the oldest files do not say
  if (family != "bert") config.fail("model_type", "is " + in_quotes(family) + ", expected bert");
  check_keys(config, kConfigFile, "", unknown);
  return {read_encoder(config), config.string("tokenizer_class")};
}

}  // namespace headlight::models
