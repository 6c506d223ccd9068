// Text for standard output that is printed at the end alone, however long it is.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace headlight::program {

// Little of it is in memory: the rest waits in a temporary file that has no name.
class LateText {
 public:
  // Throws std::runtime_error where the file cannot be made or written.
  void add(std::string_view text);
  [[nodiscard]] bool is_empty() const noexcept { return bytes_ == 0; }
  // Throws std::runtime_error where the file cannot be read, and what print() throws.
  void print_all();

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  std::string in_memory_;  // the end of it
  std::unique_ptr<std::FILE, Close> file_;
  std::size_t bytes_ = 0;
};

}  // namespace headlight::program
