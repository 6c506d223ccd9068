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

// A number of any type as that; nothing where it is none.
[[nodiscard]] std::optional<std::int64_t> gguf_integer(GgufType type, const std::byte* at) noexcept;
[[nodiscard]] std::optional<double> gguf_number(GgufType type, const std::byte* at) noexcept;
// The bytes of a string, from its length on.
[[nodiscard]] std::string_view gguf_string(const std::byte* at) noexcept;

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
      Iterator(const std::byte* at, std::size_t left) noexcept : at_(at), left_(left) {}
      [[nodiscard]] std::string_view operator*() const noexcept { return gguf_string(at_); }
      Iterator& operator++() noexcept {
        const std::string_view here = gguf_string(at_);
        at_ = reinterpret_cast<const std::byte*>(here.data() + here.size());
        --left_;
        return *this;
      }
      [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return left_ == 0; }

     private:
      const std::byte* at_;
      std::size_t left_;
    };

    Strings(const std::byte* first, std::size_t count) noexcept : first_(first), count_(count) {}
    [[nodiscard]] Iterator begin() const noexcept { return {first_, count_}; }
    [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

   private:
    const std::byte* first_;
    std::size_t count_;
  };
  [[nodiscard]] Strings strings() const noexcept { return {first_, type_ == GgufType::string ? size_ : 0}; }

 private:
  GgufType type_ = GgufType::uint8;
  std::size_t size_ = 0;
  const std::byte* first_ = nullptr;
};

// Integers as bytes, of which each is the lowest.
[[nodiscard]] std::string gguf_bytes(const GgufArray& integers);
// An entry as it lies in the file, from the length of its key to the end of its value.
[[nodiscard]] std::span<const std::byte> bytes_of(const GgufEntry& entry) noexcept;

}  // namespace headlight::models
