// What a GGUF file says of its tokenizer, as a file of its own.
#include "models/gguf/tokenizer_entries.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace headlight::models {
namespace {

constexpr std::size_t kFileHeadBytes = 24;

// f(the bytes of an entry) of those that tell of a tokenizer, and of whose it is.
template <class Function>
void for_each_entry(const GgufFile& file, const Function& f) {
  for (const GgufEntry& entry : file.metadata()) {
    if (entry.key().starts_with("tokenizer.ggml.") || entry.key() == "general.architecture") f(entry.bytes());
  }
}

}  // namespace

std::size_t gguf_tokenizer_bytes(const GgufFile& file) {
  std::size_t bytes = kFileHeadBytes;
  for_each_entry(file, [&](std::span<const std::byte> entry) { bytes += entry.size(); });
  return bytes;
}

std::string gguf_tokenizer_entries(const GgufFile& file) {
  constexpr std::uint32_t kVersion = 3;
  std::array<std::uint64_t, 2> counts{};  // of tensors, and of entries
  for_each_entry(file, [&](std::span<const std::byte>) { ++counts[1]; });
  std::string copy;
  copy.reserve(gguf_tokenizer_bytes(file));
  copy.append("GGUF").append(reinterpret_cast<const char*>(&kVersion), sizeof kVersion);
  copy.append(reinterpret_cast<const char*>(counts.data()), sizeof counts);
  for_each_entry(file, [&](std::span<const std::byte> entry) {
    copy.append(reinterpret_cast<const char*>(entry.data()), entry.size());
  });
  return copy;
}

}  // namespace headlight::models
