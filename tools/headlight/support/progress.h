// How far work is: a bar on standard error, when that is a terminal and the work takes longer than a second, and
// numbers for a caller who asked for them (caller.h).
#pragma once

#include <chrono>
#include <cstddef>

namespace headlight::program {

class Progress {
 public:
  // Of 0, where nobody knows how much there is, nothing is told.
  explicit Progress(std::size_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::size_t count) noexcept;
  // Takes the bar away.
  void clear() noexcept;

 private:
  std::size_t total_;
  std::size_t done_ = 0;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point told_{};
};

}  // namespace headlight::program
