#include "tools/headlight/support/text_source.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdint>
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

TextSource TextSource::lines_of(const std::string& path, const TextMemory& memory) {
  std::string name = path == "-" ? "standard input" : path;
  File file = open(path, name);
  return {std::move(name), std::move(file), memory};
}

TextSource::TextSource(std::string name, File file, const TextMemory& memory)
    : name_(std::move(name)), file_(std::move(file)), memory_(memory) {
  for (std::string line; read_line(line, size_ + 1);) {
    ++size_;
    if (!is_utf8(line)) fail_by_encoding(name_, size_, line);
  }
  if (size_ == 0) fail_as_empty(name_);
  rewind();
}

bool TextSource::read_short_line(std::string& text, std::size_t number) {
  text.clear();
  std::size_t size = 0;
  errno = 0;
  int byte = std::getc(file_.get());
  if (byte == EOF && errno != 0) fail_to_read(name_);
  if (byte == EOF) return false;
  for (; byte != EOF && byte != '\n'; byte = std::getc(file_.get())) {
    if (++size <= memory_.text_bytes()) text += static_cast<char>(byte);
  }
  if (size > memory_.text_bytes()) memory_.fail_by_size(name_, number, size);
  if (text.ends_with('\r')) text.pop_back();
  return true;
}

bool TextSource::read_line(std::string& text, std::size_t number) {
  if (memory_.text_bytes() < SIZE_MAX) return read_short_line(text, number);
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
  waits_ = false;
  if (file_) std::rewind(file_.get());
}

bool TextSource::next(std::string& text) {
  if (at_ == size_) return false;
  if (waits_) {
    text = std::move(waiting_);
    waits_ = false;
  } else if (!file_) {
    text = texts_[at_];
  } else if (!read_line(text, at_ + 1)) {
    throw models::FileError(
        name_, "ends before line " + std::to_string(at_ + 1) + ", expected " + std::to_string(size_) + " as before");
  }
  ++at_;
  return true;
}

std::int64_t TextSource::place() const {
  if (waits_) return waiting_place_;
  if (!file_) return static_cast<std::int64_t>(at_);
  const ::off_t place = ::ftello(file_.get());
  if (place < 0) fail_to_read(name_);
  return place;
}

TextSource::Block TextSource::next_block() {
  Block block;
  std::size_t bytes = 0;
  for (std::string text; block.texts.size() < memory_.texts();) {
    const std::int64_t from = place();
    if (!next(text)) break;
    bytes += text.size();
    if (!block.texts.empty() && bytes > memory_.text_bytes()) {
      waiting_ = std::move(text);
      waiting_place_ = from;
      waits_ = true;
      --at_;
      break;
    }
    block.texts.push_back(std::move(text));
    block.places.push_back(from);
  }
  return block;
}

std::string TextSource::text_at(std::int64_t place) {
  if (!file_) return texts_[static_cast<std::size_t>(place)];
  std::string text;
  if (::fseeko(file_.get(), place, SEEK_SET) != 0) fail_to_read(name_);
  if (!read_line(text, 0)) throw models::FileError(name_, "has become shorter while it was read");
  return text;
}

}  // namespace headlight::program
