#include "models/module_files.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "headlight/models/safetensors.h"
#include "models/describe.h"
#include "models/folder_keys.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// In the order in which their vectors stand beside each other.
constexpr std::array<std::pair<const char*, PoolingMode>, 6> kOlderKeys{{
    {"pooling_mode_cls_token", PoolingMode::cls},
    {"pooling_mode_max_tokens", PoolingMode::max},
    {"pooling_mode_mean_tokens", PoolingMode::mean},
    {"pooling_mode_mean_sqrt_len_tokens", PoolingMode::mean_sqrt_len},
    {"pooling_mode_weightedmean_tokens", PoolingMode::weighted_mean},
    {"pooling_mode_lasttoken", PoolingMode::last_token},
}};

constexpr std::array<std::pair<std::string_view, VectorLayer::Function>, 6> kFunctions{{
    {"torch.nn.modules.linear.Identity", VectorLayer::Function::identity},
    {"torch.nn.modules.activation.Tanh", VectorLayer::Function::tanh},
    {"torch.nn.modules.activation.ReLU", VectorLayer::Function::relu},
    {"torch.nn.modules.activation.GELU", VectorLayer::Function::gelu},
    {"torch.nn.modules.activation.SiLU", VectorLayer::Function::silu},
    {"torch.nn.modules.activation.Sigmoid", VectorLayer::Function::sigmoid},
}};

void check(const JsonValue& config, const char* file) {
  std::vector<std::string> unknown;
  understood([&] { check_keys(config, file, "", unknown); });
}

PoolingMode mode_of(const JsonValue& value) {
  if (!value.as_string()) value.fail("is " + value.described() + ", expected the name of a pooling");
  const auto mode = parse_pooling_mode(*value.as_string());
  if (!mode) {
    understood([&] {
      value.fail("is " + value.described() +
                 ", expected cls, max, mean, mean_sqrt_len_tokens, weightedmean or lasttoken");
    });
  }
  return *mode;
}

std::vector<PoolingMode> modes_of(const JsonValue& config) {
  std::vector<PoolingMode> modes, older;
  for (const auto& [key, mode] : kOlderKeys) {
    if (config.boolean(key).value_or(false)) older.push_back(mode);
  }
  const auto value = config.find("pooling_mode");
  if (value && value->is_array()) {
    for (const JsonValue& one : value->elements()) {
      if (modes.size() == kMostModules) value->fail("has more than " + std::to_string(kMostModules) + " poolings");
      modes.push_back(mode_of(one));
    }
    if (modes.empty()) value->fail("is empty, expected a pooling");
    return modes;
  }
  if (value) return {mode_of(*value)};
  return older.empty() ? std::vector{PoolingMode::mean} : older;
}

// The numbers of a tensor of that shape, which must be there.
std::vector<float> numbers(SafetensorsFile& file, const std::string& name, const std::vector<std::int64_t>& shape) {
  if (file.find(name) == nullptr) throw FileError(file.path(), "lacks the tensor " + in_quotes(name));
  const WeightView view = file.float32(name);
  if (view.shape != shape) {
    throw FileError(file.path(), "tensor " + in_quotes(name) + " has shape " + describe(view.shape) +
                                     ", but config.json says " + describe(shape));
  }
  return {view.values.begin(), view.values.end()};
}

void check_no_others(const SafetensorsFile& file, std::initializer_list<std::string_view> known) {
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (std::find(known.begin(), known.end(), entry.name) != known.end()) continue;
    throw FileError(file.path(), "holds the tensor " + in_quotes(entry.name) + ", which config.json does not ask for");
  }
}

SafetensorsFile weights_of(const ModelFolder& folder) {
  if (!folder.has(kWeightsFile)) {
    throw NotBuilt{printable(folder.path(kWeightsFile)) + ": is not there, expected the weights of this module"};
  }
  return folder.safetensors(kWeightsFile);
}

// A width that the file says, which is that of what goes in.
void check_width(const JsonValue& config, const char* key, std::int64_t before) {
  const auto width = config.integer(key);
  if (!width) config.fail(key, "is missing");
  if (*width == before) return;
  config.fail(key, "is " + std::to_string(*width) + ", expected the width before it, " + std::to_string(before));
}

}  // namespace

std::optional<VectorLayer::Function> parse_function(std::string_view name) noexcept {
  for (const auto& [known, function] : kFunctions) {
    if (known == name) return function;
  }
  return std::nullopt;
}

std::int64_t vector_width(const ModelOptions& options) noexcept {
  std::int64_t width = options.encoder.width * static_cast<std::int64_t>(options.pooling.size());
  for (const VectorLayer& layer : options.vector_layers) width = layer.width != 0 ? layer.width : width;
  return width;
}

void read_pooling(const ModelFolder& folder, const std::optional<std::vector<PoolingMode>>& pooling,
                  ModelOptions& into) {
  if (pooling) into.pooling = *pooling;
  if (!folder.has(kConfigFile)) return;
  const JsonValue config = folder.json(kConfigFile);
  // Python takes a null for false.
  into.pool_prompt = config.boolean("include_prompt").value_or(!config.contains("include_prompt"));
  if (pooling) return;
  into.pooling = modes_of(config);
  check(config, "1_Pooling/config.json");
}

VectorLayer read_dense(const ModelFolder& folder, std::int64_t before) {
  const JsonValue config = folder.json(kConfigFile);
  check(config, "2_Dense/config.json");
  check_width(config, "in_features", before);
  VectorLayer layer{.kind = VectorLayer::Kind::dense};
  layer.width = config.integer("out_features").value_or(0);
  if (layer.width < 1 || layer.width > INT32_MAX) {
    config.fail("out_features", "is " + std::to_string(layer.width) + ", expected 1 to " + std::to_string(INT32_MAX));
  }
  const std::string function = config.string("activation_function").value_or("torch.nn.modules.activation.Tanh");
  const auto known = parse_function(function);
  if (!known) {
    understood([&] {
      config.fail("activation_function", "is " + in_quotes(function) + ", expected " + std::string(kFunctionNames));
    });
  }
  layer.function = *known;
  SafetensorsFile file = weights_of(folder);
  const bool has_bias = config.boolean("bias").value_or(true);
  layer.weight = numbers(file, "linear.weight", {layer.width, before});
  if (has_bias) layer.bias = numbers(file, "linear.bias", {layer.width});
  check_no_others(file, {"linear.weight", has_bias ? "linear.bias" : "linear.weight"});
  return layer;
}

VectorLayer read_layer_norm(const ModelFolder& folder, std::int64_t before) {
  const JsonValue config = folder.json(kConfigFile);
  check(config, "2_LayerNorm/config.json");
  check_width(config, "dimension", before);
  SafetensorsFile file = weights_of(folder);
  VectorLayer layer{.kind = VectorLayer::Kind::layer_norm};
  layer.weight = numbers(file, "norm.weight", {before});
  layer.bias = numbers(file, "norm.bias", {before});
  check_no_others(file, {"norm.weight", "norm.bias"});
  return layer;
}

void check_module(const ModelFolder& folder, const char* file) {
  if (folder.has(kConfigFile)) check(folder.json(kConfigFile), file);
}

}  // namespace headlight::models
