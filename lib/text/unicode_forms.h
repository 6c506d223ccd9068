// Unicode's normalisation forms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/characters.h"
#include "text/scratch.h"
#include "text/table_limit.h"

namespace headlight::text {

struct UnicodeForm {
  bool compatible = false;  // NFKC, NFKD
  bool composed = false;    // NFC, NFKC
};

// In time that grows with n log n, however many marks follow one another.
void apply_form(std::string& text, UnicodeForm form, Spare& spare);

// A form for many texts: most characters are left as they are.
class FormTable {
 public:
  FormTable(UnicodeForm form, TableLimit& limit);
  // As apply_form().
  void apply(std::string& text, Spare& spare) const;

 private:
  UnicodeForm form_;
  // Nothing becomes of a character and nothing joins it to what stands before it, so what stands before it and what
  // begins with it are normalised each by itself.
  CharacterTable is_plain_;
};

inline constexpr std::size_t kMostDecomposed = 32;  // no character has more than 18
// What a character decomposes into, and how many they are: itself, if nothing else.
[[nodiscard]] std::size_t decompose(std::int32_t character, UnicodeForm form,
                                    std::array<std::int32_t, kMostDecomposed>& parts) noexcept;
// 0 of what no mark is put in order with.
[[nodiscard]] int combining_class(std::int32_t character) noexcept;

}  // namespace headlight::text
