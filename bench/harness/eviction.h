// Cold caches, for the time that a call takes when it comes after other work.
#pragma once

#include <span>
#include <vector>

#include "headlight/tensor.h"

namespace headlight::bench {

class Eviction {
 public:
  // Throws these operands out of every cache, line by line: microseconds where a call has some hundred KiB. Where the
  // processor has no such instruction, and where none are given, other memory takes the place of all: twice as much as
  // the last cache holds, 64 to 256 MiB.
  explicit Eviction(std::vector<std::span<const float>> operands);

  void operator()();
  [[nodiscard]] bool by_line() const noexcept { return sweep_.size() == 0; }

 private:
  std::vector<std::span<const float>> operands_;
  Tensor<float, 1> sweep_;
};

}  // namespace headlight::bench
