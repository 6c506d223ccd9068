#include "models/score_head.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "models/describe.h"
#include "models/families/config_values.h"
#include "models/module_files.h"

namespace headlight::models {
namespace {

using files::JsonValue;

bool is_classifier(const JsonValue& config) {
  const auto architectures = config.find("architectures");
  if (!architectures) return false;
  for (const JsonValue& name : architectures->elements()) {
    const auto text = name.as_string();
    if (text && text->ends_with("ForSequenceClassification")) return true;
  }
  return false;
}

VectorLayer::Function function_of(const JsonValue& config, std::string_view key) {
  const std::string name = config.string(key).value_or("gelu");
  switch (activation_named(config, key, name)) {
    case Activation::relu:
      return VectorLayer::Function::relu;
    case Activation::silu:
      return VectorLayer::Function::silu;
    case Activation::gelu:
      return VectorLayer::Function::gelu;
    default:
      config.fail(key, "is " + in_quotes(name) + ", expected gelu, relu or silu");
  }
}

class LayerReader {
 public:
  LayerReader(const JsonValue& config, std::span<const std::string_view> prefixes, SafetensorsFile& file)
      : config_(config), prefixes_(prefixes), file_(file) {}

  [[nodiscard]] VectorLayer read(const HeadLayer& layer, std::int64_t before) {
    VectorLayer read{.kind = layer.kind, .function = layer.function};
    const WeightView weight = tensor(std::string(layer.file) + ".weight");
    names_.push_back(prefix_ + std::string(layer.file));
    const bool dense = layer.kind == VectorLayer::Kind::dense;
    const bool fits = weight.shape.size() == (dense ? 2u : 1u) && weight.shape.back() == before &&
                      weight.shape[0] > 0 && weight.shape[0] <= kLargestSize;
    if (!fits)
      fail(layer, weight.shape,
           dense ? "rows of " + std::to_string(before) + " numbers" : describe(std::vector{before}));
    read.width = weight.shape[0];
    read.weight.assign(weight.values.begin(), weight.values.end());
    if (!layer.activation_key.empty()) read.function = function_of(config_, layer.activation_key);
    if (!dense) read.epsilon = static_cast<float>(number(config_, "norm_eps", 1e-5, 0, 1));
    const bool has_bias = layer.bias_key.empty() ? layer.bias : flag(config_, layer.bias_key);
    if (!has_bias) return read;
    const WeightView bias = tensor(std::string(layer.file) + ".bias");
    if (bias.shape != std::vector<std::int64_t>{read.width}) fail(layer, bias.shape, describe(std::vector{read.width}));
    read.bias.assign(bias.values.begin(), bias.values.end());
    return read;
  }

  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  // Behind one of the prefixes, or without.
  [[nodiscard]] WeightView tensor(const std::string& name) {
    std::string found;
    const auto expect_one = [&](const std::string& other) {
      if (!found.empty() && file_.find(other) != nullptr) refuse_twin(file_.path(), other, found);
    };
    for (const std::string_view prefix : prefixes_) {
      const std::string whole = std::string(prefix) + name;
      expect_one(whole);
      if (file_.find(whole) == nullptr) continue;
      prefix_ = prefix;
      found = whole;
    }
    for (const std::string_view prefix : prefixes_) {
      if (!prefix.empty()) expect_one(std::string(prefix) + found);
    }
    if (!found.empty()) return file_.float32(found);
    throw FileError(file_.path(),
                    "lacks the tensor " + in_quotes(name) + ", which architectures of config.json ask for");
  }

  [[noreturn]] void fail(const HeadLayer& layer, const std::vector<std::int64_t>& shape, const std::string& expected) {
    throw FileError(file_.path(),
                    "tensor of " + in_quotes(layer.file) + " has shape " + describe(shape) + ", expected " + expected);
  }

