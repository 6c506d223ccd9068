// What an Encoder consists of.
#pragma once

#include "headlight/layers/encoder.h"
#include "layers/network/encoder_graph.h"

namespace headlight {

struct Encoder::State : layers::EncoderGraph {
  using EncoderGraph::EncoderGraph;
};

}  // namespace headlight
