#include "text/scratch.h"

#include <new>
#include <type_traits>

#include "text/parts.h"

namespace headlight::text {
namespace {

// All buffers together, each of which has no more than this, are below what is kept.
constexpr std::size_t kKeptOfOne = Scratch::kKept / 32;
// Strings that a pre-tokenizer writes: of a ByteLevel two, of a Metaspace one.
constexpr std::size_t kUsualWriters = 2;

template <class... Memory>
void reserve_all(std::size_t count, Memory&... memory) {
  (memory.reserve(count), ...);
}

template <class Memory>
std::size_t bytes_held(const Memory& memory) noexcept {
  return memory.capacity() * sizeof(memory[0]);
}

}  // namespace

template <class Take>
void Scratch::for_each_buffer(const Take& take) {
  const auto take_all = [&](auto&... buffers) { (take(buffers), ...); };
  take_all(symbols, next, previous, ends, heap, scores, text, normalized, spare.text, spare.part, spare.characters,
           first, second);
  for (std::string& one : written) take(one);
}

void Scratch::reserve(std::size_t tokens) {
  // A text is gone through whole up to four times the bytes that are tried first; a space may become three.
  const std::size_t bytes = 4 * first_bytes(tokens + 1, 0) + kLongestToken;
  reserve_all(3 * bytes, normalized, spare.text, spare.part, text);
  for (std::size_t n = 0; n < kUsualWriters; ++n) written[n].reserve(3 * bytes);
  reserve_all(bytes, symbols, previous, ends, scores, spare.characters, first, second);
  next.reserve(2 * bytes);
  heap.reserve(3 * bytes);
  words.reserve();
  if (tokens < reserved_tokens_) return;
  reserved_tokens_ = tokens;
  reserved_bytes_ = buffer_bytes();
}

std::size_t Scratch::buffer_bytes() const noexcept {
  std::size_t bytes = 0;
  const_cast<Scratch&>(*this).for_each_buffer([&](const auto& buffer) { bytes += bytes_held(buffer); });
  return bytes;
}

std::size_t Scratch::bytes() const noexcept { return words.bytes() + buffer_bytes(); }

void Scratch::forget_long_texts() noexcept {
  if (buffer_bytes() <= kKept + reserved_bytes_) return;
  for_each_buffer([](auto& buffer) {
    if (bytes_held(buffer) > kKeptOfOne) std::remove_reference_t<decltype(buffer)>().swap(buffer);
  });
  if (reserved_tokens_ == 0) return;
  try {
    reserve(reserved_tokens_);
  } catch (const std::bad_alloc&) {  // then the next call takes what it needs
  }
}

}  // namespace headlight::text
