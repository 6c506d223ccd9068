// The tokenizer of a GGUF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "models/gguf/metadata.h"
#include "models/tokenizers/text_tokenizer.h"

namespace headlight::models {

// By tokenizer.ggml.model: "bert" is WordPiece, "gpt2" byte-level BPE split as tokenizer.ggml.pre says, "llama" BPE by
// scores (SentencePiece), "t5" Unigram. `rows`: of the table of words. Its tables may take text::TableLimit of the file
// without the bytes of its tensors, whose weights may be held once, nor `held`. Throws FileError naming the key for
// what is not built.
[[nodiscard]] std::unique_ptr<TextTokenizer> read_gguf_tokenizer(const GgufMetadata& metadata, std::int64_t rows,
                                                                 std::size_t held = 0);
// The text of a tokenizer.json of the same. Throws FileError where that would be longer than one may be, as soon as it
// is.
[[nodiscard]] std::string gguf_tokenizer_text(const GgufMetadata& metadata, std::int64_t rows);

}  // namespace headlight::models
