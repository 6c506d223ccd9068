#include "tools/headlight/support/late_text.h"

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

constexpr std::size_t kInMemory = std::size_t{1} << 20;

[[noreturn]] void fail(const char* action) {
  throw std::runtime_error(std::string("cannot ") + action + " a temporary file for what is printed at the end: " +
                           std::generic_category().message(errno));
}

}  // namespace

void LateText::add(std::string_view text) {
  in_memory_ += text;
  bytes_ += text.size();
  if (in_memory_.size() < kInMemory) return;
  if (!file_) file_.reset(std::tmpfile());
  if (!file_) fail("make");
  if (std::fwrite(in_memory_.data(), 1, in_memory_.size(), file_.get()) != in_memory_.size()) fail("write");
  in_memory_.clear();
}

void LateText::print_all() {
  if (file_) {
    // Unlike rewind(), this says whether what was buffered could be written.
    if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail("write");
    std::string part(kInMemory, '\0');
    while (const std::size_t count = std::fread(part.data(), 1, part.size(), file_.get())) {
      part.resize(count);
      print(part);
      part.resize(kInMemory);
    }
    if (std::ferror(file_.get()) != 0) fail("read");
  }
  print(in_memory_);
}

}  // namespace headlight::program
