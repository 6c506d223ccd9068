// What stands behind the pooling is what llama.cpp computes (build_pooling() of src/llama-graph.cpp of
// https://github.com/ggml-org/llama.cpp), but for GELU, which is by erf here, as in the models that were converted.
#include "models/gguf/score.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "models/describe.h"

namespace headlight::models {
namespace {

using Function = VectorLayer::Function;

WeightView tensor_of_shape(GgufFile& file, const std::string& name, const std::vector<std::int64_t>& shape) {
  WeightView view = file.float32(name);
  if (view.shape == shape) return view;
  throw FileError(file.path(),
                  "tensor " + in_quotes(name) + " has shape " + describe(view.shape) + ", expected " + describe(shape));
}

VectorLayer dense(GgufFile& file, const std::string& name, std::int64_t before, Function function) {
  const WeightView weight = file.float32(name + ".weight");
  if (weight.shape.size() != 2 || weight.shape[0] < 1 || weight.shape[1] != before) {
    throw FileError(file.path(), "tensor " + in_quotes(name + ".weight") + " has shape " + describe(weight.shape) +
                                     ", expected rows of " + std::to_string(before) + ", the width before it");
  }
  VectorLayer layer{.kind = VectorLayer::Kind::dense,
                    .width = weight.shape[0],
                    .weight = {weight.values.begin(), weight.values.end()},
                    .function = function};
  if (file.find(name + ".bias") != nullptr) {
    const WeightView bias = tensor_of_shape(file, name + ".bias", {layer.width});
    layer.bias.assign(bias.values.begin(), bias.values.end());
  }
  return layer;
}

constexpr std::string_view kBertPooler = "bert.pooler.dense";

// Under the names of Transformers, where such a head has the layers and biases that it has there. `modern`: where norms
// have no biases.
void name_layers(bool modern, ScoreHead& head) {
  const std::vector<VectorLayer>& layers = head.pooled.vector_layers;
  const bool pooled = head.pooled.pooling.front() == PoolingMode::cls;
  if (layers.back().bias.empty()) return;
  if (pooled && layers.size() == 2 && !layers[0].bias.empty()) head.names = {std::string(kBertPooler), "classifier"};
  if (!pooled && modern && layers.size() == 3) head.names = {"head.dense", "head.norm", "classifier"};
}

}  // namespace

std::unique_ptr<ScoreHead> read_gguf_head(const GgufMetadata& metadata, GgufFile& file, std::int64_t width) {
  constexpr std::int64_t kRank = 4;
  const std::string cls = "cls", norm = "cls.norm.weight", output = "cls.output";
  if (metadata.size("pooling_type", 0, 0) != kRank || file.find(output + ".weight") == nullptr) return nullptr;
  const bool modern = metadata.architecture() == "modern-bert";
  auto head = std::make_unique<ScoreHead>();
  head->pooled.encoder.width = width;
  if (!modern && metadata.architecture() != "bert") {
    head->unread = printable(file.path()) + ": scores of the architecture " + printable(metadata.architecture()) +
                   " are not built, expected bert or modern-bert";
    return head;
  }
  if (file.find(cls + ".weight") == nullptr) {  // a pooler that the converter left aside
    head->unread = printable(file.path()) + ": lacks the tensor 'cls.weight', which the head of scores needs";
    return head;
  }
  head->pooled.pooling = {modern ? PoolingMode::mean : PoolingMode::cls};
  std::vector<VectorLayer>& layers = head->pooled.vector_layers;
  layers.push_back(dense(file, cls, width, modern ? Function::gelu : Function::tanh));
  width = layers.back().width;
  if (file.find(norm) != nullptr) {
    const WeightView weight = tensor_of_shape(file, norm, {width});
    layers.push_back({.kind = VectorLayer::Kind::layer_norm,
                      .width = width,
                      .weight = {weight.values.begin(), weight.values.end()},
                      .epsilon = static_cast<float>(metadata.number("attention.layer_norm_epsilon", 1e-5, 0, 1))});
  }
  layers.push_back(dense(file, output, width, Function::identity));
  head->labels = layers.back().width;
  head->of_gguf = true;
  name_layers(modern && file.find("output_norm.bias") == nullptr, *head);
  head->function = head->labels == 1 ? Function::sigmoid : Function::identity;
  return head;
}

void add_gguf_head(const ScoreHead& head, JsonObject& config) {
  if (head.names.empty()) return;
  const bool bert = head.names.front() == kBertPooler;
  config.add_text("architectures",
                  bert ? R"(["BertForSequenceClassification"])" : R"(["ModernBertForSequenceClassification"])");
  JsonObject labels(": ", ", ");
  for (std::int64_t label = 0; label < head.labels; ++label) {
    labels.add(std::to_string(label), "LABEL_" + std::to_string(label));
  }
  config.add_text("id2label", "{" + labels.members() + "}");
  if (bert) return;
  config.add("classifier_pooling", "mean");
  config.add("classifier_bias", !head.pooled.vector_layers.front().bias.empty());
}

std::string prefix_beside_head(const ScoreHead& head) {
  if (head.names.empty()) return "";
  return head.names.front() == kBertPooler ? "bert." : "model.";
}

}  // namespace headlight::models
