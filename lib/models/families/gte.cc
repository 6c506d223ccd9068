// GTE, "new" by the name of its own code and "gte" by that of Transformers: BERT with rotated heads and a gated
// feed-forward. (Zhang et al. 2024)
#include <cmath>

#include "headlight/models/errors.h"
#include "models/families/rope.h"
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr TensorName kGteNames[] = {
    {"embeddings.word", "embeddings.word_embeddings"},
    {"embeddings.token_type", "embeddings.token_type_embeddings"},
    {"embeddings.norm", "embeddings.LayerNorm"},
    {"blocks.N.attention.query", "encoder.layer.N.attention.qkv_proj", 0, 3},
    {"blocks.N.attention.query", "layers.N.self_attn.q_proj"},
    {"blocks.N.attention.key", "encoder.layer.N.attention.qkv_proj", 1, 3},
    {"blocks.N.attention.key", "layers.N.self_attn.k_proj"},
    {"blocks.N.attention.value", "encoder.layer.N.attention.qkv_proj", 2, 3},
    {"blocks.N.attention.value", "layers.N.self_attn.v_proj"},
    {"blocks.N.attention.output", "encoder.layer.N.attention.o_proj"},
    {"blocks.N.attention.output", "layers.N.self_attn.o_proj"},
    {"blocks.N.attention.sum", "encoder.layer.N.attn_ln"},
    {"blocks.N.attention.sum", "layers.N.post_attention_layernorm"},
    {"blocks.N.feed_forward.up", "encoder.layer.N.mlp.up_gate_proj", 0, 2},
    {"blocks.N.feed_forward.up", "layers.N.mlp.up_proj"},
    {"blocks.N.feed_forward.gate", "encoder.layer.N.mlp.up_gate_proj", 1, 2},
    {"blocks.N.feed_forward.gate", "layers.N.mlp.gate_proj"},
    {"blocks.N.feed_forward.down", "encoder.layer.N.mlp.down_proj"},
    {"blocks.N.feed_forward.down", "layers.N.mlp.down_proj"},
    {"blocks.N.feed_forward.sum", "encoder.layer.N.mlp_ln"},
    {"blocks.N.feed_forward.sum", "layers.N.post_mlp_layernorm"},
};
constexpr std::string_view kGtePrefixes[] = {"", "new.", "gte."};
constexpr std::string_view kGteOwn[] = {"embeddings.", "encoder.", "layers."};
constexpr std::string_view kGteComputed[] = {"position_ids", "token_type_ids", "inv_freq"};

// clang-format off
constexpr FolderKey kGteKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "hidden_act", Treatment::read, "", "`gelu` where it is missing"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "the longest text; 8192 where it is missing"},
    {"config.json", "type_vocab_size", Treatment::read, "", "1 where it is missing"},
    {"config.json", "layer_norm_eps", Treatment::read, "", "1e-12 where it is missing"},
    {"config.json", "rope_theta", Treatment::read, "", "where it is missing 10000 of `new`, 160000 of `gte`"},
    {"config.json", "rope_parameters", Treatment::read, "", ""},
    {"config.json", "rope_scaling", Treatment::read, "", "in place of rope_parameters; of `new` also the type `ntk`"},
    {"config.json", "position_embedding_type", Treatment::refused, "'rope'", ""},
    {"config.json", "layer_norm_type", Treatment::refused, "'layer_norm'", ""},
    {"config.json", "logn_attention_scale", Treatment::refused, "false", ""},
    {"config.json", "logn_attention_clip1", Treatment::no_effect, "", "of logn_attention_scale"},
    {"config.json", "pack_qkv", Treatment::refused, "true", ""},
    {"config.json", "partial_rotary_factor", Treatment::refused, "1|1.000000", ""},
    {"config.json", "head_dim", Treatment::refused, "", ""},
    {"config.json", "num_key_value_heads", Treatment::refused, "", ""},
    {"config.json", "auto_map", Treatment::no_effect, "", "its code is what is built here"},
    {"config.json", "unpad_inputs", Treatment::no_effect, "", "texts are not padded"},
    {"config.json", "use_memory_efficient_attention", Treatment::no_effect, "", ""},
};
// clang-format on

// Angles of "ntk", which are those of a larger base, divided: θ_i = (s · base)^(−2i/d) / s^(2/d). (NTK-aware scaling,
// https://kexue.fm/archives/9706, of which a published file may have the variant with `mixed_b`)
RotarySpec read_ntk(const JsonValue& config, const JsonValue& scaling, const RopeDefaults& defaults) {
  RotarySpec rotary{.dims = defaults.head_dim, .base = number(config, defaults.theta_key, defaults.theta, 2, 1e12)};
  for (const auto& [key, value] : scaling.members()) {
    if (value.is_null() || key == "type" || key == "factor") continue;
    value.fail("is " + value.described() + ", which the type ntk here does not know");
  }
  const double factor = number(scaling, "factor", 0, 1, 1e6);
  if (factor == 1) return rotary;
  rotary.base *= factor;
  rotary.scaling = {.kind = RotaryScalingKind::linear,
                    .factor = std::pow(factor, 2 / static_cast<double>(defaults.head_dim)),
                    .original_length = defaults.longest};
  return rotary;
}

FamilyConfig read_with(const JsonValue& config, double theta) {
  const PostNormSizes sizes = post_norm_sizes(config);
  FamilyConfig read{.network = post_norm(sizes), .longest = size(config, "max_position_embeddings", 2, 8192)};
  read.network.embedding.vocabulary = size(config, "vocab_size", 1);
  read.network.embedding.token_types = size(config, "type_vocab_size", 0, 1);
  const RopeDefaults rope{.head_dim = sizes.heads.head_dim, .longest = read.longest, .theta = theta};
  const auto scaling = config.object("rope_scaling");
  const bool ntk = scaling && scaling->string("type").value_or("") == "ntk";
  const RotarySpec rotary = ntk ? read_ntk(config, *scaling, rope) : read_rope(config, rope);
  for (BlockSpec& block : read.network.blocks) {
    block.attention.rotary = rotary;
    block.feed_forward.gated = true;
    block.feed_forward.input_bias = false;
  }
  return read;
}

FamilyConfig read_new(const JsonValue& config) { return read_with(config, 10000); }
FamilyConfig read_gte(const JsonValue& config) { return read_with(config, 160000); }

}  // namespace

constinit const Family kNew{
    "new", &read_new, kGteNames, kGtePrefixes, kGteOwn, kGteComputed, kGteKeys, "PreTrainedTokenizerFast", kBertHead};
constinit const Family kGte{
    "gte", &read_gte, kGteNames, kGtePrefixes, kGteOwn, kGteComputed, kGteKeys, "XLMRobertaTokenizer", kBertHead};

}  // namespace headlight::models
