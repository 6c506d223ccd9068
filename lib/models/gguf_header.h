// All that a GGUF file has in front of its tensors' bytes, read strictly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/gguf.h"

namespace headlight::models {

// Reads `bytes`, the whole file. Throws FileError naming `path` and the key or tensor.
class GgufHeader {
 public:
  GgufHeader(const std::string& path, std::span<const std::byte> bytes);

  // Both sorted.
  std::vector<GgufEntry> metadata;
  std::vector<GgufTensor> tensors;

 private:
  [[noreturn]] void fail(const std::string& message) const;
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }
  // The next bytes of the file, of what `what` names.
  std::span<const std::byte> take(std::uint64_t count, const std::string& what);
  template <class T>
  T number(const std::string& what);
  std::string_view string(const std::string& what);
  // Of a key or a tensor: 1 to 65535 bytes.
  std::string_view name(const std::string& what);

  GgufValue value(const std::string& what);
  void read_array(GgufValue& value, const std::string& what);
  void read_metadata(std::uint64_t count);
  void read_tensors(std::uint64_t count);
  void read_extents(GgufTensor& tensor, const std::string& what);
  [[nodiscard]] std::uint64_t alignment() const;
  // From offsets to bytes.
  void place_tensors();
  void check_apart() const;

  const std::string& path_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  // Of tensors, in the order of the file: numbers, and where they are.
  std::vector<std::int64_t> counts_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace headlight::models
