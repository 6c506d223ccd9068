// Texts one after the other, as often as wanted, of which only one is in memory.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace headlight::program {

class TextSource {
 public:
  explicit TextSource(std::vector<std::string> texts);
  // The lines of a file, without their ends, be they \n or \r\n; "-" is standard input. What can be read only once is
  // copied to a temporary file that has no name. Throws models::FileError for a file that cannot be read, holds no
  // line, or a line that is not UTF-8.
  [[nodiscard]] static TextSource lines_of(const std::string& path);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Back to the first one.
  void rewind() noexcept;
  // False when there are no more. Throws models::FileError.
  [[nodiscard]] bool next(std::string& text);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  TextSource(std::string name, File file);
  [[nodiscard]] static File open(const std::string& path, const std::string& name);
  [[nodiscard]] bool read_line(std::string& text);

  std::vector<std::string> texts_;
  std::string name_;
  File file_;
  std::size_t size_ = 0;
  std::size_t at_ = 0;
};

}  // namespace headlight::program
