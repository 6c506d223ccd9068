// An Encoder as a network, and a layer of it as a block alone: their specifications, and what they call the parameters.
#pragma once

#include <string>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/layers/network_spec.h"
#include "layers/network/graph.h"
#include "runtime/inner_api.h"

namespace headlight::layers {

// With every size set. Throws OutOfMemory.
[[nodiscard]] HEADLIGHT_INNER_API NetworkSpec specification_of(const EncoderOptions& options);
[[nodiscard]] HEADLIGHT_INNER_API BlockSpec specification_of(const TransformerLayerOptions& options);

// A parameter by the name that an encoder has for it: all rows of a matrix, or a vector.
struct RenamedParameter {
  std::string name;
  MatrixParameter* matrix;
  VectorParameter* vector;
};

// A graph whose parameters have the names and the order that an encoder gives them: those of the embeddings, the norm,
// and of each layer those of its products before those of its norms.
class EncoderGraph {
 public:
  // Of checked options: of an Encoder, or of a TransformerEncoderLayer (a TransformerDecoderLayer, which has a memory).
  // Throw OutOfMemory.
  explicit EncoderGraph(const EncoderOptions& options);
  EncoderGraph(const TransformerLayerOptions& options, bool has_memory);

  // As Layer::append_parameters().
  void append_parameters(const std::string& prefix, std::vector<ParameterPlace>& list, const Weights* named);

  Graph graph;

 private:
  std::vector<RenamedParameter> parameters_;
};

}  // namespace headlight::layers
