// A file that lies in memory alone, for readers and writers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "fuzz/bytes.h"

namespace headlight::fuzz {

class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("headlight", MFD_CLOEXEC)) { must(descriptor_ >= 0, "a file in memory"); }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Holds `text` and nothing else from now on; writers go on at the beginning where it is empty.
  void fill(std::string_view text) {
    must(::ftruncate(descriptor_, 0) == 0 && ::lseek(descriptor_, 0, SEEK_SET) == 0, "an empty file");
    must(::pwrite(descriptor_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()), "a file of its size");
  }
  [[nodiscard]] std::string text() const {
    std::string all(static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)), '\0');
    must(::pread(descriptor_, all.data(), all.size(), 0) == static_cast<ssize_t>(all.size()), "all of the file");
    return all;
  }
  // Opening it anew reads from its beginning.
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace headlight::fuzz
