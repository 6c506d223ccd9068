// Lines of what can be read only once, such as a pipe, as they come.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/headlight/support/text_memory.h"

namespace headlight::program {

// Whether `path` ("-": standard input) is a pipe, a socket or a device, so that its end may come late or never.
[[nodiscard]] bool is_stream(const std::string& path) noexcept;

class LineStream {
 public:
  // Throws models::FileError for what cannot be opened. "-" is standard input. `memory` outlives it.
  explicit LineStream(const std::string& path, const TextMemory& memory = kAnyLength);
  ~LineStream();
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  // Waits for a line, then gives it and those that are there already, as many as memory has room for, without their
  // ends, be they \n or \r\n; none at the end. Lines before a bad one are given first. Throws models::FileError for
  // what cannot be read, holds no line at all, a line that is not UTF-8, or one that memory has no room for.
  [[nodiscard]] std::vector<std::string> next();
  // Bytes that were read so far.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  static const TextMemory kAnyLength;

  // Of a line that is longer than memory has room for, of which nothing is kept.
  [[noreturn]] void fail_by_size();
  [[nodiscard]] bool take_line(std::string& line);
  // Whether read() would answer at once.
  [[nodiscard]] bool is_ready() const noexcept;
  void read_more();

  std::string name_;
  int descriptor_;
  std::string read_;  // from the file, of which `taken_` bytes were given
  std::size_t taken_ = 0;
  std::size_t searched_ = 0;  // no line ends in [taken_, searched_)
  const TextMemory& memory_;
  std::size_t lines_ = 0, bytes_ = 0;
  bool is_at_end_ = false;
};

}  // namespace headlight::program
