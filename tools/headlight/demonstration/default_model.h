// The model of models/demonstration, which is part of the program.
#pragma once

#include <span>

#include "headlight/models/text_encoder.h"
#include "headlight/number_type.h"
#include "tools/headlight/demonstration/model.h"

namespace headlight::demonstration {

// What stands for its folder in messages.
inline constexpr const char* kDefaultModel = "demonstration";

[[nodiscard]] std::span<const models::FileInMemory> default_model_files();

// A model that may know relations: from a folder, or the program's own where that is empty.
struct LoadedModel {
  models::TextEncoder encoder;
  std::optional<Readout> readout;  // none for other people's models
};
// `precision` is what its products multiply in. Throws models::FileError.
[[nodiscard]] LoadedModel load(const std::string& folder, NumberType precision = NumberType::float32);

}  // namespace headlight::demonstration
