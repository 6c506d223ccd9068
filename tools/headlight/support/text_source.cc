#include "tools/headlight/support/text_source.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "headlight/models/errors.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/text_errors.h"

namespace headlight::program {
namespace {

bool is_regular(std::FILE* file) noexcept {
  struct stat status {};
  return ::fstat(::fileno(file), &status) == 0 && S_ISREG(status.st_mode);
}

void copy(std::FILE* from, std::FILE* to, const std::string& name) {
  std::array<char, 1 << 16> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), from)) {
    if (std::fwrite(part.data(), 1, count, to) != count) fail_to_read(name);
  }
  if (std::ferror(from) != 0 || std::fflush(to) != 0) fail_to_read(name);
}

}  // namespace

TextSource::TextSource(std::vector<std::string> texts) : texts_(std::move(texts)), size_(texts_.size()) {}

TextSource::File TextSource::open(const std::string& path, const std::string& name) {
  File opened(path == "-" ? nullptr : std::fopen(path.c_str(), "rb"));
  if (path != "-" && !opened) fail_to_read(name);
  std::FILE* const source = path == "-" ? stdin : opened.get();
  // A folder opens and fails only when it is read.
  if (opened && is_regular(source)) return opened;
  File kept(std::tmpfile());
  if (!kept) fail_to_read(name);
  copy(source, kept.get(), name);
  std::rewind(kept.get());
  return kept;
}

TextSource TextSource::lines_of(const std::string& path) {
  std::string name = path == "-" ? "standard input" : path;
  File file = open(path, name);
  return {std::move(name), std::move(file)};
}

TextSource::TextSource(std::string name, File file) : name_(std::move(name)), file_(std::move(file)) {
  for (std::string line; read_line(line);) {
    ++size_;
    if (!is_utf8(line)) fail_by_encoding(name_, size_, line);
  }
  if (size_ == 0) fail_as_empty(name_);
  rewind();
}

bool TextSource::read_line(std::string& text) {
  char* line = nullptr;
  std::size_t capacity = 0;
  errno = 0;
  const ::ssize_t length = ::getline(&line, &capacity, file_.get());
  const std::unique_ptr<char, void (*)(void*)> owned(line, std::free);
  if (length < 0 && errno != 0) fail_to_read(name_);
  if (length <= 0) return false;
  text.assign(line, static_cast<std::size_t>(length));
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return true;
}

void TextSource::rewind() noexcept {
  at_ = 0;
  if (file_) std::rewind(file_.get());
}

bool TextSource::next(std::string& text) {
  if (at_ == size_) return false;
  if (!file_) {
    text = texts_[at_];
  } else if (!read_line(text)) {
    throw models::FileError(
        name_, "ends before line " + std::to_string(at_ + 1) + ", expected " + std::to_string(size_) + " as before");
  }
  ++at_;
  return true;
}

}  // namespace headlight::program
