// What the message of a refusal is made of: words, numbers and shapes, in the order of the sentence. They become a
// string in fail() alone, since joining strings where each check stands would be most of the checks' code.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::ops {

// Refers to what it was made from.
class MessagePart {
 public:
  MessagePart(const char* text) noexcept : text_(text), kind_(Kind::literal) {}
  MessagePart(std::string_view text) noexcept : text_(text.data()), count_(text.size()), kind_(Kind::text) {}
  MessagePart(const std::string& text) noexcept : MessagePart(std::string_view(text)) {}
  MessagePart(char) = delete;  // a number on some machines and a count on others
  MessagePart(bool) = delete;
  MessagePart(std::signed_integral auto number) noexcept : integer_(number), kind_(Kind::integer) {}
  MessagePart(std::unsigned_integral auto number) noexcept : count_(number), kind_(Kind::count) {}
  MessagePart(std::floating_point auto number) noexcept : number_(number), kind_(Kind::number) {}
  MessagePart(std::span<const std::int64_t> shape) noexcept
      : shape_(shape.data()), count_(shape.size()), kind_(Kind::shape) {}
  template <std::size_t kAxes>
  MessagePart(const std::array<std::int64_t, kAxes>& shape) noexcept
      : MessagePart(std::span<const std::int64_t>(shape)) {}
  MessagePart(const std::vector<std::int64_t>& shape) noexcept : MessagePart(std::span<const std::int64_t>(shape)) {}

  void add_to(std::string& message) const;

 private:
  enum class Kind { literal, text, integer, count, number, shape };
  union {
    const char* text_;
    std::int64_t integer_;
    double number_;
    const std::int64_t* shape_;
  };
  std::size_t count_ = 0;
  Kind kind_;
};

}  // namespace headlight::ops
