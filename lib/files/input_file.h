// Reading files that nobody vouches for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace headlight::files {

// A regular file opened for reading, its size taken once. Pipes, devices and folders are refused: a size that is known
// before anything is allocated is what bounds the memory of every reader.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  // Fills `into` from `offset` on; not of a file that map() has mapped. FileError when the file ends before or the
  // device fails.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

  // The whole file mapped for reading; empty for an empty file. Valid as long as this object, which
  // keeps no descriptor beside it.
  [[nodiscard]] std::span<const std::byte> map();

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  int descriptor_ = -1;
  void* mapped_ = nullptr;
};

// Lets go of the pages of a mapped file that lie within those bytes: they are read from the file again when somebody
// looks there. Of no other memory.
void let_go(const void* mapped, std::size_t bytes) noexcept;

// The whole file as bytes; FileError when it holds more than `limit`.
[[nodiscard]] std::string read_text(const std::string& path, std::uint64_t limit);

}  // namespace headlight::files
