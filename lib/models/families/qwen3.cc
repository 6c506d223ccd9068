// Qwen3, whose embedding models see what is before a token alone. (Yang et al. 2025)
#include "headlight/models/errors.h"
#include "models/families/llama_names.h"
#include "models/families/rope.h"
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// clang-format off
constexpr FolderKey kQwen3Keys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "num_key_value_heads", Treatment::read, "", "as many as num_attention_heads where it is missing"},
    {"config.json", "head_dim", Treatment::read, "", "128 where it is missing"},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "hidden_act", Treatment::read, "", "`silu` where it is missing"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "the longest text; 32768 where it is missing"},
    {"config.json", "rms_norm_eps", Treatment::read, "", "1e-6 where it is missing"},
    {"config.json", "attention_bias", Treatment::read, "", ""},
    {"config.json", "is_causal", Treatment::read, "", "false: a token sees those after it, too"},
    {"config.json", "layer_types", Treatment::read, "", "`full_attention` or `sliding_attention` for each layer"},
    {"config.json", "use_sliding_window", Treatment::read, "", ""},
    {"config.json", "sliding_window", Treatment::read, "", "with use_sliding_window alone; 4096 where it is missing; with is_causal false as far on each side"},
    {"config.json", "max_window_layers", Treatment::read, "", "the first layer with a window, where layer_types is missing"},
    {"config.json", "rope_parameters", Treatment::read, "", ""},
    {"config.json", "rope_scaling", Treatment::read, "", "in place of rope_parameters"},
    {"config.json", "rope_theta", Treatment::read, "", "where rope_parameters does not say; 10000 where it is missing too"},
    {"config.json", "pad_token_id", Treatment::read, "", "of scores: they are those of the last token that is another"},
    {"config.json", "partial_rotary_factor", Treatment::refused, "1|1.000000", ""},
};
// clang-format on

constexpr HeadLayer kQwen3Head[] = {{.file = "score", .bias = false}};

FamilyConfig read_qwen3(const JsonValue& config) {
  FamilyConfig read{.network = llama_like(config, "hidden_act", 1e-6),
                    .longest = size(config, "max_position_embeddings", 2, 32768)};
  NetworkSpec& network = read.network;
  const std::int64_t head_dim = size(config, "head_dim", 1, 128, kWidestHead);
  const bool windows = flag(config, "use_sliding_window");
  const auto blocks = static_cast<std::int64_t>(network.blocks.size());
  const std::int64_t first = windows ? size(config, "max_window_layers", 0, 28) : blocks;
  const std::vector<bool> sliding = sliding_blocks(
      config, blocks, [](std::int64_t b, std::int64_t from) { return b >= from; }, first);
  const std::int64_t window = windows ? size(config, "sliding_window", 1, 4096) : 0;
  expect_no_null(config, "is_causal");
  const bool causal = flag(config, "is_causal", true);
  const RotarySpec rotary = read_rope(config, {.head_dim = head_dim, .longest = read.longest});
  for (std::size_t number = 0; number < network.blocks.size(); ++number) {
    BlockSpec& block = network.blocks[number];
    AttentionSpec& attention = block.attention;
    attention.head_dim = head_dim;
    attention.query_norm = attention.key_norm = network.last_norm;
    attention.causal = causal;
    attention.rotary = rotary;
    if (!sliding[number]) continue;
    if (!windows) config.fail("use_sliding_window", "is false, expected true beside layer_types with windows");
    attention.window_before = causal ? window - 1 : window;
    attention.window_after = causal ? -1 : window;
  }
  return read;
}

}  // namespace

constinit const Family kQwen3{
    "qwen3",        &read_qwen3,      kLlamaNames,
    kLlamaPrefixes, kLlamaOwn,        kLlamaComputed,
    kQwen3Keys,     "Qwen2Tokenizer", {.pooling = PoolingMode::last_token, .layers = kQwen3Head}};

}  // namespace headlight::models
