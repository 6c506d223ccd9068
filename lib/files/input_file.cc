#include "files/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "headlight/models/errors.h"

namespace headlight::files {

using models::FileError;

namespace {

[[noreturn]] void fail(const std::string& path, const char* action, int error) {
  throw FileError(path, std::string(action) + ": " + std::generic_category().message(error));
}

constexpr std::size_t kLargestRead = std::size_t{1} << 30;

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(path, "cannot open", errno);
  struct stat status {};
  const int error = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    if (error != 0) fail(path, "cannot be looked at", error);
    throw FileError(path, S_ISDIR(status.st_mode) ? "is a folder, expected a file" : "is no regular file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (mapped_ != nullptr) ::munmap(mapped_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got =
        ::pread(descriptor_, into.data(), std::min(into.size(), kLargestRead), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, "cannot read", errno);
    if (got == 0) throw FileError(path_, "ends at byte " + std::to_string(offset) + " while it is read");
    offset += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

std::span<const std::byte> InputFile::map() {
  if (size_ == 0) return {};
  if (mapped_ == nullptr) {
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (address == MAP_FAILED) fail(path_, "cannot map", errno);
    mapped_ = address;
    ::close(descriptor_);  // the mapping does without, and a model of many files would keep as many
    descriptor_ = -1;
  }
  return {static_cast<const std::byte*>(mapped_), size_};
}

void let_go(const void* mapped, std::size_t bytes) noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped), end = begin + bytes;
  const std::uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  // Whoever refuses keeps the pages, which is no harm.
  if (first < last) (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

std::string read_text(const std::string& path, std::uint64_t limit) {
  const InputFile file(path);
  if (file.size() > limit) {
    throw FileError(path, "has " + std::to_string(file.size()) + " bytes, expected at most " + std::to_string(limit));
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace headlight::files
