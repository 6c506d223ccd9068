#include "tools/headlight/support/text_memory.h"

#include <algorithm>
#include <stdexcept>

#include "headlight/models/errors.h"
#include "tools/headlight/support/quantity_text.h"

namespace headlight::program {
namespace {

// Beside what the tokenizer works in: a text, the buffer that it was read into, which grows by doubling, and twice what
// is in front of it and it.
constexpr std::int64_t kCopies = 6;
// Of the shortest texts that are worth reading.
constexpr std::int64_t kLeastTextBytes = std::int64_t{1} << 16;
// Words that were counted, buffers of files, and what an allocator keeps.
constexpr std::int64_t kSpare = std::int64_t{6} << 20;

std::string mebibytes(std::int64_t bytes) { return std::to_string((bytes >> 20) + 1) + "MiB"; }

}  // namespace

TextMemory::TextMemory(std::int64_t bytes, const models::TextEncoder::CallBytes& call, std::int64_t result)
    : copies_(kCopies + call.text_byte), allowed_(bytes), of_one_text_(call.one_text + result + kSpare) {
  const std::int64_t of_text = call.further_text + result;
  const std::int64_t least = copies_ * kLeastTextBytes;
  if (bytes < of_one_text_ + least) {
    throw std::runtime_error("--memory is " + bytes_text(static_cast<double>(bytes)) + ", expected at least " +
                             mebibytes(of_one_text_ + least) + " for one text beside the model's weights");
  }
  // A quarter of what is left at most for more texts at a time, the rest for long ones.
  const std::int64_t spare = bytes - of_one_text_ - least;
  texts_ = static_cast<std::size_t>(std::clamp<std::int64_t>(1 + spare / 4 / of_text, 1, kTexts));
  text_bytes_ =
      static_cast<std::size_t>((bytes - of_one_text_ - static_cast<std::int64_t>(texts_ - 1) * of_text) / copies_);
  of_more_texts_ = (kTexts - 1) * of_text;
}

void TextMemory::fail_by_size(const std::string& name, std::size_t number, std::size_t size) const {
  const std::int64_t of_text = copies_ * static_cast<std::int64_t>(size);
  const std::int64_t needed = of_one_text_ + of_text + std::min(of_text / 3 + 1, of_more_texts_);
  throw models::FileError(name, "line " + std::to_string(number) + " has " + std::to_string(size) +
                                    " bytes, more than --memory " + bytes_text(static_cast<double>(allowed_)) +
                                    " has room for, expected at least " + mebibytes(needed));
}

}  // namespace headlight::program
