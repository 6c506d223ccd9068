// DistilBERT: BERT without types of tokens, under names of its own. (Sanh et al. 2019)
#include "models/families/config_values.h"
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr TensorName kDistilBertNames[] = {
    {"embeddings.word", "embeddings.word_embeddings"},
    {"embeddings.position", "embeddings.position_embeddings"},
    {"embeddings.norm", "embeddings.LayerNorm"},
    {"blocks.N.attention.query", "transformer.layer.N.attention.q_lin"},
    {"blocks.N.attention.key", "transformer.layer.N.attention.k_lin"},
    {"blocks.N.attention.value", "transformer.layer.N.attention.v_lin"},
    {"blocks.N.attention.output", "transformer.layer.N.attention.out_lin"},
    {"blocks.N.attention.sum", "transformer.layer.N.sa_layer_norm"},
    {"blocks.N.feed_forward.up", "transformer.layer.N.ffn.lin1"},
    {"blocks.N.feed_forward.down", "transformer.layer.N.ffn.lin2"},
    {"blocks.N.feed_forward.sum", "transformer.layer.N.output_layer_norm"},
};
constexpr std::string_view kDistilBertPrefixes[] = {"", "distilbert."};
constexpr std::string_view kDistilBertOwn[] = {"embeddings.", "transformer."};
constexpr std::string_view kDistilBertComputed[] = {"position_ids"};

// clang-format off
constexpr FolderKey kDistilBertKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "max_position_embeddings", Treatment::read, "", "also the longest text"},
    {"config.json", "dim", Treatment::read, "", "or `hidden_size`"},
    {"config.json", "hidden_size", Treatment::read, "", "where `dim` is missing; else the same"},
    {"config.json", "n_layers", Treatment::read, "", "or `num_hidden_layers`"},
    {"config.json", "num_hidden_layers", Treatment::read, "", "where `n_layers` is missing; else the same"},
    {"config.json", "n_heads", Treatment::read, "", "or `num_attention_heads`"},
    {"config.json", "num_attention_heads", Treatment::read, "", "where `n_heads` is missing; else the same"},
    {"config.json", "hidden_dim", Treatment::read, "", ""},
    {"config.json", "activation", Treatment::read, "", "`gelu` where it is missing"},
    {"config.json", "sinusoidal_pos_embds", Treatment::no_effect, "", "the table is in the weights either way"},
    {"config.json", "dropout", Treatment::no_effect, "", "of training"},
    {"config.json", "qa_dropout", Treatment::no_effect, "", ""},
    {"config.json", "seq_classif_dropout", Treatment::no_effect, "", ""},
    {"config.json", "tie_weights_", Treatment::no_effect, "", "of a task's head"},
};
// clang-format on

constexpr HeadLayer kDistilBertHead[] = {
    {"pre_classifier", VectorLayer::Kind::dense, VectorLayer::Function::relu},
    {"classifier"},
};

FamilyConfig read_distilbert(const JsonValue& config) {
  PostNormSizes sizes;
  sizes.width = size(config, spelling(config, "dim", "hidden_size"), 1);
  sizes.blocks = size(config, spelling(config, "n_layers", "num_hidden_layers"), 0, std::nullopt, kMostBlocks);
  sizes.heads = whole_heads(config, sizes.width, spelling(config, "n_heads", "num_attention_heads"));
  sizes.hidden_width = size(config, "hidden_dim", 1);
  sizes.activation = activation(config, "activation", "gelu");
  sizes.epsilon = 1e-12f;  // no key says so
  FamilyConfig read{.network = post_norm(sizes), .longest = size(config, "max_position_embeddings", 2)};
  read.network.embedding.vocabulary = size(config, "vocab_size", 1);
  read.network.embedding.positions = read.longest;
  return read;
}

}  // namespace

constinit const Family kDistilBert{"distilbert",        &read_distilbert,      kDistilBertNames,
                                   kDistilBertPrefixes, kDistilBertOwn,        kDistilBertComputed,
                                   kDistilBertKeys,     "DistilBertTokenizer", {.layers = kDistilBertHead}};

}  // namespace headlight::models
