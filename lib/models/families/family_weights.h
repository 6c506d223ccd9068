// The tensors of a family's file under the names of headlight::Network.
#pragma once

#include <span>

#include "headlight/layers/network.h"
#include "headlight/models/gguf.h"
#include "headlight/models/safetensors.h"
#include "headlight/parameters.h"
#include "models/families/family.h"

namespace headlight::models {

// Views into the file, of every one of those parameters, found before anything of that size is allocated. Throws
// FileError naming the tensor, and both shapes where they differ; a tensor of the network that the configuration does
// not ask for is an error too. `file` must outlive the result.
[[nodiscard]] Weights find_family_weights(SafetensorsFile& file, const Family& family,
                                          std::span<const ParameterShape> parameters);
// The same of a GGUF file, by names of its own; what must be there its metadata say.
[[nodiscard]] Weights find_family_weights(GgufFile& file, const Family& family,
                                          std::span<const ParameterShape> parameters);

}  // namespace headlight::models
