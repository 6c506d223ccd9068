// The tokens of single bytes, "<0x00>" to "<0xFF>", that stand for a text of which no token is made.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "text/vocabulary.h"

namespace headlight::text {

// That of a byte.
[[nodiscard]] std::string byte_token(unsigned byte);

class ByteFallback {
 public:
  // As `byte_fallback` of the model says; without it no text has such tokens.
  // find(token) gives a token's id.
  void read(const JsonValue& model, const std::function<std::uint32_t(std::string_view)>& find);

  // Calls take(id) for each byte. False, having called nothing, where a byte has no token.
  template <class Take>
  bool take_bytes(std::string_view text, Take take) const {
    if (!is_used_ || std::any_of(text.begin(), text.end(), [this](char byte) { return at(byte) == TokenTable::kNone; }))
      return false;
    for (const char byte : text) take(at(byte));
    return true;
  }

 private:
  [[nodiscard]] std::uint32_t at(char byte) const noexcept { return tokens_[static_cast<unsigned char>(byte)]; }

  bool is_used_ = false;
  std::array<std::uint32_t, 256> tokens_{};
};

}  // namespace headlight::text
