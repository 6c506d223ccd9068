// What encoders refuse of the sequences that tokens belong to.
#pragma once

#include <cstdint>

#include "headlight/layers/encoder.h"

namespace headlight::layers {

// Throws unless the offsets are those of so many tokens.
void check_encoder_offsets(const EncoderInput& input, std::int64_t tokens);

}  // namespace headlight::layers
