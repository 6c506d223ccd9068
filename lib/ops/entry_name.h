// Names of what an entry of a list holds, for messages.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace headlight::ops {

// "heads[3].outputs", without the heap: a call that passes its checks allocates nothing.
class EntryName {
 public:
  EntryName(std::string_view list, std::size_t index, std::string_view field) noexcept {
    add(list);
    add("[");
    char* const end = text_.data() + text_.size();
    size_ = static_cast<std::size_t>(std::to_chars(text_.data() + size_, end, index).ptr - text_.data());
    add("].");
    add(field);
  }
  operator std::string_view() const noexcept { return {text_.data(), size_}; }

 private:
  void add(std::string_view part) noexcept { size_ += part.copy(text_.data() + size_, text_.size() - size_); }

  // Room for the longest name in use with an index of 20 digits.
  std::array<char, 64> text_{};
  std::size_t size_ = 0;
};

}  // namespace headlight::ops
