// The head of scores of a GGUF file.
#pragma once

#include <cstdint>
#include <memory>

#include "headlight/models/gguf.h"
#include "models/gguf_metadata.h"
#include "models/score_head.h"

namespace headlight::models {

// That of a file whose pooling_type is 4 (rank): dense layers "cls" and "cls.output", and "cls.norm" between them, of
// the first token's hidden state, or of modern-bert's mean. Scores go through the logistic function where there is one
// label alone, as those of folders do. Null for another file; a head that is not built says so when it is asked. Throws
// FileError for tensors that do not fit together.
[[nodiscard]] std::unique_ptr<ScoreHead> read_gguf_head(const GgufMetadata& metadata, GgufFile& file,
                                                        std::int64_t width);

}  // namespace headlight::models
