// How much memory the tables of a tokenizer may take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "files/json_value.h"

namespace headlight::text {

// Tables are asked for here before they are made: a file whose text and tables would take more than twice the file and
// kBeside is refused, with as little memory. Vocabularies of published files stay far below that; a stranger's file may
// be made of the shortest tokens, each of which takes more in a table than in the file.
class TableLimit {
 public:
  // Tables of characters take some of it, whatever the file; and it has room for any vocabulary of a hundred thousand
  // tokens.
  static constexpr std::size_t kBeside = std::size_t{8} << 20;

  // Of the tokenizer that a file describes, whose document holds some of it.
  explicit TableLimit(const files::JsonValue& document);
  // Of one that a file of so many bytes describes, of which so much is held already.
  TableLimit(std::string path, std::size_t file_bytes, std::size_t held);
  // Refuses nothing.
  TableLimit() = default;

  // Throws FileError naming the file where tables of so many bytes are more than is left.
  void take(std::size_t bytes);
  // That so many bytes of those, or of the document's, are free again.
  void give_back(std::size_t bytes) noexcept { allowed_ += std::min(bytes, SIZE_MAX - allowed_); }

 private:
  std::string path_;
  std::size_t file_bytes_ = 0;
  std::size_t allowed_ = SIZE_MAX, taken_ = 0;  // taken_ ≤ allowed_
};

}  // namespace headlight::text
