// ModernBERT: rotated heads, most blocks seeing a window alone. (Warner et al. 2024)
#include <optional>

#include "models/families/rope.h"
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr TensorName kModernBertNames[] = {
    {"embeddings.word", "embeddings.tok_embeddings"},        {"embeddings.norm", "embeddings.norm"},
    {"blocks.N.attention.before", "layers.N.attn_norm"},     {"blocks.N.attention.query", "layers.N.attn.Wqkv", 0, 3},
    {"blocks.N.attention.key", "layers.N.attn.Wqkv", 1, 3},  {"blocks.N.attention.value", "layers.N.attn.Wqkv", 2, 3},
    {"blocks.N.attention.output", "layers.N.attn.Wo"},       {"blocks.N.feed_forward.before", "layers.N.mlp_norm"},
    {"blocks.N.feed_forward.gate", "layers.N.mlp.Wi", 0, 2}, {"blocks.N.feed_forward.up", "layers.N.mlp.Wi", 1, 2},
    {"blocks.N.feed_forward.down", "layers.N.mlp.Wo"},       {"norm", "final_norm"},
};
constexpr std::string_view kModernBertPrefixes[] = {"", "model."};
constexpr std::string_view kModernBertOwn[] = {"embeddings.", "layers.", "final_norm."};
constexpr std::string_view kModernBertComputed[] = {"inv_freq"};

// clang-format off
constexpr FolderKey kModernBertKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "hidden_activation", Treatment::read, "", "`gelu` where it is missing"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "the longest text; 8192 where it is missing"},
    {"config.json", "norm_eps", Treatment::read, "", "1e-5 where it is missing"},
    {"config.json", "norm_bias", Treatment::read, "", ""},
    {"config.json", "attention_bias", Treatment::read, "", ""},
    {"config.json", "mlp_bias", Treatment::read, "", ""},
    {"config.json", "layer_types", Treatment::read, "", "`full_attention` or `sliding_attention` for each layer"},
    {"config.json", "global_attn_every_n_layers", Treatment::read, "", "where layer_types is missing; 3 where it is missing too"},
    {"config.json", "local_attention", Treatment::read, "", "the width of a window; 128 where it is missing"},
    {"config.json", "original_max_position_embeddings", Treatment::refused, "", "rope_parameters say so for each type of layer"},
    {"config.json", "rope_parameters", Treatment::read, "", "by type of layer"},
    {"config.json", "rope_scaling", Treatment::read, "", "in place of rope_parameters, of all layers; its type by `rope_type` alone"},
    {"config.json", "global_rope_theta", Treatment::read, "", "where rope_parameters does not say; 160000 where it is missing too"},
    {"config.json", "local_rope_theta", Treatment::read, "", "the same of windows; 10000"},
    {"config.json", "rope_theta", Treatment::refused, "", "some versions of Transformers take it for global_rope_theta"},
    {"config.json", "sliding_window", Treatment::refused, "", "some versions take it for half of local_attention"},
    {"config.json", "partial_rotary_factor", Treatment::refused, "1|1.000000", ""},
    {"config.json", "head_dim", Treatment::refused, "", ""},
    {"config.json", "num_key_value_heads", Treatment::refused, "", ""},
    {"config.json", "classifier_pooling", Treatment::read, "", "of scores: `cls`, `mean`"},
    {"config.json", "classifier_activation", Treatment::read, "", "of scores; `gelu` where it is missing"},
    {"config.json", "classifier_bias", Treatment::read, "", "of scores"},
    {"config.json", "position_embedding_type", Treatment::no_effect, "", "heads are rotated whatever it says"},
    {"config.json", "layer_norm_eps", Treatment::no_effect, "", "it is norm_eps"},
    {"config.json", "mlp_dropout", Treatment::no_effect, "", "of training"},
    {"config.json", "embedding_dropout", Treatment::no_effect, "", "of training"},
    {"config.json", "decoder_bias", Treatment::no_effect, "", "of a task's head"},
    {"config.json", "sparse_prediction", Treatment::no_effect, "", "of a task's head"},
    {"config.json", "sparse_pred_ignore_index", Treatment::no_effect, "", "of a task's head"},
    {"config.json", "deterministic_flash_attn", Treatment::no_effect, "", ""},
    {"config.json", "initializer_cutoff_factor", Treatment::no_effect, "", ""},
    {"config.json", "reference_compile", Treatment::no_effect, "", ""},
    {"config.json", "repad_logits_with_grad", Treatment::no_effect, "", ""},
};
// clang-format on

constexpr HeadLayer kModernBertHead[] = {
    {.file = "head.dense", .activation_key = "classifier_activation", .bias_key = "classifier_bias"},
    {.file = "head.norm", .kind = VectorLayer::Kind::layer_norm, .bias_key = "norm_bias"},
    {.file = "classifier"},
};

FamilyConfig read_modernbert(const JsonValue& config) {
  FamilyConfig read;
  read.longest = size(config, "max_position_embeddings", 2, 8192);
  NetworkSpec& network = read.network;
  network.width = size(config, "hidden_size", 1);
  network.embedding.vocabulary = size(config, "vocab_size", 1);
  const NormSpec norm = layer_norm_spec(number(config, "norm_eps", 1e-5, 0, 1), flag(config, "norm_bias"));
  network.embedding.norm = network.last_norm = norm;
  const HeadSizes heads = whole_heads(config, network.width, "num_attention_heads");
  const bool bias = flag(config, "attention_bias"), hidden_bias = flag(config, "mlp_bias");
  BlockSpec block;
  block.attention = {.heads = heads.heads,
                     .key_value_heads = heads.heads,
                     .head_dim = heads.head_dim,
                     .input_bias = bias,
                     .output_bias = bias};
  block.attention_residual.before = block.feed_forward_residual.before = norm;
  block.feed_forward = {.hidden_width = size(config, "intermediate_size", 1),
                        .activation = activation(config, "hidden_activation", "gelu"),
                        .gated = true,
                        .input_bias = hidden_bias,
                        .output_bias = hidden_bias};
  const std::int64_t blocks = size(config, "num_hidden_layers", 0, std::nullopt, kMostBlocks);
  const std::vector<bool> sliding = sliding_blocks(
      config, blocks, [](std::int64_t b, std::int64_t period) { return b % period != 0; },
      size(config, "global_attn_every_n_layers", 1, 3));
  const std::int64_t half = size(config, "local_attention", 0, 128) / 2;
  RopeDefaults rope{heads.head_dim, read.longest, 160000, "global_rope_theta"};
  const RotarySpec whole = read_rope(config, rope, "full_attention");
  rope.theta = 10000;
  rope.theta_key = "local_rope_theta";
  const RotarySpec local = read_rope(config, rope, "sliding_attention");
  for (const bool window : sliding) {
    block.attention.rotary = window ? local : whole;
    block.attention.window_before = block.attention.window_after = window ? half : -1;
    network.blocks.push_back(block);
  }
  // The embedding has been normalised already.
  if (!network.blocks.empty()) network.blocks.front().attention_residual.before = {};
  return read;
}

}  // namespace

constinit const Family kModernBert{"modernbert",
                                   &read_modernbert,
                                   kModernBertNames,
                                   kModernBertPrefixes,
                                   kModernBertOwn,
                                   kModernBertComputed,
                                   kModernBertKeys,
                                   "PreTrainedTokenizerFast",
                                   {.pooling_key = "classifier_pooling", .layers = kModernBertHead},
                                   true};

}  // namespace headlight::models
