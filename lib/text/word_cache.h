// The ids of words that came last.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace headlight::text {

// Words of few bytes and few ids. Each has one place, by a hash, where it replaces the word before it: so memory is
// fixed, and so is the time of a search, whatever the words are.
class WordCache {
 public:
  // Takes the memory that it needs, once.
  void reserve() {
    if (entries_.empty()) entries_.resize(kEntries);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }

  // Appends the ids of a word; false where they are not there.
  [[nodiscard]] bool find(std::string_view word, std::vector<std::int64_t>& ids) const {
    if (entries_.empty() || word.size() > kLongest) return false;
    const Padded padded = pad(word);
    const Entry& entry = entries_[place_of(padded)];
    if (entry.word != padded) return false;
    for (std::uint32_t n = 0; n < entry.count; ++n) ids.push_back(entry.ids[n]);
    return true;
  }

  // Keeps the ids from `begin` on for a word that was not found, which is not empty, if it has room for them.
  void keep(std::string_view word, const std::vector<std::int64_t>& ids, std::size_t begin) {
    const std::size_t count = ids.size() - begin;
    if (word.size() > kLongest || count > kMostOfWord) return;
    reserve();
    const Padded padded = pad(word);
    Entry& entry = entries_[place_of(padded)];
    entry.word = padded;
    entry.count = static_cast<std::uint32_t>(count);
    for (std::size_t n = 0; n < count; ++n) entry.ids[n] = static_cast<std::uint32_t>(ids[begin + n]);
  }

 private:
  static constexpr int kBits = 14;
  static constexpr std::size_t kEntries = std::size_t{1} << kBits;
  static constexpr std::size_t kLongest = 31, kMostOfWord = 7;
  // The bytes of a word, zeros, and in the last byte how many bytes it has: 0 is no word's.
  using Padded = std::array<std::uint64_t, 4>;
  // A line of a cache.
  struct alignas(64) Entry {
    Padded word{};
    std::array<std::uint32_t, kMostOfWord> ids{};
    std::uint32_t count = 0;
  };

  template <class Number>
  [[nodiscard]] static std::uint64_t load(const char* at) noexcept {
    Number number = 0;
    std::memcpy(&number, at, sizeof number);
    return number;
  }
  // Fewer than eight bytes, the first of them lowest; reads none beside them.
  [[nodiscard]] static std::uint64_t load_few(const char* at, std::size_t count) noexcept {
    if (count >= 4) return load<std::uint32_t>(at) | load<std::uint32_t>(at + count - 4) << 8 * (count - 4);
    if (count == 0) return 0;
    const std::size_t middle = count / 2, last = count - 1;
    return load<std::uint8_t>(at) | load<std::uint8_t>(at + middle) << 8 * middle |
           load<std::uint8_t>(at + last) << 8 * last;
  }
  [[nodiscard]] static Padded pad(std::string_view word) noexcept {
    Padded padded{};
    std::size_t part = 0;
    for (; 8 * (part + 1) <= word.size(); ++part) padded[part] = load<std::uint64_t>(word.data() + 8 * part);
    padded[part] = load_few(word.data() + 8 * part, word.size() - 8 * part);
    padded[3] |= std::uint64_t{word.size()} << 56;
    return padded;
  }
  [[nodiscard]] static std::size_t place_of(const Padded& word) noexcept {
    std::uint64_t mixed = word[0] * 0x9E3779B97F4A7C15 ^ word[1] * 0xC2B2AE3D27D4EB4F;
    mixed ^= word[2] * 0x165667B19E3779F9 ^ word[3] * 0x27D4EB2F165667C5;
    return static_cast<std::size_t>((mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15 >> (64 - kBits));
  }

  std::vector<Entry> entries_;
};

}  // namespace headlight::text
