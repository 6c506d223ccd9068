// Llama, whose tokens see those before them alone: hidden states, and scores. (Touvron et al. 2023; Grattafiori et al.
// 2024)
#include "models/families/llama_names.h"
#include "models/families/rope.h"
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// clang-format off
constexpr FolderKey kLlamaKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "num_key_value_heads", Treatment::read, "", "as many as num_attention_heads where it is missing"},
    {"config.json", "head_dim", Treatment::read, "", ""},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "hidden_act", Treatment::read, "", "`silu` where it is missing"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "the longest text; 2048 where it is missing"},
    {"config.json", "rms_norm_eps", Treatment::read, "", "1e-6 where it is missing"},
    {"config.json", "attention_bias", Treatment::read, "", ""},
    {"config.json", "mlp_bias", Treatment::read, "", ""},
    {"config.json", "is_causal", Treatment::read, "", "false: a token sees those after it, too"},
    {"config.json", "rope_parameters", Treatment::read, "", ""},
    {"config.json", "rope_scaling", Treatment::read, "", "in place of rope_parameters"},
    {"config.json", "rope_theta", Treatment::read, "", "where rope_parameters does not say; 10000 where it is missing too"},
    {"config.json", "pad_token_id", Treatment::read, "", "of scores: they are those of the last token that is another"},
    {"config.json", "partial_rotary_factor", Treatment::refused, "1|1.000000", ""},
    {"config.json", "pretraining_tp", Treatment::no_effect, "", "how products were split"},
};
// clang-format on

constexpr HeadLayer kLlamaHead[] = {{.file = "score", .bias = false}};

FamilyConfig read_llama(const JsonValue& config) {
  FamilyConfig read{.network = llama_like(config, "hidden_act", 1e-6),
                    .longest = size(config, "max_position_embeddings", 2, 2048)};
  const std::int64_t head_dim = head_sizes(config, read.network.width).head_dim;
  const RotarySpec rotary = read_rope(config, {.head_dim = head_dim, .longest = read.longest});
  const bool bias = flag(config, "mlp_bias");
  const bool causal = flag(config, "is_causal", true);
  for (BlockSpec& block : read.network.blocks) {
    block.attention.causal = causal;
    block.attention.rotary = rotary;
    block.feed_forward.input_bias = block.feed_forward.output_bias = bias;
  }
  return read;
}

}  // namespace

constinit const Family kLlama{"llama",
                              &read_llama,
                              kLlamaNames,
                              kLlamaPrefixes,
                              kLlamaOwn,
                              kLlamaComputed,
                              kLlamaKeys,
                              "PreTrainedTokenizerFast",
                              {.pooling = PoolingMode::last_token, .layers = kLlamaHead}};

}  // namespace headlight::models
