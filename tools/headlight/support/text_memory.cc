#include "tools/headlight/support/text_memory.h"

#include <stdexcept>

#include "headlight/models/errors.h"
#include "tools/headlight/support/quantity_text.h"

namespace headlight::program {
namespace {

// Beside what the tokenizer works in: a text, the buffer that it was read into, which grows by doubling, and twice what
// is in front of it and it.
constexpr std::int64_t kCopies = 6;
// Words that were counted, buffers of files, and what an allocator keeps.
constexpr std::int64_t kSpare = std::int64_t{6} << 20;

std::string mebibytes(std::int64_t bytes) { return std::to_string((bytes >> 20) + 1) + "MiB"; }

}  // namespace

TextMemory::TextMemory(std::int64_t bytes, const models::TextEncoder::CallBytes& call, std::int64_t result)
    : budget_({call, {.copies = kCopies, .result = result, .spare = kSpare}}), allowed_(bytes) {
  if (bytes < budget_->least()) {
    throw std::runtime_error("--memory is " + bytes_text(static_cast<double>(bytes)) + ", expected at least " +
                             mebibytes(budget_->least()) + " for one text beside the model's weights");
  }
  share_ = budget_->share(bytes);
}

void TextMemory::fail_by_size(const std::string& name, std::size_t number, std::size_t size) const {
  throw models::FileError(name, "line " + std::to_string(number) + " has " + std::to_string(size) +
                                    " bytes, more than --memory " + bytes_text(static_cast<double>(allowed_)) +
                                    " has room for, expected at least " + mebibytes(budget_->needed(size)));
}

}  // namespace headlight::program
