#include "text/unicode_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "text/published_versions.h"
#include "text/utf8.h"

namespace headlight::text {

int combining_class(std::int32_t character) noexcept {
  const int found = utf8proc_get_property(character)->combining_class;
  return found != 0 && in_ranges(kUnknownMarks, character) ? 0 : found;
}

std::size_t decompose(std::int32_t character, UnicodeForm form,
                      std::array<std::int32_t, kMostDecomposed>& parts) noexcept {
  // Most characters stand for themselves, but for Hangul, whose parts are computed.
  const bool hangul = character >= 0xAC00 && character <= 0xD7A3;
  const bool has_parts = hangul || utf8proc_get_property(character)->decomp_seqindex != UINT16_MAX;
  if (!has_parts || in_ranges(kUndecomposed, character)) {
    parts[0] = character;
    return 1;
  }
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (form.compatible ? UTF8PROC_COMPAT : 0));
  int boundary = 0;
  const auto count = utf8proc_decompose_char(character, parts.data(), kMostDecomposed, options, &boundary);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(count, 0));
}

namespace {

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

constexpr std::ptrdiff_t kFewMarks = 32;

// Puts the marks behind each character in order.
void sort_marks(std::vector<std::int32_t>& characters) {
  for (auto at = characters.begin(); at != characters.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end =
        std::find_if(at, characters.end(), [](utf8proc_int32_t next) { return combining_class(next) == 0; });
    const auto before = [](std::int32_t a, std::int32_t b) { return combining_class(a) < combining_class(b); };
    if (end - at > kFewMarks) {
      std::stable_sort(at, end, before);
    } else {  // in place
      for (auto mark = at + 1; mark < end; ++mark)
        std::rotate(std::upper_bound(at, mark, *mark, before), mark, mark + 1);
    }
    at = end;
  }
}

constexpr auto kComposing = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

bool is_unknown_mark(utf8proc_int32_t character) { return in_ranges(kUnknownMarks, character); }

// Composes what lies between marks that the published forms do not know.
void compose(std::vector<std::int32_t>& characters) {
  auto out = characters.begin();
  for (auto at = characters.begin(); at != characters.end();) {
    const auto end = std::find_if(at, characters.end(), is_unknown_mark);
    const auto size = at == end ? 0 : utf8proc_normalize_utf32(&*at, end - at, kComposing);
    out = std::copy(at, at + size, out);
    if (end == characters.end()) break;
    *out++ = *end;
    at = end + 1;
  }
  characters.erase(out, characters.end());
}

}  // namespace

void apply_form(std::string& text, UnicodeForm form, Spare& spare) {
  if (is_ascii(text)) return;
  std::vector<std::int32_t>& characters = spare.characters;
  characters.clear();
  characters.reserve(text.size());
  std::array<std::int32_t, kMostDecomposed> parts{};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t count = decompose(static_cast<std::int32_t>(next_code_point(text, at)), form, parts);
    characters.insert(characters.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
  }
  sort_marks(characters);
  if (form.composed) compose(characters);
  text.clear();
  for (const utf8proc_int32_t character : characters) append_utf8(text, static_cast<char32_t>(character));
}

namespace {

// Marks may be put in order, or join a letter before them, and so do the vowels and final consonants of Hangul.
bool may_join(std::int32_t character) noexcept {
  switch (utf8proc_category(character)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return true;
    default:
      return combining_class(character) != 0 || (character >= 0x1100 && character <= 0x11FF);
  }
}

// Nothing becomes of it and nothing joins it to what stands before it. Beyond U+FFFF it is not looked for.
bool is_plain(char32_t codepoint, UnicodeForm form) {
  if (codepoint > 0xFFFF) return false;
  const auto character = static_cast<std::int32_t>(codepoint);
  if (may_join(character) || utf8proc_category(character) == UTF8PROC_CATEGORY_CS) return false;
  const bool hangul = character >= 0xAC00 && character <= 0xD7A3;
  if (form.composed && hangul) return true;
  std::array<std::int32_t, kMostDecomposed> parts{};
  const std::size_t count = decompose(character, form, parts);
  if (count == 1 && parts[0] == character) return true;
  if (!form.composed) return false;
  // What is put together again.
  const auto end = parts.begin() + static_cast<std::ptrdiff_t>(count);
  if (std::any_of(parts.begin(), end, is_unknown_mark)) return false;
  return utf8proc_normalize_utf32(parts.data(), static_cast<utf8proc_ssize_t>(count), kComposing) == 1 &&
         parts[0] == character;
}

}  // namespace

FormTable::FormTable(UnicodeForm form, TableLimit& limit)
    : form_(form), is_plain_([form](char32_t c) -> std::uint8_t { return is_plain(c, form) ? 1 : 0; }, limit) {}

void FormTable::apply(std::string& text, Spare& spare) const {
  std::string &out = spare.text, &rest = spare.part;
  out.clear();
  std::size_t given = 0;   // what lies before went into `out`
  std::size_t behind = 0;  // where the last plain character begins
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t character = next_code_point(text, at);
    if (is_plain_(character) != 0) {
      behind = begin;
      continue;
    }
    // From the plain character before it to the next one, since it may join that.
    std::size_t end = at;
    while (at < text.size()) {
      const char32_t next = next_code_point(text, at);
      if (is_plain_(next) != 0) break;
      end = at;
    }
    out.append(text, given, behind - given);
    rest.assign(text, behind, end - behind);
    apply_form(rest, form_, spare);
    out += rest;
    given = behind = at = end;
  }
  if (given == 0) return;
  out.append(text, given);
  text.swap(out);
}

}  // namespace headlight::text
