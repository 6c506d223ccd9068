// How much memory rows take, before it is known how many there are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layers/rows.h"

namespace headlight::layers {

// Values one behind the other, each with a row for each token and at an address of its own (runtime::ScratchLayout).
class RowSpace {
 public:
  RowSpace() = default;
  // Of one value.
  RowSpace(std::int64_t columns, NumberType type) noexcept : floats_(row_floats(columns, type)), values_(1) {}

  // Rows are an odd number of 64-byte lines (row_distance), and values begin at every other line: an odd number of rows
  // leaves one free.
  [[nodiscard]] std::size_t bytes(std::int64_t rows) const noexcept {
    return static_cast<std::size_t>(floats_ * rows + values_ * (rows % 2) * 16) * sizeof(float);
  }
  // Of one row.
  [[nodiscard]] std::int64_t floats() const noexcept { return floats_; }

  RowSpace& operator+=(const RowSpace& other) noexcept {
    floats_ += other.floats_;
    values_ += other.values_;
    return *this;
  }
  RowSpace& operator-=(const RowSpace& other) noexcept {
    floats_ -= other.floats_;
    values_ -= other.values_;
    return *this;
  }
  friend RowSpace operator+(RowSpace a, const RowSpace& b) noexcept { return a += b; }
  friend RowSpace operator-(RowSpace a, const RowSpace& b) noexcept { return a -= b; }
  // So many times.
  friend RowSpace operator*(const RowSpace& space, std::int64_t times) noexcept {
    RowSpace product;
    product.floats_ = space.floats_ * times;
    product.values_ = space.values_ * times;
    return product;
  }
  friend bool operator==(const RowSpace&, const RowSpace&) = default;

 private:
  std::int64_t floats_ = 0;
  std::int64_t values_ = 0;
};

}  // namespace headlight::layers
