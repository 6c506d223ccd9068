// Arrays of a GGUF file's metadata, read where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headlight/models/gguf.h"

namespace headlight::models {

// What a value is that `from` begins with, however many bytes that has: another process may have written to the file
// since it was checked.

// A number of any type as that; nothing where it is none.
[[nodiscard]] std::optional<std::int64_t> gguf_integer(GgufType type, std::span<const std::byte> from) noexcept;
[[nodiscard]] std::optional<double> gguf_number(GgufType type, std::span<const std::byte> from) noexcept;
// The bytes of a string, from its length on.
[[nodiscard]] std::string_view gguf_string(std::span<const std::byte> from) noexcept;

class GgufArray {
 public:
  // Without elements.
  GgufArray() = default;
  // Of any value: one that is no array has no elements.
  explicit GgufArray(const GgufValue& value) noexcept;

  [[nodiscard]] GgufType type() const noexcept { return type_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // Of an element below size(); nothing where it is none.
  [[nodiscard]] std::optional<std::int64_t> integer(std::size_t number) const noexcept;
  [[nodiscard]] std::optional<double> number(std::size_t number) const noexcept;
  // Whether all elements are that.
  [[nodiscard]] bool has_integers() const noexcept;
  [[nodiscard]] bool has_numbers() const noexcept;
  [[nodiscard]] bool has_strings() const noexcept { return empty() || type_ == GgufType::string; }

  // Of strings, which lie one behind another: `for (std::string_view one : array.strings())`.
  class Strings {
   public:
    class Iterator {
     public:
      Iterator(std::span<const std::byte> from, std::size_t left) noexcept : from_(from), left_(left) {}
      [[nodiscard]] std::string_view operator*() const noexcept { return gguf_string(from_); }
      Iterator& operator++() noexcept {
        const std::string_view here = gguf_string(from_);
        const auto* const behind = reinterpret_cast<const std::byte*>(here.data() + here.size());
        from_ = from_.subspan(static_cast<std::size_t>(behind - from_.data()));
        --left_;
        return *this;
      }
      [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return left_ == 0; }

     private:
      std::span<const std::byte> from_;
      std::size_t left_;
    };

    Strings(std::span<const std::byte> bytes, std::size_t count) noexcept : bytes_(bytes), count_(count) {}
    [[nodiscard]] Iterator begin() const noexcept { return {bytes_, count_}; }
    [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

   private:
    std::span<const std::byte> bytes_;
    std::size_t count_;
  };
  [[nodiscard]] Strings strings() const noexcept { return {bytes_, type_ == GgufType::string ? size_ : 0}; }

 private:
  [[nodiscard]] std::span<const std::byte> from(std::size_t number) const noexcept;

  GgufType type_ = GgufType::uint8;
  std::size_t size_ = 0;
  std::span<const std::byte> bytes_{};  // of its elements
};

// Integers as bytes, of which each is the lowest.
[[nodiscard]] std::string gguf_bytes(const GgufArray& integers);

}  // namespace headlight::models
