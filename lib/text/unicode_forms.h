// Unicode's normalisation forms.
#pragma once

#include <string>

namespace headlight::text {

struct UnicodeForm {
  bool compatible = false;  // NFKC, NFKD
  bool composed = false;    // NFC, NFKC
};

// In time that grows with n log n, however many marks follow one another.
void apply_form(std::string& text, UnicodeForm form);

}  // namespace headlight::text
