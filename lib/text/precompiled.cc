#include "text/precompiled.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/cut.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

// Clusters of fewer bytes are looked for whole, before their characters.
constexpr std::size_t kLongCluster = 6;
constexpr std::size_t kLongestResult = 256;
constexpr std::int32_t kKindsEnd = 0x10000;

int digit_of(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  if (letter >= '0' && letter <= '9') return letter - '0' + 52;
  return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

// At most.
std::size_t most_bytes_in(std::string_view base64) { return base64.size() / 4 * 3 + 3; }

// Base64, with or without the padding.
std::string bytes_of(std::string_view text, const JsonValue& part) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(most_bytes_in(text));
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const int digit = digit_of(letter);
    if (digit < 0) part.fail("precompiled_charsmap", "is no base64");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t n = 4; n-- > 0;) word = word << 8 | static_cast<unsigned char>(bytes[at + n]);
  return word;
}

// A unit of Darts' double array. The children of a node lie at its place XOR its offset XOR their byte; a leaf, whose
// byte is 0, holds a value.
struct Unit {
  std::uint32_t bits;
  [[nodiscard]] bool has_leaf() const noexcept { return (bits >> 8 & 1) != 0; }
  [[nodiscard]] std::uint32_t value() const noexcept { return bits & 0x7FFFFFFF; }
  [[nodiscard]] std::uint32_t label() const noexcept { return bits & 0x800000FF; }
  [[nodiscard]] std::uint32_t offset() const noexcept { return bits >> 10 << ((bits & 0x200) >> 6); }
};

std::size_t end_of_cluster(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  std::int32_t state = 0;
  auto last = static_cast<std::int32_t>(next_code_point(text, end));
  while (end < text.size()) {
    std::size_t behind = end;
    const auto next = static_cast<std::int32_t>(next_code_point(text, behind));
    if (utf8proc_grapheme_break_stateful(last, next, &state)) break;
    last = next;
    end = behind;
  }
  return end;
}

}  // namespace

std::string Precompiled::bytes_in(const JsonValue& part, TableLimit& limit) {
  expect_keys(part, {"precompiled_charsmap"});
  const auto written = part.find("precompiled_charsmap");
  const auto text = written ? written->as_string() : std::nullopt;
  if (!text) part.fail("precompiled_charsmap", "is missing, expected a text");
  limit.take(most_bytes_in(*text));
  return bytes_of(*text, part);
}

Precompiled::Precompiled(const JsonValue& part, TableLimit& limit)
    : Precompiled(
          bytes_in(part, limit), [&](const std::string& message) { part.fail("precompiled_charsmap", message); },
          limit) {}

Precompiled::Precompiled(std::string_view bytes, const Fail& fail, TableLimit& limit) {
  limit.take(bytes.size() + kKindsEnd);
  const std::size_t size = bytes.size() < 4 ? 0 : word_at(bytes, 0);
  if (bytes.size() < 4 || size % 4 != 0 || size > bytes.size() - 4) fail("has no table of the size that it says");
  units_.reserve(size / 4);
  for (std::size_t at = 4; at < size + 4; at += 4) units_.push_back(word_at(bytes, at));
  results_.assign(bytes, size + 4);
  if (first_invalid(results_) != results_.size()) fail("holds what is not UTF-8");
  for (std::size_t begin = 0, end = 0; begin < results_.size(); begin = end + 1) {
    end = std::min(results_.find('\0', begin), results_.size());
    if (end - begin > kLongestResult) fail("makes a character too long");
  }
  kinds_.reserve(kKindsEnd);
  for (std::int32_t character = 0; character < kKindsEnd; ++character) kinds_.push_back(kind_of(character));
  passes_cuts_ = keeps_cut_letters();
}

bool Precompiled::keeps_cut_letters() const {
  std::string text;
  for (const CharacterRange& range : kCutLetters) {
    for (char32_t letter = range.first; letter <= range.last; ++letter) {
      text.clear();
      append_utf8(text, letter);
      const std::string_view result = find(text).value_or(text);
      if (result.empty()) return false;
      for (std::size_t at = 0; at < result.size();) {
        if (!is_cut_letter(next_code_point(result, at))) return false;
      }
    }
  }
  return true;
}

