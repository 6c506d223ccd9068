// How byte-level tokenizers of GGUF files split texts, by tokenizer.ggml.pre.
#pragma once

#include <string>
#include <string_view>

#include "models/gguf_metadata.h"

namespace headlight::models {

struct GgufSplitting {
  std::string_view name;       // in tokenizer.ggml.pre
  std::string_view splits_by;  // what splits before bytes are written: JSON of Digits, or a regular expression
  bool composes = false;       // NFC before it
  bool ignores_merges = false;
  bool mask_takes_space = false;

  // pre_tokenizer of tokenizer.json.
  [[nodiscard]] std::string parts() const;
};

// That of the file; refuses a name that is not known.
[[nodiscard]] const GgufSplitting& gguf_splitting(const GgufMetadata& metadata);

}  // namespace headlight::models
