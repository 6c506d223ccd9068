#pragma once

#include <chrono>

namespace headlight::mpi {

// Adds the time between its beginning and its end to a number of seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) noexcept : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace headlight::mpi
