// Parts of a tokenizer.json in one line, to compare them and for messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "files/json_value.h"

namespace headlight::models {

// The parts of a normalizer or pre_tokenizer: those of a Sequence, or the one that it is; none for no part. Of more
// than 16 the first 17.
[[nodiscard]] std::vector<files::JsonValue> parts_of(const std::optional<files::JsonValue>& part);
// Each of them in a few words: {"Strip right", "Precompiled"}. What changes no id, such as trim_offsets, is left out.
// So is whether ByteLevel and Metaspace put a space before the text, which tokenizer_config.json says, too.
[[nodiscard]] std::vector<std::string> described_parts(const std::optional<files::JsonValue>& part);
// "Strip right, Precompiled"; "none" for no part.
[[nodiscard]] std::string joined(const std::vector<std::string>& parts);

// The kind of a model, and those of its options that are not the default: "BPE fuse_unk byte_fallback". Tokens and
// merges are left out, and so is the token for what is unknown.
[[nodiscard]] std::string described_model(const files::JsonValue& model);

}  // namespace headlight::models
