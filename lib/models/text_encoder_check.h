// What a TextEncoder refuses.
#pragma once

#include <cstdint>
#include <string>

#include "headlight/models/text_encoder.h"

namespace headlight::models {

// Throws std::invalid_argument in the name of TextEncoder.
[[noreturn]] void fail_call(const std::string& message);

// Throws unless poolings and layers of options somebody made fit each other, and there is the prompt they name.
void check_vector_options(const ModelOptions& options);

// Throws unless ids are ones of the vocabulary, at positions that there are; and, where the network counts distances
// (see TextNetwork), unless none is left out between others of its row.
void check_ids(const EncoderOptions& options, View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask,
               bool counts_distances);

}  // namespace headlight::models
