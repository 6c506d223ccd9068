// The tokenizer of a GGUF file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/gguf_metadata.h"
#include "models/text_tokenizer.h"

namespace headlight::models {

// By tokenizer.ggml.model: "bert" is WordPiece, "gpt2" byte-level BPE split as tokenizer.ggml.pre says, "llama" BPE by
// scores (SentencePiece), "t5" Unigram. `rows`: of the table of words. Throws FileError naming the key for what is not
// built.
struct GgufTokenizer {
  std::unique_ptr<TextTokenizer> tokenizer{};
  std::string text{};  // of a tokenizer.json of the same; empty of "bert"
};
[[nodiscard]] GgufTokenizer read_gguf_tokenizer(const GgufMetadata& metadata, std::int64_t rows);
// That text alone.
[[nodiscard]] std::string gguf_tokenizer_text(const GgufMetadata& metadata, std::int64_t rows);

}  // namespace headlight::models
