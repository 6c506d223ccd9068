// The regular expressions by which published byte-level tokenizers split a text, matched by hand. Each matches wherever
// it is tried, so that matches cover a text.
#pragma once

#include <cstddef>
#include <string_view>

namespace headlight::text {

// Where the match ends that begins at `at`, before the end of `text`.
using SplitPattern = std::size_t (*)(std::string_view text, std::size_t at);

// GPT-2's: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
[[nodiscard]] std::size_t match_gpt2(std::string_view text, std::size_t at);

// The pattern of a regular expression that a file spells: that of GPT-2, Llama 3 or Qwen 2; null for any other.
[[nodiscard]] SplitPattern find_split_pattern(std::string_view regex);

}  // namespace headlight::text
