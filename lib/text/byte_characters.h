// The characters that GPT-2's byte-level tokenizer writes bytes as: printable ones of Latin-1 as themselves, the others
// from U+0100 on.
#pragma once

#include <array>
#include <cstdint>

namespace headlight::text {

[[nodiscard]] constexpr bool is_written_as_itself(unsigned byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// By byte.
inline constexpr std::array<char32_t, 256> kByteCharacters = [] {
  std::array<char32_t, 256> characters{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) characters[byte] = is_written_as_itself(byte) ? byte : next++;
  return characters;
}();

// By character; −1 where a character stands for no byte.
inline constexpr std::array<std::int16_t, 0x144> kCharacterBytes = [] {
  std::array<std::int16_t, 0x144> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) bytes[kByteCharacters[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}();

[[nodiscard]] constexpr int byte_of(char32_t character) noexcept {
  return character < kCharacterBytes.size() ? kCharacterBytes[character] : -1;
}

}  // namespace headlight::text
