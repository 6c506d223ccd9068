// numpy's .npy files: one array in a file.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "headlight/export.h"
#include "headlight/models/atomic_file.h"
#include "headlight/tensor.h"

namespace headlight::models {

// An array whose number of axes is known only when it is read.
template <class T>
struct Array {
  std::vector<std::int64_t> shape;  // [] is one number
  std::vector<T> values;            // C order
  // max |float32 − x| / |x| over the values x of a float64 file: what reading it as float changed. 0: nothing.
  double rounded = 0;

  // The same as a view of `Rank` axes; std::invalid_argument when it has another number of them.
  template <int Rank>
  [[nodiscard]] View<const T, Rank> view() const {
    return {values.data(), fixed_shape<Rank>()};
  }
  template <int Rank>
  [[nodiscard]] View<T, Rank> view() {
    return {values.data(), fixed_shape<Rank>()};
  }

 private:
  template <int Rank>
  [[nodiscard]] std::array<std::int64_t, static_cast<std::size_t>(Rank)> fixed_shape() const {
    std::array<std::int64_t, static_cast<std::size_t>(Rank)> fixed{};
    if (shape.size() != fixed.size()) {
      throw std::invalid_argument("the array has " + std::to_string(shape.size()) + " axes, expected " +
                                  std::to_string(Rank));
    }
    std::copy(shape.begin(), shape.end(), fixed.begin());
    return fixed;
  }
};

// Reads a file of format version 1.0, 2.0 or 3.0 as an array of T, either byte order, C or Fortran order:
// - float from float32 and float16 exactly, from float64 rounded (Array::rounded); a finite number beyond float32 is
//   refused;
// - std::int64_t from every integer type and bool; a value beyond 63 bits is refused;
// - std::uint8_t from bool (0 or 1) and every integer type; a value outside 0 … 255 is refused.
// Anything else (object, structured, text and complex arrays among them) is refused, as are arrays of more than 32
// axes, sizes beyond 2⁶³ and files that are shorter or longer than their header says; memory stays within a small
// multiple of the file. Throws FileError.
template <class T>
[[nodiscard]] HEADLIGHT_API Array<T> read_npy(const std::string& path);

// The types that there are.
extern template HEADLIGHT_API Array<float> read_npy<float>(const std::string& path);
extern template HEADLIGHT_API Array<std::int64_t> read_npy<std::int64_t>(const std::string& path);
extern template HEADLIGHT_API Array<std::uint8_t> read_npy<std::uint8_t>(const std::string& path);

// Writes values of `shape` in C order, little-endian, version 1.0, data at a multiple of 64 bytes; the file appears
// whole or not at all. Throws FileError when it cannot be written, std::invalid_argument when the shape does not say as
// many values, or is one that read_npy() refuses.
HEADLIGHT_API void write_npy(const std::string& path, std::span<const std::int64_t> shape,
                             std::span<const float> values);
HEADLIGHT_API void write_npy(const std::string& path, std::span<const std::int64_t> shape,
                             std::span<const std::int64_t> values);
HEADLIGHT_API void write_npy(const std::string& path, std::span<const std::int64_t> shape,
                             std::span<const std::uint8_t> values);

// The same for float32 values that come piece by piece, as many as the shape says.
class HEADLIGHT_API NpyWriter {
 public:
  // Throws as write_npy() does, with its own name.
  NpyWriter(const std::string& path, std::span<const std::int64_t> shape);
  // The next values in C order. Throws std::invalid_argument when they are more than are left.
  void write(std::span<const float> values);
  // The file appears. Throws std::invalid_argument when values are missing, std::logic_error the second time.
  void commit();

 private:
  std::uint64_t left_;  // before the file, which is not made for a shape that is refused
  AtomicFile file_;
};

}  // namespace headlight::models
