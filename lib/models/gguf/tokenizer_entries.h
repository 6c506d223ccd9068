// What a GGUF file says of its tokenizer, as a file of its own.
#pragma once

#include <cstddef>
#include <string>

#include "headlight/models/gguf.h"

namespace headlight::models {

// A GGUF file of those entries alone, and of the architecture; and how many bytes it has.
[[nodiscard]] std::string gguf_tokenizer_entries(const GgufFile& file);
[[nodiscard]] std::size_t gguf_tokenizer_bytes(const GgufFile& file);

}  // namespace headlight::models
