// GGUF models in several files, NAME-00001-of-00003.gguf and so on: each says its number, from 0 on, and how many there
// are (split.no, split.count), and the first one all other metadata.
// https://github.com/ggml-org/llama.cpp/tree/master/tools/gguf-split
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/gguf.h"

namespace headlight::models {

// `file` itself, or where it says that it is the first of several, all of them as one; open(path) opens another. Throws
// FileError where the path is not that of the first, where others are missing, say otherwise or do not have as many
// tensors as the first says, and where two tensors have one name.
[[nodiscard]] GgufFile join_splits(GgufFile file, const std::function<GgufFile(const std::string& path)>& open);

// The first of all files of one model: what of those names, in ascending order, stands for all; "" where they are not
// all of one.
[[nodiscard]] std::string first_of_splits(const std::vector<std::string>& names);

}  // namespace headlight::models
