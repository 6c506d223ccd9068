// RoBERTa and its kin: BERT whose first token takes the row behind that of padding. (Liu et al. 2019; Conneau et al.
// 2020)
#include "headlight/models/errors.h"
#include "models/families/bert_names.h"
#include "models/families/tables.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr std::string_view kRobertaPrefixes[] = {"", "roberta."};
constexpr std::string_view kRobertaOwn[] = {"embeddings.", "encoder."};
constexpr std::string_view kRobertaComputed[] = {"position_ids", "token_type_ids"};

// clang-format off
constexpr FolderKey kRobertaKeys[] = {
    {"config.json", "vocab_size", Treatment::read, "", ""},
    {"config.json", "hidden_size", Treatment::read, "", ""},
    {"config.json", "num_hidden_layers", Treatment::read, "", ""},
    {"config.json", "num_attention_heads", Treatment::read, "", ""},
    {"config.json", "intermediate_size", Treatment::read, "", ""},
    {"config.json", "hidden_act", Treatment::read, "", "`gelu` where it is missing"},
    {"config.json", "max_position_embeddings", Treatment::read, "", "rows of the table: texts are shorter by pad_token_id + 1"},
    {"config.json", "pad_token_id", Treatment::read, "", "positions begin behind it; 1 where it is missing"},
    {"config.json", "type_vocab_size", Treatment::read, "", "2 where it is missing"},
    {"config.json", "layer_norm_eps", Treatment::read, "", "1e-12 where it is missing"},
    {"config.json", "position_embedding_type", Treatment::refused, "'absolute'", ""},
};
// clang-format on

constexpr HeadLayer kRobertaHead[] = {
    {"classifier.dense", VectorLayer::Kind::dense, VectorLayer::Function::tanh},
    {"classifier.out_proj"},
};

FamilyConfig read_roberta(const JsonValue& config) {
  FamilyConfig read{.network = post_norm(post_norm_sizes(config))};
  EmbeddingSpec& embedding = read.network.embedding;
  embedding.vocabulary = size(config, "vocab_size", 1);
  embedding.token_types = size(config, "type_vocab_size", 0, 2);
  embedding.positions = size(config, "max_position_embeddings", 3);
  const std::int64_t padding = size(config, "pad_token_id", 0, 1);
  read.positions = {.first = padding + 1, .padding = padding};
  read.longest = embedding.positions - read.positions.first;
  if (read.longest < 2) {
    config.fail("max_position_embeddings", "is " + std::to_string(embedding.positions) + ", expected at least " +
                                               std::to_string(read.positions.first + 2) + " rows beside pad_token_id");
  }
  return read;
}

constexpr Family family(std::string_view model_type, std::string_view tokenizer_class) {
  return {model_type,       &read_roberta, kBertNames,      kRobertaPrefixes,        kRobertaOwn,
          kRobertaComputed, kRobertaKeys,  tokenizer_class, {.layers = kRobertaHead}};
}

}  // namespace

constinit const Family kRoberta = family("roberta", "RobertaTokenizer");
constinit const Family kXlmRoberta = family("xlm-roberta", "XLMRobertaTokenizer");
constinit const Family kCamembert = family("camembert", "CamembertTokenizer");

}  // namespace headlight::models
