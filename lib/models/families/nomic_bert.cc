// Nomic BERT: BERT with rotated heads, a gated feed-forward and hardly any bias, by the keys of its own code and those
// of Transformers. (Nussbaum et al. 2024)
#include <string_view>
#include <utility>

#include "headlight/models/errors.h"
#include "models/families/rope.h"
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr TensorName kNomicBertNames[] = {
    {"embeddings.word", "embeddings.word_embeddings"},
    {"embeddings.token_type", "embeddings.token_type_embeddings"},
    {"embeddings.norm", "emb_ln"},
    {"embeddings.norm", "embeddings.LayerNorm"},
    {"blocks.N.attention.query", "encoder.layers.N.attn.Wqkv", 0, 3},
    {"blocks.N.attention.query", "layers.N.self_attn.q_proj"},
    {"blocks.N.attention.key", "encoder.layers.N.attn.Wqkv", 1, 3},
    {"blocks.N.attention.key", "layers.N.self_attn.k_proj"},
    {"blocks.N.attention.value", "encoder.layers.N.attn.Wqkv", 2, 3},
    {"blocks.N.attention.value", "layers.N.self_attn.v_proj"},
    {"blocks.N.attention.output", "encoder.layers.N.attn.out_proj"},
    {"blocks.N.attention.output", "layers.N.self_attn.o_proj"},
    {"blocks.N.attention.sum", "encoder.layers.N.norm1"},
    {"blocks.N.attention.sum", "layers.N.post_attention_layernorm"},
    {"blocks.N.feed_forward.up", "encoder.layers.N.mlp.fc11"},
    {"blocks.N.feed_forward.up", "layers.N.mlp.up_proj"},
    {"blocks.N.feed_forward.gate", "encoder.layers.N.mlp.fc12"},
    {"blocks.N.feed_forward.gate", "layers.N.mlp.gate_proj"},
    {"blocks.N.feed_forward.down", "encoder.layers.N.mlp.fc2"},
    {"blocks.N.feed_forward.down", "layers.N.mlp.down_proj"},
    {"blocks.N.feed_forward.sum", "encoder.layers.N.norm2"},
    {"blocks.N.feed_forward.sum", "layers.N.post_mlp_layernorm"},
};
constexpr std::string_view kNomicBertPrefixes[] = {"", "bert.", "nomic_bert."};
constexpr std::string_view kNomicBertOwn[] = {"embeddings.", "emb_ln.", "encoder.", "layers."};
constexpr std::string_view kNomicBertComputed[] = {"position_ids", "token_type_ids", "inv_freq"};

// clang-format off
constexpr FolderKey kNomicBertKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "n_embd", Treatment::read, "", "or `hidden_size`"},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "n_layer", Treatment::read, "", "or `num_hidden_layers`"},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "n_head", Treatment::read, "", "or `num_attention_heads`"},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "n_inner", Treatment::read, "", "or `intermediate_size`; 4 times the width where both are missing"},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "activation_function", Treatment::read, "", "`swiglu` or `geglu`; or `hidden_act`"},
    {"config.json", "hidden_act", Treatment::read, "", "`silu` where both are missing"},
    {"config.json", "n_positions", Treatment::read, "", "the longest text; or `max_position_embeddings`"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "2048 where both are missing"},
    {"config.json", "type_vocab_size", Treatment::read, "", "2 where it is missing"},
    {"config.json", "layer_norm_epsilon", Treatment::read, "", "or `layer_norm_eps`"},
    {"config.json", "layer_norm_eps", Treatment::read, "", "1e-12 where both are missing"},
    {"config.json", "rotary_emb_base", Treatment::read, "", "or `rope_theta`; 1000 where both are missing"},
    {"config.json", "rope_theta", Treatment::read, "", ""},
    {"config.json", "rope_parameters", Treatment::read, "", ""},
    {"config.json", "rope_scaling", Treatment::read, "", "in place of rope_parameters"},
    {"config.json", "rotary_emb_fraction", Treatment::refused, "1|1.000000", ""},
    {"config.json", "rotary_emb_interleaved", Treatment::refused, "false", ""},
    {"config.json", "rotary_emb_scale_base", Treatment::refused, "", ""},
    {"config.json", "rotary_scaling_factor", Treatment::refused, "", ""},
    {"config.json", "partial_rotary_factor", Treatment::refused, "1|1.000000", ""},
    {"config.json", "head_dim", Treatment::read, "", ""},
    {"config.json", "num_key_value_heads", Treatment::refused, "", ""},
    {"config.json", "causal", Treatment::refused, "false", ""},
    {"config.json", "prenorm", Treatment::refused, "false", ""},
    {"config.json", "parallel_block", Treatment::refused, "false", ""},
    {"config.json", "use_rms_norm", Treatment::refused, "false", ""},
    {"config.json", "qkv_proj_bias", Treatment::refused, "false", ""},
    {"config.json", "mlp_fc1_bias", Treatment::refused, "false", ""},
    {"config.json", "mlp_fc2_bias", Treatment::refused, "false", ""},
    {"config.json", "scale_attn_weights", Treatment::refused, "true", ""},
    {"config.json", "scale_attn_by_inverse_layer_idx", Treatment::refused, "false", ""},
    {"config.json", "num_experts", Treatment::refused, "0", ""},
    {"config.json", "moe_every_n_layers", Treatment::refused, "0", ""},
    {"config.json", "auto_map", Treatment::no_effect, "", "its code is what is built here"},
    {"config.json", "max_trained_positions", Treatment::no_effect, "", "of rotary_scaling_factor"},
    {"config.json", "parallel_block_tied_norm", Treatment::no_effect, "", "of parallel_block"},
    {"config.json", "pad_vocab_size_multiple", Treatment::no_effect, "", "vocab_size is that of the table"},
    {"config.json", "attn_pdrop", Treatment::no_effect, "", "of training, as the next two"},
    {"config.json", "embd_pdrop", Treatment::no_effect, "", ""},
    {"config.json", "resid_pdrop", Treatment::no_effect, "", ""},
    {"config.json", "dense_seq_output", Treatment::no_effect, "", "of a task's head"},
    {"config.json", "fused_bias_fc", Treatment::no_effect, "", "how it is computed, as the next four"},
    {"config.json", "fused_dropout_add_ln", Treatment::no_effect, "", ""},
    {"config.json", "reorder_and_upcast_attn", Treatment::no_effect, "", ""},
    {"config.json", "use_flash_attn", Treatment::no_effect, "", ""},
    {"config.json", "use_xentropy", Treatment::no_effect, "", ""},
    {"config.json", "summary_activation", Treatment::no_effect, "", "of a task's head, as the next four"},
    {"config.json", "summary_first_dropout", Treatment::no_effect, "", ""},
    {"config.json", "summary_proj_to_labels", Treatment::no_effect, "", ""},
    {"config.json", "summary_type", Treatment::no_effect, "", ""},
    {"config.json", "summary_use_proj", Treatment::no_effect, "", ""},
};
// clang-format on

