// Ids by token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::text {

// Tokens lie in buckets, and are sorted within each: however a file chooses its tokens, a search takes no more than the
// logarithm of their number.
class TokenTable {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Room for so many tokens, which have so many bytes together.
  void reserve(std::size_t tokens, std::size_t bytes);
  // Of tokens that are the same the last one counts.
  void add(std::string_view token, std::uint32_t id);
  // After the last add().
  void sort();
  // kNone where there is none.
  [[nodiscard]] std::uint32_t find(std::string_view token) const noexcept;

 private:
  struct Entry {
    std::uint32_t tag;  // a hash
    std::uint32_t begin, size, id;
  };
  [[nodiscard]] std::string_view text(const Entry& entry) const noexcept {
    return std::string_view(texts_).substr(entry.begin, entry.size);
  }

  std::string texts_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> first_;  // [2^(32 − shift_) + 1]: of each bucket
  int shift_ = 32;
};

}  // namespace headlight::text
