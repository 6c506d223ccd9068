#include "text/unicode_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "text/published_versions.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

constexpr std::size_t kMostDecomposed = 32;  // no character has more than 18

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

int combining_class(utf8proc_int32_t character) {
  return in_ranges(kUnknownMarks, character) ? 0 : utf8proc_get_property(character)->combining_class;
}

// Puts the marks behind each character in order.
void sort_marks(std::vector<utf8proc_int32_t>& characters) {
  for (auto at = characters.begin(); at != characters.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end =
        std::find_if(at, characters.end(), [](utf8proc_int32_t next) { return combining_class(next) == 0; });
    std::stable_sort(at, end,
                     [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

// Composes what lies between marks that the published forms do not know.
void compose(std::vector<utf8proc_int32_t>& characters) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto is_unknown = [](utf8proc_int32_t character) { return in_ranges(kUnknownMarks, character); };
  auto out = characters.begin();
  for (auto at = characters.begin(); at != characters.end();) {
    const auto end = std::find_if(at, characters.end(), is_unknown);
    const auto size = at == end ? 0 : utf8proc_normalize_utf32(&*at, end - at, kOptions);
    out = std::copy(at, at + size, out);
    if (end == characters.end()) break;
    *out++ = *end;
    at = end + 1;
  }
  characters.erase(out, characters.end());
}

}  // namespace

void apply_form(std::string& text, UnicodeForm form) {
  if (is_ascii(text)) return;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (form.compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size());
  std::array<utf8proc_int32_t, kMostDecomposed> parts{};
  for (std::size_t at = 0; at < text.size();) {
    const auto character = static_cast<utf8proc_int32_t>(next_code_point(text, at));
    if (in_ranges(kUndecomposed, character)) {
      characters.push_back(character);
      continue;
    }
    int boundary = 0;
    const auto count = utf8proc_decompose_char(character, parts.data(), kMostDecomposed, options, &boundary);
    characters.insert(characters.end(), parts.begin(), parts.begin() + std::max<std::ptrdiff_t>(count, 0));
  }
  sort_marks(characters);
  if (form.composed) compose(characters);
  text.clear();
  for (const utf8proc_int32_t character : characters) append_utf8(text, static_cast<char32_t>(character));
}

}  // namespace headlight::text
