#include "models/bert_config.h"

#include "files/json_value.h"
#include "headlight/models/errors.h"
#include "models/families/config_values.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// clang-format off
constexpr FolderKey kBertKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "hidden_act", Treatment::read, "", "`gelu`, `gelu_python`, `gelu_new`, `gelu_pytorch_tanh`, `relu`, `silu`, `swish`; `gelu` where it is missing"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "also the longest text"},
    {"config.json", "type_vocab_size", Treatment::read, "", "2 where it is missing"},
    {"config.json", "layer_norm_eps", Treatment::read, "", "1e-12 where it is missing"},
    {"config.json", "hidden_dropout_prob", Treatment::read, "", "of training alone; 0.1 where it is missing"},
    {"config.json", "head_merge", Treatment::read, "", "a key of our own: how heads are put together"},
    {"config.json", "position_embedding_type", Treatment::refused, "'absolute'", ""},
    {"config.json", "embedding_size", Treatment::refused, "", "of ELECTRA"},
    {"config.json", "alibi_starting_size", Treatment::refused, "", "of MosaicBERT"},
    {"config.json", "num_key_value_heads", Treatment::refused, "", ""},
    {"config.json", "rope_theta", Treatment::refused, "", ""},
    {"config.json", "rope_scaling", Treatment::refused, "", ""},
    {"config.json", "rope_parameters", Treatment::refused, "", ""},
    {"config.json", "rotary_emb_base", Treatment::refused, "", ""},
    {"config.json", "sliding_window", Treatment::refused, "", ""},
};
// clang-format on

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
  options.activation = activation(config, "hidden_act", "gelu");
  if (options.width % options.heads != 0) {
    config.fail("num_attention_heads", "is " + std::to_string(options.heads) + ", which does not divide hidden_size " +
                                           std::to_string(options.width));
  }
  options.layer_norm_epsilon = static_cast<float>(number(config, "layer_norm_eps", 1e-12, 0, 1));
  const double dropout = config.number("hidden_dropout_prob").value_or(0.1);
  if (!(dropout >= 0 && dropout < 1)) {
    config.fail("hidden_dropout_prob", "is " + std::to_string(dropout) + ", expected 0 to below 1");
  }
  options.dropout = static_cast<float>(dropout);
  return options;
}

}  // namespace

std::span<const FolderKey> bert_keys() noexcept { return kBertKeys; }

BertConfig read_bert_config(const JsonValue& config, std::vector<std::string>& unknown) {
  check_keys(config, kConfigFile, "", unknown, kBertKeys);
  return {read_encoder(config), config.string("tokenizer_class")};
}

}  // namespace headlight::models
