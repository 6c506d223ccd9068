// The header of a .npy file, from the bytes that it begins with: a Python dict literal, read strictly and by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::models {

// What a file begins with.
constexpr std::string_view kNpyMagic{"\x93NUMPY", 6};

// As numpy itself up to its version 1; the headers that npy_writer.cc writes stay short by it.
constexpr std::size_t kMostAxes = 32;

struct NpyHeader {
  char kind = 0;         // 'f' float, 'i' signed, 'u' unsigned, 'b' bool
  int element_size = 0;  // bytes: 1, 2, 4 or 8
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;  // elements; count · element_size < 2⁶³
  std::string descr;       // as the file spells it
};

// Reads the dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" and padding. Throws FileError.
[[nodiscard]] NpyHeader parse_npy_header(const std::string& path, std::string_view text);

// What lies before the numbers in a file of version 1.0, C order: a multiple of 64 bytes.
[[nodiscard]] std::string npy_start(std::string_view descr, std::span<const std::int64_t> shape);

// "3, 4", and "3," of one axis.
[[nodiscard]] std::string npy_tuple(std::span<const std::int64_t> shape);

}  // namespace headlight::models
