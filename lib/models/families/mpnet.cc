// MPNet: BERT with RoBERTa's positions and a bias of scores by the distance between tokens. (Song et al. 2020)
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr TensorName kMpnetNames[] = {
    {"embeddings.word", "embeddings.word_embeddings"},
    {"embeddings.position", "embeddings.position_embeddings"},
    {"embeddings.norm", "embeddings.LayerNorm"},
    {"relative_bias", "encoder.relative_attention_bias"},
    {"blocks.N.attention.query", "encoder.layer.N.attention.attn.q"},
    {"blocks.N.attention.key", "encoder.layer.N.attention.attn.k"},
    {"blocks.N.attention.value", "encoder.layer.N.attention.attn.v"},
    {"blocks.N.attention.output", "encoder.layer.N.attention.attn.o"},
    {"blocks.N.attention.sum", "encoder.layer.N.attention.LayerNorm"},
    {"blocks.N.feed_forward.up", "encoder.layer.N.intermediate.dense"},
    {"blocks.N.feed_forward.down", "encoder.layer.N.output.dense"},
    {"blocks.N.feed_forward.sum", "encoder.layer.N.output.LayerNorm"},
};
constexpr std::string_view kMpnetPrefixes[] = {"", "mpnet."};
constexpr std::string_view kMpnetOwn[] = {"embeddings.", "encoder."};
constexpr std::string_view kMpnetComputed[] = {"position_ids"};

// clang-format off
constexpr FolderKey kMpnetKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "hidden_act", Treatment::read, "", "`gelu` where it is missing"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "rows of the table: texts are shorter by 2"},
    {"config.json", "layer_norm_eps", Treatment::read, "", "1e-12 where it is missing"},
    {"config.json", "relative_attention_num_buckets", Treatment::refused, "32", "all that Transformers computes with"},
    {"config.json", "embedding_size", Treatment::refused, "", ""},
    {"config.json", "pad_token_id", Treatment::no_effect, "", "positions begin behind the id 1 whatever it says"},
};
// clang-format on

constexpr HeadLayer kMpnetHead[] = {
    {"classifier.dense", VectorLayer::Kind::dense, VectorLayer::Function::tanh},
    {"classifier.out_proj"},
};

FamilyConfig read_mpnet(const JsonValue& config) {
  constexpr std::int64_t kPadding = 1;
  FamilyConfig read{.network = post_norm(post_norm_sizes(config))};
  EmbeddingSpec& embedding = read.network.embedding;
  embedding.vocabulary = size(config, "vocab_size", 1);
  embedding.positions = size(config, "max_position_embeddings", kPadding + 3);
  read.positions = {.first = kPadding + 1, .padding = kPadding};
  read.longest = embedding.positions - read.positions.first;
  for (BlockSpec& block : read.network.blocks) block.attention.relative_bias = {.buckets = 32, .max_distance = 128};
  return read;
}

}  // namespace

constinit const Family kMpnet{"mpnet",        &read_mpnet, kMpnetNames,      kMpnetPrefixes,        kMpnetOwn,
                              kMpnetComputed, kMpnetKeys,  "MPNetTokenizer", {.layers = kMpnetHead}};

}  // namespace headlight::models