  const JsonValue& config_;
  std::span<const std::string_view> prefixes_;
  SafetensorsFile& file_;
  std::string prefix_;  // of the tensor that was read last
  std::vector<std::string> names_;
};

// How many labels config.json says there are, if it says so.
std::optional<std::int64_t> labels_of(const JsonValue& config) {
  if (const auto names = config.object("id2label")) return static_cast<std::int64_t>(names->members().size());
  return config.integer("num_labels");
}

// The function that sentence-transformers 4 and those before it name.
void read_function(const JsonValue& config, ScoreHead& into) {
  into.function = into.labels == 1 ? VectorLayer::Function::sigmoid : VectorLayer::Function::identity;
  const auto own = config.object("sentence_transformers");
  const bool is_new = own && own->find("activation_fn");
  const JsonValue& place = is_new ? *own : config;
  const char* const key = is_new ? "activation_fn" : "sbert_ce_default_activation_function";
  const auto name = place.string(key);
  if (!name) return;
  if (const auto function = parse_function(*name)) {
    into.function = *function;
    return;
  }
  try {
    place.fail(key, "is " + in_quotes(*name) + ", expected " + std::string(kFunctionNames));
  } catch (const FileError& error) {
    into.unread = error.what();
  }
}

// The id that Transformers passes over when it looks for the last token.
std::int64_t padding_of(const JsonValue& config, const Head& head) {
  if (!head.pooling_key.empty() || head.pooling != PoolingMode::last_token) return -1;
  return config.contains("pad_token_id") ? config.integer("pad_token_id").value_or(-1) : head.padding;
}

struct HeadPooling {
  PoolingMode mode;
  bool late = false;
};

HeadPooling pooling_of(const JsonValue& config, const Head& head) {
  if (head.pooling_key.empty()) return {head.pooling};
  const bool older = !head.older_pooling_key.empty() && !config.find(head.pooling_key);
  const std::string_view key = older ? head.older_pooling_key : head.pooling_key;
  const std::string name = config.string(key).value_or(head.late ? "late" : "cls");
  // Transformers 5 passes the older key over, and the model's own code reads it alone.
  if (older && name != "late")
    config.fail(key, "is " + in_quotes(name) + ", expected " + std::string(head.pooling_key));
  if (name == (head.late ? "bos" : "cls")) return {PoolingMode::cls};
  if (name == "mean") return {PoolingMode::mean};
  if (head.late && name == "late") return {PoolingMode::mean, true};
  config.fail(key, "is " + in_quotes(name) + ", expected " + (head.late ? "bos, mean or late" : "cls or mean"));
}

}  // namespace

std::optional<ScoreHead> read_score_head(const JsonValue& config, const Head& head,
                                         std::span<const std::string_view> prefixes, std::int64_t width,
                                         SafetensorsFile& file) {
  if (head.layers.empty() || !is_classifier(config)) return std::nullopt;
  ScoreHead read;
  read.padding = padding_of(config, head);
  const HeadPooling pooling = pooling_of(config, head);
  read.pooled.pooling = {pooling.mode};
  std::int64_t before = width;
  LayerReader reader(config, prefixes, file);
  for (const HeadLayer& layer : head.layers) {
    read.pooled.vector_layers.push_back(reader.read(layer, before));
    before = read.pooled.vector_layers.back().width;
  }
  read.names = reader.names();
  if (pooling.late) {
    const auto last = std::prev(read.pooled.vector_layers.end());
    read.of_tokens.assign(std::make_move_iterator(read.pooled.vector_layers.begin()), std::make_move_iterator(last));
    read.pooled.vector_layers.erase(read.pooled.vector_layers.begin(), last);
  }
  read.pooled.encoder.width = read.of_tokens.empty() ? width : read.of_tokens.back().width;
  read.labels = before;
  if (const auto labels = labels_of(config); labels && *labels != read.labels) {
    config.fail(config.find("id2label") ? "id2label" : "num_labels",
                "has " + std::to_string(*labels) + " labels, but the weights have " + std::to_string(read.labels));
  }
  read_function(config, read);
  return read;
}

}  // namespace headlight::models
