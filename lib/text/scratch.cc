#include "text/scratch.h"

#include "text/parts.h"

namespace headlight::text {
namespace {

// Elements of what is kept.
constexpr std::size_t kKept = std::size_t{1} << 16;
// Strings that a pre-tokenizer writes: of a ByteLevel two, of a Metaspace one.
constexpr std::size_t kUsualWriters = 2;

template <class... Memory>
void reserve_all(std::size_t count, Memory&... memory) {
  (memory.reserve(count), ...);
}

template <class... Memory>
std::size_t bytes_held(const Memory&... memory) noexcept {
  return ((memory.capacity() * sizeof(memory[0])) + ...);
}

template <class... Memory>
void forget_long(Memory&... memory) noexcept {
  ((memory.capacity() > kKept ? Memory().swap(memory) : static_cast<void>(0)), ...);
}

}  // namespace

void Scratch::reserve(std::size_t tokens) {
  // A text is gone through whole up to four times the bytes that are tried first; a space may become three.
  const std::size_t bytes = 4 * first_bytes(tokens + 1, 0) + kLongestToken;
  reserve_all(3 * bytes, normalized, spare.text, spare.part, text);
  for (std::size_t n = 0; n < kUsualWriters; ++n) written[n].reserve(3 * bytes);
  reserve_all(bytes, symbols, previous, ends, scores, spare.characters, first, second);
  next.reserve(2 * bytes);
  heap.reserve(3 * bytes);
  words.reserve();
}

std::size_t Scratch::bytes() const noexcept {
  std::size_t bytes = words.bytes() + bytes_held(symbols, next, previous, ends, heap, scores, text, normalized,
                                                 spare.text, spare.part, spare.characters, first, second);
  for (const std::string& one : written) bytes += bytes_held(one);
  return bytes;
}

void Scratch::forget_long_texts() noexcept {
  forget_long(symbols, next, previous, ends, heap, scores, text, normalized, spare.text, spare.part, spare.characters,
              first, second);
  for (std::string& one : written) forget_long(one);
}

}  // namespace headlight::text