// Beside keys of Transformers that library passes keys of the model's own code over.
void check_keys_are_of_one_kind(const JsonValue& config) {
  if (!config.find("hidden_size")) return;
  constexpr std::pair<const char*, const char*> kPairs[] = {
      {"n_layer", "num_hidden_layers"},           {"n_head", "num_attention_heads"},
      {"n_inner", "intermediate_size"},           {"activation_function", "hidden_act"},
      {"n_positions", "max_position_embeddings"}, {"layer_norm_epsilon", "layer_norm_eps"},
      {"rotary_emb_base", "rope_theta"}};
  for (const auto& [own, other] : kPairs) {
    const bool is_there = config.find(other) || (std::string_view(own) == "rotary_emb_base" &&
                                                 (config.find("rope_parameters") || config.find("rope_scaling")));
    if (config.find(own) && !is_there) config.fail(own, std::string("is there beside hidden_size, expected ") + other);
  }
}

Activation gate_of(const JsonValue& config) {
  const auto name = config.string("activation_function");
  const Activation other = activation(config, "hidden_act", "silu");
  if (!name) return other;
  if (config.find("hidden_act") && (name == "geglu") != (other == Activation::gelu)) {
    config.fail("activation_function", "is " + in_quotes(*name) + ", which hidden_act is not");
  }
  if (name == "geglu") return activation_named(config, "activation_function", "gelu");
  if (name == "swiglu") return activation_named(config, "activation_function", "silu");
  config.fail("activation_function", "is " + in_quotes(*name) + ", expected swiglu or geglu");
}

FamilyConfig read_nomic_bert(const JsonValue& config) {
  check_keys_are_of_one_kind(config);
  PostNormSizes sizes;
  sizes.width = size(config, spelling(config, "n_embd", "hidden_size"), 1);
  sizes.blocks = size(config, spelling(config, "n_layer", "num_hidden_layers"), 0, std::nullopt, kMostBlocks);
  sizes.heads = head_sizes(config, sizes.width, spelling(config, "n_head", "num_attention_heads"));
  sizes.hidden_width = size(config, spelling(config, "n_inner", "intermediate_size"), 1, 4 * sizes.width);
  sizes.activation = gate_of(config);
  const std::string_view epsilon = spelling(config, "layer_norm_epsilon", "layer_norm_eps");
  sizes.epsilon = static_cast<float>(number(config, epsilon, 1e-12, 0, 1));
  const std::string_view longest = spelling(config, "n_positions", "max_position_embeddings");
  FamilyConfig read{.network = post_norm(sizes), .longest = size(config, longest, 2, 2048)};
  read.network.embedding.vocabulary = size(config, "vocab_size", 1);
  read.network.embedding.token_types = size(config, "type_vocab_size", 0, 2);
  const RotarySpec rotary = read_rope(config, {.head_dim = sizes.heads.head_dim,
                                               .longest = read.longest,
                                               .theta = 1000,
                                               .theta_key = spelling(config, "rotary_emb_base", "rope_theta")});
  for (BlockSpec& block : read.network.blocks) {
    block.attention.rotary = rotary;
    block.attention.input_bias = block.attention.output_bias = false;
    block.feed_forward.gated = true;
    block.feed_forward.input_bias = block.feed_forward.output_bias = false;
  }
  return read;
}

}  // namespace

constinit const Family kNomicBert{"nomic_bert",       &read_nomic_bert, kNomicBertNames,
                                  kNomicBertPrefixes, kNomicBertOwn,    kNomicBertComputed,
                                  kNomicBertKeys,     "BertTokenizer",  kBertHead};

}  // namespace headlight::models
