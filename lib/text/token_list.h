// Tokens one behind another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::text {

// A token's place is how many were added before it. Where the list is moved the texts stay where they are.
class TokenList {
 public:
  [[nodiscard]] static TokenList of(std::vector<std::string> tokens) {
    std::size_t bytes = 0;
    for (const std::string& token : tokens) bytes += token.size();
    TokenList list;
    list.reserve(tokens.size(), bytes);
    for (const std::string& token : tokens) list.add(token);
    tokens = {};  // at once, wherever the caller's end
    return list;
  }
  // What so many tokens take that have so many bytes together.
  [[nodiscard]] static constexpr std::size_t memory_of(std::size_t tokens, std::size_t bytes) noexcept {
    return bytes + tokens + sizeof(std::uint32_t) * (tokens + 1);
  }
  void reserve(std::size_t tokens, std::size_t bytes) {
    texts_.reserve(bytes + tokens);
    begins_.reserve(tokens + 1);
  }
  void add(std::string_view token) {
    texts_.insert(texts_.end(), token.begin(), token.end());
    texts_.push_back('\0');
    begins_.push_back(static_cast<std::uint32_t>(texts_.size()));
  }

  // Of how many there is room.
  [[nodiscard]] std::size_t capacity() const noexcept { return begins_.capacity() - 1; }
  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(begins_.size() - 1); }
  // A zero byte stands behind it.
  [[nodiscard]] std::string_view operator[](std::uint32_t place) const noexcept {
    const std::uint32_t begin = begins_[place];
    return {texts_.data() + begin, begins_[place + std::size_t{1}] - begin - 1};
  }
  // All of them, each with the zero byte, and where each begins, and the next one would.
  [[nodiscard]] const char* texts() const noexcept { return texts_.data(); }
  [[nodiscard]] const std::uint32_t* begins() const noexcept { return begins_.data(); }

 private:
  std::vector<char> texts_;
  std::vector<std::uint32_t> begins_{0};
};

}  // namespace headlight::text
