// EuroBERT: Llama's blocks, in which every token sees every other. (Boizard et al. 2025)
#include "models/families/llama_names.h"
#include "models/families/rope.h"
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// clang-format off
constexpr FolderKey kEuroBertKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "num_key_value_heads", Treatment::read, "", "as many as num_attention_heads where it is missing"},
    {"config.json", "head_dim", Treatment::read, "", ""},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "hidden_act", Treatment::read, "", "`silu` where it is missing"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "the longest text; 8192 where it is missing"},
    {"config.json", "rms_norm_eps", Treatment::read, "", "1e-5 where it is missing"},
    {"config.json", "attention_bias", Treatment::read, "", ""},
    {"config.json", "mlp_bias", Treatment::read, "", ""},
    {"config.json", "rope_parameters", Treatment::read, "", ""},
    {"config.json", "rope_scaling", Treatment::read, "", "in place of rope_parameters"},
    {"config.json", "rope_theta", Treatment::read, "", "where rope_parameters does not say; 10000 where it is missing too"},
    {"config.json", "partial_rotary_factor", Treatment::refused, "1|1.000000", ""},
    {"config.json", "auto_map", Treatment::no_effect, "", "its code is what is built here"},
    {"config.json", "classifier_pooling", Treatment::read, "", "of scores: `bos`, `mean` or `late`, which it is where it is missing"},
    {"config.json", "clf_pooling", Treatment::read, "", "of the model's own code: where classifier_pooling is missing it must be `late`"},
    {"config.json", "hidden_dropout", Treatment::no_effect, "", "of training"},
    {"config.json", "pretraining_tp", Treatment::no_effect, "", "how products were split"},
    {"config.json", "mask_token", Treatment::no_effect, "", ""},
    {"config.json", "pad_token", Treatment::no_effect, "", ""},
    {"config.json", "bos_token", Treatment::no_effect, "", ""},
    {"config.json", "eos_token", Treatment::no_effect, "", ""},
};
// clang-format on

constexpr HeadLayer kEuroBertHead[] = {{.file = "dense", .function = VectorLayer::Function::gelu},
                                       {.file = "classifier"}};

FamilyConfig read_eurobert(const JsonValue& config) {
  FamilyConfig read{.network = llama_like(config, "hidden_act", 1e-5),
                    .longest = size(config, "max_position_embeddings", 2, 8192)};
  const std::int64_t head_dim = head_sizes(config, read.network.width).head_dim;
  const RotarySpec rotary = read_rope(config, {.head_dim = head_dim, .longest = read.longest});
  const bool bias = flag(config, "mlp_bias");
  for (BlockSpec& block : read.network.blocks) {
    block.attention.rotary = rotary;
    block.feed_forward.input_bias = block.feed_forward.output_bias = bias;
  }
  return read;
}

}  // namespace

constinit const Family kEuroBert{
    "eurobert",
    &read_eurobert,
    kLlamaNames,
    kLlamaPrefixes,
    kLlamaOwn,
    kLlamaComputed,
    kEuroBertKeys,
    "PreTrainedTokenizerFast",
    {.pooling_key = "classifier_pooling", .layers = kEuroBertHead, .late = true, .older_pooling_key = "clf_pooling"}};

}  // namespace headlight::models
