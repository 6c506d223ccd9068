// Gemma 3 without images, EmbeddingGemma among them: normalised before and behind each half. (Gemma Team 2025)
#include <cmath>

#include "models/families/rope.h"
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr TensorName kGemma3TextNames[] = {
    {"embeddings.word", "embed_tokens"},
    {"blocks.N.attention.before", "layers.N.input_layernorm"},
    {"blocks.N.attention.query", "layers.N.self_attn.q_proj"},
    {"blocks.N.attention.key", "layers.N.self_attn.k_proj"},
    {"blocks.N.attention.value", "layers.N.self_attn.v_proj"},
    {"blocks.N.attention.output", "layers.N.self_attn.o_proj"},
    {"blocks.N.attention.query_norm", "layers.N.self_attn.q_norm"},
    {"blocks.N.attention.key_norm", "layers.N.self_attn.k_norm"},
    {"blocks.N.attention.after", "layers.N.post_attention_layernorm"},
    {"blocks.N.feed_forward.before", "layers.N.pre_feedforward_layernorm"},
    {"blocks.N.feed_forward.gate", "layers.N.mlp.gate_proj"},
    {"blocks.N.feed_forward.up", "layers.N.mlp.up_proj"},
    {"blocks.N.feed_forward.down", "layers.N.mlp.down_proj"},
    {"blocks.N.feed_forward.after", "layers.N.post_feedforward_layernorm"},
    {"norm", "norm"},
};
constexpr std::string_view kGemma3TextPrefixes[] = {"", "model."};
constexpr std::string_view kGemma3TextOwn[] = {"embed_tokens.", "layers.", "norm."};
constexpr std::string_view kGemma3TextComputed[] = {"inv_freq"};

// clang-format off
constexpr FolderKey kGemma3TextKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "num_key_value_heads", Treatment::read, "", "as many as num_attention_heads where it is missing"},
    {"config.json", "head_dim", Treatment::read, "", ""},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "hidden_activation", Treatment::read, "", "`gelu_pytorch_tanh` where it is missing"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "the longest text"},
    {"config.json", "rms_norm_eps", Treatment::read, "", "1e-6 where it is missing"},
    {"config.json", "attention_bias", Treatment::read, "", ""},
    {"config.json", "query_pre_attn_scalar", Treatment::read, "", "scores are divided by its root; 256 where it is missing"},
    {"config.json", "use_bidirectional_attention", Treatment::read, "", "false: a token sees those before it alone"},
    {"config.json", "is_causal", Treatment::refused, "true", "use_bidirectional_attention says so"},
    {"config.json", "sliding_window", Treatment::read, "", "with use_bidirectional_attention half of it on each side"},
    {"config.json", "layer_types", Treatment::read, "", "`full_attention` or `sliding_attention` for each layer"},
    {"config.json", "sliding_window_pattern", Treatment::read, "", "where layer_types is missing; 6 where it is missing too"},
    {"config.json", "_sliding_window_pattern", Treatment::no_effect, "", "layer_types says so"},
    {"config.json", "original_max_position_embeddings", Treatment::refused, "", "rope_parameters say so for each type of layer"},
    {"config.json", "rope_parameters", Treatment::read, "", "by type of layer"},
    {"config.json", "rope_scaling", Treatment::read, "", "of full_attention, in place of rope_parameters; its type by `rope_type` alone"},
    {"config.json", "rope_theta", Treatment::read, "", "of full_attention where rope_parameters does not say; 1000000 where it is missing too"},
    {"config.json", "rope_local_base_freq", Treatment::read, "", "the same of sliding_attention; 10000"},
    {"config.json", "pad_token_id", Treatment::read, "", "of scores: they are those of the last token that is another; 0 where it is missing"},
    {"config.json", "partial_rotary_factor", Treatment::refused, "1|1.000000", ""},
    {"config.json", "attn_logit_softcapping", Treatment::refused, "", ""},
    {"config.json", "final_logit_softcapping", Treatment::no_effect, "", "of generation"},
};
// clang-format on

constexpr HeadLayer kGemma3TextHead[] = {{.file = "score", .bias = false}};

FamilyConfig read_gemma3_text(const JsonValue& config) {
  FamilyConfig read{.network = llama_like(config, "hidden_activation", 1e-6, true),
                    .longest = size(config, "max_position_embeddings", 2, 131072)};
  NetworkSpec& network = read.network;
  network.embedding.scale = static_cast<float>(std::sqrt(static_cast<double>(network.width)));
  const auto blocks = static_cast<std::int64_t>(network.blocks.size());
  const std::vector<bool> sliding = sliding_blocks(
      config, blocks, [](std::int64_t b, std::int64_t period) { return (b + 1) % period != 0; },
      size(config, "sliding_window_pattern", 1, 6));
  expect_no_null(config, "is_causal");
  const bool both_ways = flag(config, "use_bidirectional_attention");
  const std::int64_t window = size(config, "sliding_window", 1, 4096);
  const double divisor = number(config, "query_pre_attn_scalar", 256, 1e-3, 1e9);
  const std::int64_t head_dim = head_sizes(config, network.width).head_dim;
  RopeDefaults rope{.head_dim = head_dim, .longest = read.longest, .theta = 1e6};
  const RotarySpec whole = read_rope(config, rope, "full_attention");
  rope = {head_dim, read.longest, 10000, "rope_local_base_freq", false};
  const RotarySpec local = read_rope(config, rope, "sliding_attention");
  for (std::size_t number = 0; number < network.blocks.size(); ++number) {
    BlockSpec& block = network.blocks[number];
    AttentionSpec& attention = block.attention;
    attention.scale = static_cast<float>(1 / std::sqrt(divisor));
    attention.query_norm = attention.key_norm = network.last_norm;
    attention.causal = !both_ways;
    attention.rotary = sliding[number] ? local : whole;
    if (sliding[number]) {
      attention.window_before = both_ways ? window / 2 : window - 1;
      attention.window_after = both_ways ? window / 2 : -1;
    }
    block.attention_residual.after = block.feed_forward_residual.after = network.last_norm;
  }
  return read;
}

}  // namespace

constinit const Family kGemma3Text{"gemma3_text",
                                   &read_gemma3_text,
                                   kGemma3TextNames,
                                   kGemma3TextPrefixes,
                                   kGemma3TextOwn,
                                   kGemma3TextComputed,
                                   kGemma3TextKeys,
                                   "GemmaTokenizer",
                                   {.pooling = PoolingMode::last_token, .layers = kGemma3TextHead, .padding = 0}};

}  // namespace headlight::models
