// What save() writes as it was in the files that a model came from.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "models/families/family_weights.h"
#include "models/saving/converted_weights.h"

namespace headlight::models {

struct SavedSource {
  // Empty where the options of the encoder say all of it.
  std::string config{};
  // Of a family: the tensors of the network. Of BERT: what stands in front of their names.
  TensorShares tensors{};
  Converted converted{};
  std::string prefix{};
  // The files of a tokenizer that is not BERT's, by their names: each gives its text.
  std::map<std::string, std::function<std::string()>> tokenizer{};
  // Why no folder holds this model, as a sentence; empty: one does.
  std::string refusal{};
};

}  // namespace headlight::models
