#include "text/token_table.h"

#include <cstring>

namespace headlight::text {
namespace {

constexpr std::uint64_t kMixer = 0x9E3779B97F4A7C15;

std::uint64_t load(const char* bytes, std::size_t count) noexcept {
  std::uint64_t word = 0;
  if (count > 0) std::memcpy(&word, bytes, count);
  return word;
}

// Of the number of a bucket, which has one or two entries.
int bits_of(std::size_t entries) noexcept {
  int bits = 0;
  while (std::size_t{2} << bits < entries) ++bits;
  return bits;
}

}  // namespace

std::uint32_t TokenTable::tag_of(std::string_view text) noexcept {
  std::uint64_t mixed = text.size();
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left > 8; at += 8, left -= 8) {
    mixed = (mixed ^ load(at, 8)) * kMixer;
    mixed ^= mixed >> 32;
  }
  mixed = (mixed ^ load(at, left)) * kMixer;
  return static_cast<std::uint32_t>(mixed >> 32);
}

std::size_t TokenTable::memory_of(std::size_t tokens) noexcept {
  return sizeof(Entry) * tokens + sizeof(std::uint32_t) * ((std::size_t{1} << bits_of(tokens)) + 1);
}

void TokenTable::find_buckets() {
  const int bits = bits_of(entries_.size());
  shift_ = 32 - bits;
  first_.assign((std::size_t{1} << bits) + 1, 0);
  for (const Entry& entry : entries_) ++first_[static_cast<std::size_t>(std::uint64_t{entry.tag} >> shift_) + 1];
  for (std::size_t bucket = 1; bucket < first_.size(); ++bucket) first_[bucket] += first_[bucket - 1];
}

}  // namespace headlight::text
