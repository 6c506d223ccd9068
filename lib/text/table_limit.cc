#include "text/table_limit.h"

#include <algorithm>
#include <utility>

#include "headlight/models/errors.h"

namespace headlight::text {
namespace {

// Left to what has no table: the parts themselves, and what stands around texts.
constexpr std::size_t kParts = std::size_t{1} << 18;

}  // namespace

TableLimit::TableLimit(std::string path, std::size_t file_bytes, std::size_t held)
    : path_(std::move(path)), file_bytes_(file_bytes) {
  const std::size_t all = 2 * file_bytes_ + kBeside - kParts;
  allowed_ = all - std::min(all, held);
}

TableLimit::TableLimit(const files::JsonValue& document)
    : TableLimit(document.path(), document.file_bytes(), document.memory()) {}

void TableLimit::take(std::size_t bytes) {
  if (bytes > allowed_ - taken_) {
    throw models::FileError(path_, "asks for tables of " + std::to_string(taken_) + " + " + std::to_string(bytes) +
                                       " bytes, expected at most " + std::to_string(allowed_) + " of a file of " +
                                       std::to_string(file_bytes_) + " bytes");
  }
  taken_ += bytes;
}

}  // namespace headlight::text
