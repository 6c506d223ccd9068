// How byte-level tokenizers of GGUF files split texts, by tokenizer.ggml.pre.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "models/gguf/metadata.h"

namespace headlight::models {

struct GgufSplitting {
  // Splits further what the one before it left.
  struct Splitter {
    enum class Kind : std::uint8_t {
      expression,   // each match stands alone
      digits,       // each number
      numbers,      // numbers side by side
      punctuation,  // marks side by side
      words,        // words as GPT-2 has them, whose bytes become characters
      bytes,        // nothing, and bytes become characters
    };
    Kind kind;
    std::string_view expression{};  // of that kind
  };

  std::string_view name;  // in tokenizer.ggml.pre
  std::span<const Splitter> splitters;
  bool composes = false;  // NFC before them
  bool ignores_merges = false;
  bool mask_takes_space = false;

  // pre_tokenizer of tokenizer.json.
  [[nodiscard]] std::string parts() const;
};

// That of the file; refuses a name that is not known.
[[nodiscard]] const GgufSplitting& gguf_splitting(const GgufMetadata& metadata);

}  // namespace headlight::models
