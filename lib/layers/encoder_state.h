// What an Encoder consists of.
#pragma once

#include <vector>

#include "headlight/layers/encoder.h"
#include "layers/layer_names.h"
#include "layers/network/encoder_graph.h"
#include "layers/network/graph.h"

namespace headlight {

struct Encoder::State {
  layers::Graph graph{layers::kEncoderName};
  std::vector<layers::RenamedParameter> parameters{};
};

}  // namespace headlight
