#include "models/saving/saved_vectors.h"

#include <algorithm>
#include <cstddef>

#include "headlight/models/safetensors.h"
#include "models/json_text.h"
#include "models/model_folder.h"
#include "runtime/list_text.h"

namespace headlight::models {
namespace {

const char* type_of(const VectorLayer& layer) {
  switch (layer.kind) {
    case VectorLayer::Kind::dense:
      return "Dense";
    case VectorLayer::Kind::layer_norm:
      return "LayerNorm";
    default:
      return "Normalize";
  }
}

const char* name_of(VectorLayer::Function function) {
  switch (function) {
    case VectorLayer::Function::tanh:
      return "torch.nn.modules.activation.Tanh";
    case VectorLayer::Function::relu:
      return "torch.nn.modules.activation.ReLU";
    case VectorLayer::Function::gelu:
      return "torch.nn.modules.activation.GELU";
    case VectorLayer::Function::silu:
      return "torch.nn.modules.activation.SiLU";
    case VectorLayer::Function::sigmoid:
      return "torch.nn.modules.activation.Sigmoid";
    default:
      return "torch.nn.modules.linear.Identity";
  }
}

// "2_Dense": Transformer and Pooling are 0 and 1.
std::string folder_of(const ModelOptions& options, std::size_t layer) {
  return std::to_string(layer + 2) + "_" + type_of(options.vector_layers[layer]);
}

std::string module_text(std::size_t number, const std::string& path, const std::string& type) {
  JsonObject module(": ", ", ");
  module.add("idx", number);
  module.add("name", std::to_string(number));
  module.add("path", path);
  module.add("type", "sentence_transformers.models." + type);
  return "{" + module.members() + "}";
}

std::string pooling_text(const ModelOptions& options) {
  JsonObject pooling(": ", ",\n  ");
  pooling.add("word_embedding_dimension", options.encoder.width);
  std::string modes;
  for (const PoolingMode mode : options.pooling) runtime::append_item(modes, json_text(name(mode)));
  pooling.add_text("pooling_mode", options.pooling.size() == 1 ? modes : "[" + modes + "]");
  pooling.add("include_prompt", options.pool_prompt);
  return pooling.document();
}

std::string layer_text(const VectorLayer& layer, std::int64_t before) {
  JsonObject config(": ", ",\n  ");
  if (layer.kind == VectorLayer::Kind::dense) {
    config.add("in_features", before);
    config.add("out_features", layer.width);
    config.add("bias", !layer.bias.empty());
    config.add("activation_function", name_of(layer.function));
  } else if (layer.kind == VectorLayer::Kind::layer_norm) {
    config.add("dimension", before);
  }
  return config.document();
}

std::string prompts_text(const ModelOptions& options) {
  JsonObject prompts(": ", ", ");
  for (const auto& [name, text] : options.prompts) prompts.add(name, text);
  JsonObject document(": ", ",\n  ");
  document.add_text("prompts", "{" + prompts.members() + "}");
  if (options.default_prompt.empty()) {
    document.add("default_prompt_name", nullptr);
  } else {
    document.add("default_prompt_name", options.default_prompt);
  }
  if (options.truncate_dim != 0) document.add("truncate_dim", options.truncate_dim);
  return document.document();
}

}  // namespace

void add_vector_files(const ModelOptions& options, SavedFiles& files) {
  const bool has_prompts = std::any_of(options.prompts.begin(), options.prompts.end(),
                                       [](const auto& prompt) { return !prompt.second.empty(); });
  if (has_prompts || !options.default_prompt.empty() || options.truncate_dim != 0)
    files[kPromptsFile] = prompts_text(options);
  const bool is_mean = options.pooling.size() == 1 && options.pooling[0] == PoolingMode::mean;
  if (is_mean && options.pool_prompt && options.vector_layers.empty()) return;
  files["1_Pooling/config.json"] = pooling_text(options);
  std::string modules = module_text(0, "", "Transformer") + ",\n  " + module_text(1, "1_Pooling", "Pooling");
  std::int64_t width = options.encoder.width * static_cast<std::int64_t>(options.pooling.size());
  for (std::size_t number = 0; number < options.vector_layers.size(); ++number) {
    const VectorLayer& layer = options.vector_layers[number];
    const std::string folder = folder_of(options, number);
    modules += ",\n  " + module_text(number + 2, folder, type_of(layer));
    files[folder + "/config.json"] = layer_text(layer, width);
    if (layer.width != 0) width = layer.width;
  }
  files[kModulesFile] = "[\n  " + modules + "\n]\n";
}

void write_layer_weights(const ModelOptions& options, const std::string& folder) {
  for (std::size_t number = 0; number < options.vector_layers.size(); ++number) {
    const VectorLayer& layer = options.vector_layers[number];
    if (layer.kind == VectorLayer::Kind::normalize) continue;
    const bool dense = layer.kind == VectorLayer::Kind::dense;
    const std::string name = dense ? "linear" : "norm";
    const auto count = static_cast<std::int64_t>(layer.weight.size());
    const std::vector<std::int64_t> shape = dense ? std::vector{layer.width, count / layer.width} : std::vector{count};
    Weights weights;
    weights.emplace(name + ".weight", WeightView{shape, layer.weight});
    if (!layer.bias.empty()) {
      weights.emplace(name + ".bias", WeightView{{static_cast<std::int64_t>(layer.bias.size())}, layer.bias});
    }
    write_safetensors(path_in(folder, folder_of(options, number) + "/" + kWeightsFile), weights, {{"format", "pt"}});
  }
}

}  // namespace headlight::models
