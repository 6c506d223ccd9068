// The head of scores of a GGUF file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headlight/models/gguf.h"
#include "models/gguf/metadata.h"
#include "models/json_text.h"
#include "models/score_head.h"

namespace headlight::models {

// That of a file whose pooling_type is 4 (rank): dense layers "cls" and "cls.output", and "cls.norm" between them, of
// the first token's hidden state, or of modern-bert's mean. Scores go through the logistic function where there is one
// label alone, as those of folders do. Null for another file; a head that is not built says so when it is asked. Throws
// FileError for tensors that do not fit together.
[[nodiscard]] std::unique_ptr<ScoreHead> read_gguf_head(const GgufMetadata& metadata, GgufFile& file,
                                                        std::int64_t width);

// What a folder's config.json says of that head, where it has names there; and what stands in front of the names of the
// network's tensors then.
void add_gguf_head(const ScoreHead& head, JsonObject& config);
[[nodiscard]] std::string prefix_beside_head(const ScoreHead& head);

}  // namespace headlight::models
