// Families of published models, each a table: what its config.json says of a headlight::Network, and which tensor of
// its file is which parameter of that.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "files/json_value.h"
#include "headlight/layers/network_spec.h"
#include "headlight/models/text_encoder.h"
#include "models/folder_keys.h"

namespace headlight::models {

// Which row of a table of positions a token takes: `first` and on, from the left. RoBERTa counts in front of it the
// tokens that are not `padding`, whose own row is that id: first = padding + 1. (fairseq's make_positions())
struct PositionRule {
  std::int64_t first = 0;
  std::int64_t padding = -1;  // −1: every token counts

  friend bool operator==(const PositionRule&, const PositionRule&) = default;
};

struct FamilyConfig {
  NetworkSpec network{};     // every size set
  std::int64_t longest = 0;  // tokens of a sequence
  PositionRule positions{};
};

// A parameter of headlight::Network, without ".weight" or ".bias", and its tensor in the file, behind the prefix; N
// stands for the number of a block. Where a tensor holds several, one above the other, `part` of `parts` equal shares
// of its rows is that. Of several lines of a parameter the first that the file has counts.
struct TensorName {
  std::string_view parameter;
  std::string_view file;
  int part = 0;
  int parts = 1;
};

// A layer of a head for classification, from the pooled vector on.
struct HeadLayer {
  std::string_view file;  // of its tensors, behind `prefix`, or without it
  VectorLayer::Kind kind = VectorLayer::Kind::dense;
  // Of a dense layer; unset where a key of config.json names it (activation_key).
  VectorLayer::Function function = VectorLayer::Function::identity;
  std::string_view activation_key{};
  bool bias = true;
  std::string_view bias_key{};  // of config.json, which says so in place of that
};

// What stands on a network whose `architectures` end in ForSequenceClassification.
struct Head {
  PoolingMode pooling = PoolingMode::cls;
  // Of config.json, which names "cls" or "mean" in place of that; with `late` also "late": the layers before the last
  // one see every token, and the last one the mean of what they make of them.
  std::string_view pooling_key{};
  std::span<const HeadLayer> layers{};
  bool late = false;                     // and "bos" is "cls", and no name is "late"
  std::string_view older_pooling_key{};  // where config.json does not have pooling_key
  std::int64_t padding = -1;             // of a last token, where config.json has no pad_token_id
};

struct Family {
  std::string_view model_type;
  // Throws FileError naming the key for what it cannot follow.
  FamilyConfig (*read)(const files::JsonValue& config);
  std::span<const TensorName> names;
  // What may stand in front of every name of the network, "" among them.
  std::span<const std::string_view> prefixes;
  // How names of the network begin: a tensor of such a name that nothing asks for is refused, all others are left
  // aside, such as poolers and heads.
  std::span<const std::string_view> own;
  // And those that are left aside nevertheless, since they are computed: tables of angles, numbers of positions.
  std::span<const std::string_view> computed;
  // Of config.json, beside those of every family.
  std::span<const FolderKey> keys;
  // Where no file names one; of a name that says nothing of the tokenizer, tokenizer.json decides.
  std::string_view tokenizer_class = "PreTrainedTokenizerFast";
  Head head{};
  // Whether Transformers 5 takes all of tokenizer.json beside a class of BERT's, too, as other versions do not.
  bool whole_tokenizer_file = false;
};

[[nodiscard]] std::span<const Family> families() noexcept;
// Null for a model_type that is none of theirs.
[[nodiscard]] const Family* find_family(std::string_view model_type) noexcept;
// Why a known model_type is not read, or "".
[[nodiscard]] std::string_view why_not_read(std::string_view model_type) noexcept;

}  // namespace headlight::models
