// The files of single modules of sentence-transformers: a Pooling, a Dense, a LayerNorm, a Normalize.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/models/text_encoder.h"
#include "models/model_folder.h"

namespace headlight::models {

inline constexpr std::size_t kMostModules = 32;

// What a folder asks of vectors that is not built: who needs no vectors may go on.
struct NotBuilt {
  std::string message;
};

// Calls f(), whose FileErrors say what is not built rather than what is malformed.
template <class Function>
void understood(Function f) {
  try {
    f();
  } catch (const FileError& error) {
    throw NotBuilt{error.what()};
  }
}

// The numbers of a vector behind the layers that are there.
[[nodiscard]] std::int64_t vector_width(const ModelOptions& options) noexcept;

// Of a dense layer, by the name of its class in torch.nn.
[[nodiscard]] std::optional<VectorLayer::Function> parse_function(std::string_view name) noexcept;
inline constexpr std::string_view kFunctionNames = "Identity, Sigmoid, Tanh, ReLU, GELU or SiLU of torch.nn.modules";

// All throw FileError for a file that is malformed, NotBuilt for what it may well say. `before` is the width of what
// goes in. A pooling whose file is not there is the mean; `pooling`, where given, stands in the place of its modes.
void read_pooling(const ModelFolder& folder, const std::optional<std::vector<PoolingMode>>& pooling,
                  ModelOptions& into);
[[nodiscard]] VectorLayer read_dense(const ModelFolder& folder, std::int64_t before);
[[nodiscard]] VectorLayer read_layer_norm(const ModelFolder& folder, std::int64_t before);
// Of a module that has nothing but keys, whose part of the table is that of `file`.
void check_module(const ModelFolder& folder, const char* file);

}  // namespace headlight::models
