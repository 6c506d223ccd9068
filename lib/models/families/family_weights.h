// The tensors of a family's file under the names of headlight::Network.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "headlight/layers/network.h"
#include "headlight/models/gguf.h"
#include "headlight/models/safetensors.h"
#include "headlight/parameters.h"
#include "models/families/family.h"

namespace headlight::models {

// The tensors of a file by their names, each with the parameters that are equal shares of its rows, from above.
using TensorShares = std::map<std::string, std::vector<std::string>, std::less<>>;

struct FamilyWeights {
  Weights weights;
  // As the file names them, but for older names.
  TensorShares tensors;
};

// Views into the file, of every one of those parameters, found before anything of that size is allocated. Throws
// FileError naming the tensor, and both shapes where they differ; a tensor of the network that the configuration does
// not ask for is an error too. `file` must outlive the result.
[[nodiscard]] FamilyWeights find_family_weights(SafetensorsFile& file, const Family& family,
                                                std::span<const ParameterShape> parameters);
// The same of a GGUF file, by names of its own; what must be there its metadata say.
[[nodiscard]] FamilyWeights find_family_weights(GgufFile& file, const Family& family,
                                                std::span<const ParameterShape> parameters);

// The tensors of a file that is written for those parameters: of several lines of the family's table the last, which
// has the names of Transformers.
[[nodiscard]] TensorShares tensors_of(const Family& family, std::span<const ParameterShape> parameters);

}  // namespace headlight::models
