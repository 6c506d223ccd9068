// An Encoder as a network: its specification, and what it calls the parameters.
#pragma once

#include <string>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/layers/network_spec.h"
#include "layers/network/parameters.h"
#include "runtime/inner_api.h"

namespace headlight::layers {

// With every size set. Throws OutOfMemory.
[[nodiscard]] HEADLIGHT_INNER_API NetworkSpec specification_of(const EncoderOptions& options);

// A parameter by the name that an encoder has for it: all rows of a matrix, or a vector.
struct RenamedParameter {
  std::string name;
  MatrixParameter* matrix;
  VectorParameter* vector;
};

// In the order that an encoder has: those of the embeddings, the norm, and of each layer those of its products before
// those of its norms.
[[nodiscard]] std::vector<RenamedParameter> renamed(const Parameters& parameters);

}  // namespace headlight::layers
