// Texts one after the other, as often as wanted, of which only one is in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/headlight/support/text_memory.h"

namespace headlight::program {

class TextSource {
 public:
  explicit TextSource(std::vector<std::string> texts);
  // The lines of a file, without their ends, be they \n or \r\n; "-" is standard input. What can be read only once is
  // copied to a temporary file that has no name. Throws models::FileError for a file that cannot be read, holds no
  // line, a line that is not UTF-8, or one that memory has no room for.
  [[nodiscard]] static TextSource lines_of(const std::string& path, const TextMemory& memory = {});

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Back to the first one.
  void rewind() noexcept;
  // False when there are no more. Throws models::FileError.
  [[nodiscard]] bool next(std::string& text);
  // As many as memory has room for, and where each of them lies; none at the end. Throws models::FileError.
  struct Block {
    std::vector<std::string> texts;
    std::vector<std::int64_t> places;
  };
  [[nodiscard]] Block next_block();
  // The text that lies there. Throws models::FileError. What comes next is not known then.
  [[nodiscard]] std::string text_at(std::int64_t place);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  TextSource(std::string name, File file, const TextMemory& memory);
  [[nodiscard]] static File open(const std::string& path, const std::string& name);
  // Line `number`, counted from 1.
  [[nodiscard]] bool read_line(std::string& text, std::size_t number);
  [[nodiscard]] bool read_short_line(std::string& text, std::size_t number);
  // Of the text that comes next.
  [[nodiscard]] std::int64_t place() const;

  std::vector<std::string> texts_;
  std::string name_;
  File file_;
  TextMemory memory_;
  std::string waiting_;  // the text of number at_, where a block had no room for it
  std::int64_t waiting_place_ = 0;
  bool waits_ = false;
  std::size_t size_ = 0;
  std::size_t at_ = 0;
};

}  // namespace headlight::program
