#include "text/split_patterns.h"

#include <utf8proc.h>

#include <array>
#include <cstdint>
#include <utility>

#include "text/characters.h"
#include "text/published_versions.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

enum class CharacterKind : std::uint8_t { letter, number, space, other };

CharacterKind kind_beyond_ascii(char32_t character) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharacterKind::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharacterKind::number;
    default:
      break;
  }
  if (is_white_space(character)) return CharacterKind::space;
  const auto value = static_cast<std::int32_t>(character);
  if (in_ranges(kLaterLetters, value)) return CharacterKind::letter;
  return in_ranges(kLaterNumbers, value) ? CharacterKind::number : CharacterKind::other;
}

constexpr std::array<CharacterKind, 128> kAsciiKinds = [] {
  std::array<CharacterKind, 128> kinds{};
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    kinds[c] = letter                 ? CharacterKind::letter
               : c >= '0' && c <= '9' ? CharacterKind::number
               : space                ? CharacterKind::space
                                      : CharacterKind::other;
  }
  return kinds;
}();

struct Character {
  CharacterKind kind;
  std::size_t end;
};

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {kAsciiKinds[byte], at + 1};
  const char32_t character = next_code_point(text, at);
  return {kind_beyond_ascii(character), at};
}

bool is(std::string_view text, std::size_t at, CharacterKind kind) {
  return at < text.size() && character_at(text, at).kind == kind;
}

// Where the characters of a kind end, from `at` on, at most so many.
std::size_t end_of_run(std::string_view text, std::size_t at, CharacterKind kind, std::size_t most = SIZE_MAX) {
  for (; at < text.size() && most > 0; --most) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    at = next.end;
  }
  return at;
}

bool is_line_end(char byte) { return byte == '\r' || byte == '\n'; }

// \s+(?!\S)|\s+: white space without its last character, where that is followed by something else.
std::size_t end_of_space(std::string_view text, std::size_t at) {
  std::size_t end = at, last = at;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != CharacterKind::space) break;
    last = end;
    end = next.end;
  }
  return end < text.size() && last > at ? last : end;
}

// 's|'t|'re|'ve|'m|'ll|'d behind an apostrophe: where it ends, or `at`. Without case, ſ is an s.
std::size_t end_of_contraction(std::string_view text, std::size_t at, bool any_case) {
  const auto letter = [&](std::size_t place) {
    if (place >= text.size()) return '\0';
    const char byte = text[place];
    return any_case && byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 0x20) : byte;
  };
  const char first = letter(at + 1), second = letter(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l')) return at + 3;
  return any_case && text.substr(at + 1).starts_with("\u017F") ? at + 3 : at;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,most}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t match_llama(std::string_view text, std::size_t at, std::size_t most) {
  if (text[at] == '\'') {
    if (const std::size_t end = end_of_contraction(text, at, true); end > at) return end;
  }
  const Character first = character_at(text, at);
  if (first.kind == CharacterKind::letter) return end_of_run(text, first.end, CharacterKind::letter);
  if (first.kind == CharacterKind::number) return end_of_run(text, at, CharacterKind::number, most);
  if (!is_line_end(text[at]) && is(text, first.end, CharacterKind::letter))
    return end_of_run(text, first.end, CharacterKind::letter);
  const std::size_t mark = text[at] == ' ' ? first.end : at;
  if (is(text, mark, CharacterKind::other)) {
    std::size_t end = end_of_run(text, mark, CharacterKind::other);
    while (end < text.size() && is_line_end(text[end])) ++end;
    return end;
  }
  const std::size_t end = end_of_run(text, at, CharacterKind::space);
  const std::size_t line_end = text.substr(at, end - at).find_last_of("\r\n");
  return line_end != std::string_view::npos ? at + line_end + 1 : end_of_space(text, at);
}

std::size_t match_llama3(std::string_view text, std::size_t at) { return match_llama(text, at, 3); }
std::size_t match_qwen2(std::string_view text, std::size_t at) { return match_llama(text, at, 1); }

}  // namespace

std::size_t match_gpt2(std::string_view text, std::size_t at) {
  if (text[at] == '\'') {
    if (const std::size_t end = end_of_contraction(text, at, false); end > at) return end;
  }
  std::size_t begin = at;
  if (text[at] == ' ' && at + 1 < text.size() && !is(text, at + 1, CharacterKind::space)) ++begin;
  const Character first = character_at(text, begin);
  return first.kind == CharacterKind::space ? end_of_space(text, at) : end_of_run(text, first.end, first.kind);
}

SplitPattern find_split_pattern(std::string_view regex) {
  constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kLlama3 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kQwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (regex == kGpt2) return match_gpt2;
  if (regex == kLlama3) return match_llama3;
  return regex == kQwen2 ? match_qwen2 : nullptr;
}

}  // namespace headlight::text
