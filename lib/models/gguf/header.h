// All that a GGUF file has in front of its tensors' bytes, read strictly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/gguf.h"

namespace headlight::models {

// Bytes of a value; 0 of strings and arrays, which have any number, and of what is no type.
[[nodiscard]] constexpr std::uint64_t size_of(GgufType type) noexcept {
  switch (type) {
    case GgufType::uint8:
    case GgufType::int8:
    case GgufType::boolean:
      return 1;
    case GgufType::uint16:
    case GgufType::int16:
      return 2;
    case GgufType::uint32:
    case GgufType::int32:
    case GgufType::float32:
      return 4;
    case GgufType::uint64:
    case GgufType::int64:
    case GgufType::float64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return 0;
}

// A number of the file.
template <class T>
[[nodiscard]] T read_number(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Reads `bytes`, the whole file, in memory of at most twice the bytes of the entries and of the tensors' descriptions:
// 24 bytes for an entry, which takes 14 or more of the file; 52 and 8 an axis for a tensor, which takes 25 and 8 an
// axis. Throws FileError naming `path` and the key or tensor.
class GgufHeader {
 public:
  GgufHeader(const std::string& path, std::span<const std::byte> bytes);

  // Both sorted.
  std::vector<GgufEntry> metadata;
  std::vector<GgufTensor> tensors;
  // Where their shapes lie.
  std::vector<std::int64_t> extents;

 private:
  // What a message speaks of: the words, and behind them a name in quotes or a number. Put together only where there
  // is a message.
  struct What {
    std::string_view words;
    std::string_view name{};
    std::optional<std::uint64_t> number{};
    [[nodiscard]] std::string text() const;
  };
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail(const What& what, const std::string& message) const { fail(what.text() + message); }
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }
  // The next bytes of the file, of what `what` names.
  std::span<const std::byte> take(std::uint64_t count, const What& what);
  template <class T>
  T number(const What& what);
  std::string_view string(const What& what);
  // Of a key or a tensor: 1 to 65535 bytes.
  std::string_view name(const What& what);

  // Both go through what they check, and keep nothing of it.
  void check_value(const What& what);
  void check_array(const What& what);
  void read_metadata(std::uint64_t count);
  void read_tensors(std::uint64_t count);
  // The extents of all tensors, which have so many axes together.
  void read_extents(std::size_t axes);
  [[nodiscard]] std::uint64_t alignment() const;
  // From offsets to bytes.
  void place_tensors();
  void place_tensor(GgufTensor& tensor, std::span<const std::byte> data, std::uint64_t unit) const;
  void check_apart() const;

  const std::string& path_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace headlight::models
