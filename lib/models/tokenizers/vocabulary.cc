#include "models/tokenizers/vocabulary.h"

#include <algorithm>

#include "headlight/models/errors.h"
#include "text/characters.h"

namespace headlight::models {

std::optional<std::string> vocabulary_excess(std::size_t tokens, std::uint64_t bytes) {
  const auto has = [](std::uint64_t count, const char* of, std::uint64_t most) {
    return "has " + std::to_string(count) + of + ", expected at most " + std::to_string(most);
  };
  constexpr auto kMostTokens = static_cast<std::uint64_t>(kMostIds);
  if (tokens > kMostTokens) return has(tokens, " tokens", kMostTokens);
  if (bytes > kLargestVocabularyFile) return has(bytes, " bytes", kLargestVocabularyFile);
  return std::nullopt;
}

std::optional<std::string> vocabulary_excess(std::span<const std::string> tokens) {
  std::uint64_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  return vocabulary_excess(tokens.size(), bytes);
}

std::string_view without_white_space_at_end(std::string_view token) {
  for (std::size_t begin = token.size(); begin > 0; token = token.substr(0, begin)) {
    if (!text::is_white_space(text::previous_code_point(token, begin))) return token;
  }
  return token;
}

std::string vocabulary_text(std::span<const std::string> tokens, const std::string& path) {
  std::string text;
  if (tokens.size() > static_cast<std::size_t>(kMostIds))
    throw FileError(path, "would have more than " + std::to_string(static_cast<std::size_t>(kMostIds)) + " lines");
  for (std::size_t number = 0; number < tokens.size(); ++number) {
    const std::string& token = tokens[number];
    const std::size_t kept = without_white_space_at_end(token).size();
    if (token.find('\n') != std::string::npos || token.ends_with('\r') || first_invalid(token) != token.size() ||
        (kept != token.size() && kept != 0) || (number == 0 && token.starts_with(kByteOrderMark))) {
      throw FileError(path, "cannot hold token " + std::to_string(number) + ", " + in_quotes(token) +
                                ": expected UTF-8 in one line");
    }
    text += token;
    text += '\n';
  }
  return text;
}

std::vector<std::string> vocabulary_lines(std::string_view text, const std::string& path) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> lines;
  const auto ends = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  lines.reserve(std::min(ends + 1, static_cast<std::size_t>(kMostIds)));
  while (!text.empty()) {
    if (lines.size() == static_cast<std::size_t>(kMostIds)) {
      throw FileError(path, "has more than " + std::to_string(static_cast<std::size_t>(kMostIds)) + " lines");
    }
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (first_invalid(line) != line.size()) {
      throw FileError(path, "line " + std::to_string(lines.size() + 1) + " is not UTF-8: " + in_quotes(line));
    }
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace headlight::models
