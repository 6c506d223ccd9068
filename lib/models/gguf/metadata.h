// The metadata of a GGUF file, checked as they are read.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/gguf.h"
#include "models/gguf/array.h"

namespace headlight::models {

// Keys of the architecture are named without its name: "block_count" is "qwen3.block_count"; all others are whole
// ("tokenizer.ggml.pre"). Getters throw FileError naming the key where it is missing and nothing stands in for it, of
// another type, or out of bounds.
class GgufMetadata {
 public:
  // Reads general.architecture, which is part of the names that are asked for: refuses one of more bytes than any has.
  explicit GgufMetadata(const GgufFile& file);

  [[nodiscard]] const GgufFile& file() const noexcept { return file_; }
  [[nodiscard]] const std::string& architecture() const noexcept { return architecture_; }

  [[nodiscard]] bool has(std::string_view key) const { return find(key).has_value(); }
  [[nodiscard]] std::int64_t size(std::string_view key, std::int64_t least,
                                  std::optional<std::int64_t> otherwise = std::nullopt,
                                  std::int64_t most = INT32_MAX) const;
  [[nodiscard]] double number(std::string_view key, std::optional<double> otherwise, double least, double most) const;
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  // An array of such elements alone; one without elements where it is missing.
  [[nodiscard]] GgufArray texts(std::string_view key) const;
  [[nodiscard]] GgufArray integers(std::string_view key) const;
  [[nodiscard]] GgufArray numbers(std::string_view key) const;

  // "PATH: KEY message"
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  // Marks as known a key whose value changes nothing here.
  void pass_over(std::string_view key) const { static_cast<void>(find(key)); }
  // Keys that nobody has asked for, "PATH: KEY"; not those that tell of the file: general., split., quantize.
  [[nodiscard]] std::vector<std::string> unread() const;

 private:
  [[nodiscard]] std::string whole(std::string_view key) const;
  [[nodiscard]] std::optional<GgufValue> find(std::string_view key) const;
  // An array, of which fits(array) says whether it is one of `what`.
  template <class Fits>
  [[nodiscard]] GgufArray array(std::string_view key, const char* what, Fits fits) const;
  // That value, which must be there.
  [[nodiscard]] GgufValue needed(std::string_view key) const;

  const GgufFile& file_;
  std::string architecture_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace headlight::models
