// vocab.txt: one token a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/utf8.h"

namespace headlight::models {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
inline constexpr std::uint64_t kLargestVocabularyFile = std::uint64_t{32} << 20;
// So many tokens it has at most, and ids are below that.
inline constexpr std::int64_t kMostIds = std::int64_t{1} << 21;

// The lines of the file's text, without line ends or a byte-order mark. Throws FileError for a line that is not UTF-8
// or more than 2²¹ of them; `path` names the file there.
[[nodiscard]] std::vector<std::string> vocabulary_lines(std::string_view text, const std::string& path);

// What keeps tokens from being a vocabulary: that there are more than kMostIds ("has 2097153 tokens, expected at most
// 2097152"), or that they have more bytes together than kLargestVocabularyFile. Nothing where they can be one.
[[nodiscard]] std::optional<std::string> vocabulary_excess(std::span<const std::string> tokens);
[[nodiscard]] std::optional<std::string> vocabulary_excess(std::size_t tokens, std::uint64_t bytes);

// A token of UTF-8 as far as its last character that is not white space.
[[nodiscard]] std::string_view without_white_space_at_end(std::string_view token);

// The text of a file whose lines vocabulary_lines() gives back as those tokens. Throws FileError naming the first that
// no line holds (a line break, white space at its end, a byte-order mark at the file's beginning, what is not UTF-8).
[[nodiscard]] std::string vocabulary_text(std::span<const std::string> tokens, const std::string& path);

using text::first_invalid;

}  // namespace headlight::models