std::optional<std::string_view> Precompiled::find(std::string_view text) const {
  if (units_.empty()) return std::nullopt;
  std::size_t place = Unit{units_[0]}.offset();
  for (const char byte : text) {
    const auto label = static_cast<unsigned char>(byte);
    place ^= label;
    if (label == 0 || place >= units_.size()) return std::nullopt;
    const Unit unit{units_[place]};
    if (unit.label() != label) return std::nullopt;
    place ^= unit.offset();
    if (!unit.has_leaf()) continue;
    if (place >= units_.size()) return std::nullopt;
    const std::size_t begin = Unit{units_[place]}.value();
    if (begin >= results_.size() || (static_cast<unsigned char>(results_[begin]) & 0xC0) == 0x80) return std::nullopt;
    return std::string_view(results_).substr(begin, results_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

void Precompiled::append(std::string_view cluster, std::string& out) const {
  if (cluster.size() < kLongCluster) {
    if (const auto result = find(cluster)) {
      out += *result;
      return;
    }
  }
  for (std::size_t at = 0; at < cluster.size();) {
    const std::string_view character = cluster.substr(at, size_of_code_point(cluster[at]));
    out += find(character).value_or(character);
    at += character.size();
  }
}

bool Precompiled::may_begin_key(std::string_view text) const {
  if (units_.empty()) return false;
  std::size_t place = Unit{units_[0]}.offset();
  for (const char byte : text) {
    const auto label = static_cast<unsigned char>(byte);
    place ^= label;
    if (label == 0 || place >= units_.size()) return false;
    const Unit unit{units_[place]};
    if (unit.label() != label) return false;
    if (unit.has_leaf()) return true;
    place ^= unit.offset();
  }
  return true;
}

Precompiled::Kind Precompiled::kind_of(std::int32_t character) const {
  if (character >= 0xD800 && character <= 0xDFFF) return {};
  std::string text;
  append_utf8(text, static_cast<char32_t>(character));
  Kind kind;
  kind.begins_no_key = may_begin_key(text) ? 0 : 1;
  kind.is_no_key = find(text) ? 0 : 1;
  switch (utf8proc_get_property(character)->boundclass) {
    case UTF8PROC_BOUNDCLASS_OTHER:
    case UTF8PROC_BOUNDCLASS_CONTROL:
    case UTF8PROC_BOUNDCLASS_LF:
    case UTF8PROC_BOUNDCLASS_LV:
    case UTF8PROC_BOUNDCLASS_LVT:
    case UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC:
      kind.parts = 1;
      break;
    default:
      break;
  }
  return kind;
}

Precompiled::Kind Precompiled::kind_at(std::string_view text, std::size_t at, std::size_t& size) const {
  const CodePoint character = code_point_at(text, at);
  size = std::max<std::size_t>(character.size, 1);
  return character.value < kKindsEnd ? kinds_[character.value] : Kind{};
}

void Precompiled::apply(std::string& text, Spare& spare, bool& whole_front) const {
  std::string& out = spare.text;
  out.clear();
  std::size_t given = 0;    // what lies before went into `out`
  std::size_t cluster = 0;  // where one begins, from which on characters stay as they are
  bool begins = true;       // whether one begins here
  bool parts = false;       // whether the last character does
  for (std::size_t at = 0, size = 0; at < text.size(); at += size) {
    const Kind kind = kind_at(text, at, size);
    if (begins || (parts && kind.parts != 0)) cluster = at;
    parts = kind.parts != 0;
    begins = false;
    if (kind.begins_no_key != 0) continue;
    if (kind.is_no_key != 0) {
      // A cluster by itself, or within one whose beginning is no key.
      std::size_t behind = 0;
      if (at + size == text.size() || (parts && kind_at(text, at + size, behind).parts != 0)) continue;
    }
    out.append(text, given, cluster - given);
    std::size_t end = cluster;
    while (end < at + size) {
      const std::size_t begin = end;
      end = end_of_cluster(text, begin);
      append(std::string_view(text).substr(begin, end - begin), out);
      if (begin == 0 && out.empty()) whole_front = false;
    }
    given = cluster = end;
    begins = true;
    size = end - at;
  }
  if (given == 0) return;
  out.append(text, given);
  text.swap(out);
}

}  // namespace headlight::text
