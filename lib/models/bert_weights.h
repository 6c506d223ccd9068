// The names of BERT's tensors, and those of headlight::Encoder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/models/safetensors.h"
#include "headlight/parameters.h"

namespace headlight::models {

// Weights under the names that headlight::Encoder takes. Most are views into the file; the joined biases lie here.
struct EncoderWeights {
  Weights weights;
  std::vector<std::vector<float>> joined;
  std::string prefix{};  // in front of every name in the file
};

// Finds every tensor of an encoder of those sizes in a BERT file, before anything of that size is allocated. Throws
// FileError naming the tensor, and both shapes where they differ; a tensor of the embeddings or a layer that the
// configuration knows nothing of is an error too. `file` must outlive the result.
[[nodiscard]] EncoderWeights find_bert_weights(SafetensorsFile& file, const EncoderOptions& options);

// The other way: a network's weights under BERT's names, as views into it.
[[nodiscard]] Weights name_as_bert(const headlight::Encoder& network, const std::string& prefix = "");

}  // namespace headlight::models
