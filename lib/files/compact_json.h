// JSON text as readers walk through it: checked once, and made shorter where it lies.
//
// A value is n, t or f for null, true and false, a number as it was spelt, a string between the bytes 0xFE and 0xFF
// (which UTF-8 never has) without escapes, [VALUE,VALUE] or {STRING VALUE,STRING VALUE}; there is no white space. No
// value is longer than in the file, so the file's own bytes hold it, and nothing is allocated for a value.
//
// nlohmann's parser, against which the fuzz target `json` checks this one, keeps two growing copies of each token, so
// that one long string takes several times the file, and its values as nodes, which take many times the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::files {

class CompactJson {
 public:
  static constexpr char kStringBegin = '\xFE', kStringEnd = '\xFF';

  // Of less than 4 GiB. Throws FileError naming `path` when the text is no JSON, repeats a key within an object, nests
  // deeper than 64, or holds a number that is infinite as a double.
  CompactJson(const std::string& path, std::string text);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  // Bytes of the file, and those that this holds of it.
  [[nodiscard]] std::size_t file_bytes() const noexcept { return file_bytes_; }
  [[nodiscard]] std::size_t memory() const noexcept {
    return text_.capacity() + long_values_.capacity() * sizeof(Range);
  }
  // Behind the value that begins at `at`: of an object or array, by way of a few thousand bytes at most, however long
  // it is.
  [[nodiscard]] std::uint32_t end_of(std::uint32_t at) const noexcept;
  // The string that begins at `at`.
  [[nodiscard]] std::string_view string_at(std::uint32_t at) const noexcept;

  struct Range {
    std::uint32_t begin, end;
  };

 private:
  class Writer;

  std::string text_;
  std::size_t file_bytes_;
  // Of objects and arrays that are long, in the order of their beginnings.
  std::vector<Range> long_values_;
};

}  // namespace headlight::files
