// A model out of a GGUF file alone.
#pragma once

#include <optional>
#include <string>

#include "headlight/models/gguf.h"
#include "headlight/models/text_encoder.h"
#include "models/load_tokenizer.h"

namespace headlight::models {

// The GGUF file that a path of load() means: itself, or the only one in a folder without config.json, or the first of
// those of one model; nothing where it means none. Throws FileError for a folder with others beside each other.
[[nodiscard]] std::optional<std::string> gguf_path(const std::string& path);

// `lasts`: whether its bytes are there as long as it is; else for the call alone.
[[nodiscard]] TextEncoder load_gguf(GgufFile file, const LoadModelOptions& wanted, bool lasts = true);
// As load_tokenizer().
[[nodiscard]] LoadedTokenizer load_gguf_tokenizer(GgufFile file);

}  // namespace headlight::models
