#include "models/tensor_files/npy_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "headlight/models/errors.h"
#include "headlight/storage_types.h"

namespace headlight::models {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and so is their reader");

// Three keys fit into 128 bytes; 32 axes of 19 digits into 800. Longer headers hold field names, which are refused
// anyway.
constexpr std::uint32_t kMostHeaderBytes = 1 << 16;

// Elements are converted in pieces, so that a file never lies in memory twice.
constexpr std::size_t kPieceBytes = 1 << 18;

struct Opened {
  NpyHeader header;
  std::uint64_t data_offset;
};

Opened open_npy(const files::InputFile& file) {
  const std::string& path = file.path();
  std::array<unsigned char, 12> start{};
  const auto given = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), start.size()));
  file.read(0, std::as_writable_bytes(std::span(start).first(given)));
  if (given < 10 || std::memcmp(start.data(), kNpyMagic.data(), kNpyMagic.size()) != 0) {
    throw FileError(path, "is no .npy file (it does not begin with \\x93NUMPY and a version)");
  }
  const int major = start[6];
  const int minor = start[7];
  if (major < 1 || major > 3 || minor != 0) {
    throw FileError(path, "has format version " + std::to_string(major) + "." + std::to_string(minor) +
                              ", expected 1.0, 2.0 or 3.0");
  }
  const std::uint64_t prefix = major == 1 ? 10 : 12;
  std::uint32_t length = static_cast<std::uint32_t>(start[8]) | static_cast<std::uint32_t>(start[9]) << 8;
  if (major > 1) length |= static_cast<std::uint32_t>(start[10]) << 16 | static_cast<std::uint32_t>(start[11]) << 24;
  if (file.size() < prefix || length > file.size() - prefix) {
    throw FileError(path, "ends inside its header (" + std::to_string(file.size()) + " bytes, header length " +
                              std::to_string(length) + ")");
  }
  if (length > kMostHeaderBytes) {
    throw FileError(path, "has a header of " + std::to_string(length) + " bytes, expected at most " +
                              std::to_string(kMostHeaderBytes));
  }
  std::string text(length, '\0');
  file.read(prefix, std::as_writable_bytes(std::span(text)));
  Opened opened{parse_npy_header(path, text), prefix + length};
  const auto expected =
      static_cast<std::uint64_t>(opened.header.count) * static_cast<std::uint64_t>(opened.header.element_size);
  const std::uint64_t given_bytes = file.size() - opened.data_offset;
  if (given_bytes != expected) {
    throw FileError(path, "holds " + std::to_string(given_bytes) + " bytes of data, but its shape and type say " +
                              std::to_string(expected));
  }
  return opened;
}

// Elements first … first + count − 1 of a file, in its order; byte `offset` is the first of them.
struct Range {
  std::uint64_t offset;
  std::int64_t first;
  std::int64_t count;
};

// What is to be read: the ranges in the file's order, and the shape of the array that they make up.
struct Selection {
  std::vector<Range> ranges;
  std::vector<std::int64_t> shape;
};

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t all = 1;
  for (const std::int64_t extent : extents) all *= extent;
  return all;
}

// Of a file in C order, a row is a range of as many elements as the axes behind it hold, once for each index of those
// before; in Fortran order it is the other way round. Ranges that touch are one.
Selection select_rows(const NpyHeader& header, std::uint64_t data_offset, std::size_t axis,
                      std::span<const RowRun> runs) {
  const std::span<const std::int64_t> before = std::span(header.shape).first(axis);
  const std::span<const std::int64_t> behind = std::span(header.shape).subspan(axis + 1);
  const std::int64_t row = product(header.fortran_order ? before : behind);
  const std::int64_t times = product(header.fortran_order ? behind : before);
  Selection selection{{}, header.shape};
  selection.shape[axis] = 0;
  for (const RowRun& run : runs) selection.shape[axis] += run.count;
  if (row == 0 || selection.shape[axis] == 0) return selection;
  std::vector<Range>& ranges = selection.ranges;
  for (std::int64_t n = 0; n < times; ++n) {
    for (const RowRun& run : runs) {
      const std::int64_t first = (n * header.shape[axis] + run.first) * row;
      if (!ranges.empty() && ranges.back().first + ranges.back().count == first) {
        ranges.back().count += run.count * row;
      } else {
        ranges.push_back(
            {data_offset + static_cast<std::uint64_t>(first * header.element_size), first, run.count * row});
      }
    }
  }
  return selection;
}

template <class Stored>
Stored load_element(const std::byte* from, bool big_endian) {
  std::array<std::byte, sizeof(Stored)> bytes;
  std::memcpy(bytes.data(), from, sizeof(Stored));
  if (big_endian) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<Stored>(bytes);
}

template <class T>
constexpr std::string_view kTypeName = std::is_same_v<T, float>          ? "float32 (or float16, float64)"
                                       : std::is_same_v<T, std::int64_t> ? "int64 (or another integer type, or bool)"
                                                                         : "uint8 or bool (or another integer type)";

std::string shortest(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

template <class T, class Stored>
T converted(const std::string& path, Stored stored, std::int64_t index) {
  if constexpr (std::is_same_v<Stored, double>) {
    const auto value = static_cast<float>(stored);
    if (std::isinf(value) && !std::isinf(stored)) {
      throw FileError(path, "element " + std::to_string(index) + " is " + shortest(stored) + ", beyond float32");
    }
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    if (!std::in_range<T>(stored)) {
      throw FileError(path, "element " + std::to_string(index) + " is " + std::to_string(stored) + ", expected " +
                                std::to_string(std::numeric_limits<T>::min()) + " to " +
                                std::to_string(std::numeric_limits<T>::max()));
    }
    return static_cast<T>(stored);
  } else {
    return stored;
  }
}

// Calls convert(bytes of one element, its index) for every element of the range, in file order.
template <class Convert>
void for_each_element(const files::InputFile& file, const NpyHeader& header, const Range& range,
                      const Convert& convert) {
  const auto size = static_cast<std::size_t>(header.element_size);
  std::vector<std::byte> piece(size * std::min(kPieceBytes / size, static_cast<std::size_t>(range.count)));
  std::uint64_t offset = range.offset;
  for (std::int64_t done = 0; done < range.count;) {
    const auto count = std::min(piece.size() / size, static_cast<std::size_t>(range.count - done));
    const std::span<std::byte> bytes = std::span(piece).first(count * size);
    file.read(offset, bytes);
    for (std::size_t i = 0; i < count; ++i) convert(bytes.data() + i * size, range.first + done++);
    offset += bytes.size();
  }
}

// Where element `index` of Fortran order (first axis fastest) lies in C order: an odometer that runs with the file.
class FortranOdometer {
 public:
  explicit FortranOdometer(const std::vector<std::int64_t>& shape)
      : shape_(shape), strides_(shape.size()), at_(shape.size(), 0) {
    std::int64_t stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      strides_[axis] = stride;
      stride *= shape[axis];
    }
  }

  std::size_t next() {
    const std::int64_t now = position_;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      position_ += strides_[axis];
      if (++at_[axis] < shape_[axis]) break;
      position_ -= strides_[axis] * shape_[axis];
      at_[axis] = 0;
    }
    return static_cast<std::size_t>(now);
  }

 private:
  const std::vector<std::int64_t>& shape_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> at_;
  std::int64_t position_ = 0;
};

constexpr auto kAsStored = [](auto stored) { return stored; };
using AsStored = std::remove_const_t<decltype(kAsStored)>;

template <class T, class Stored, class Widen>
void read_elements(const files::InputFile& file, const NpyHeader& header, std::span<const Range> ranges,
                   Array<T>& array, Widen widen) {
  FortranOdometer odometer(array.shape);
  const bool reorder = header.fortran_order && header.shape.size() > 1;
  std::size_t next = 0;
  for (const Range& range : ranges) {
    if constexpr (std::is_same_v<T, Stored> && std::is_same_v<Widen, AsStored>) {
      if (!reorder && !header.big_endian) {
        const std::span<T> values = std::span(array.values).subspan(next, static_cast<std::size_t>(range.count));
        file.read(range.offset, std::as_writable_bytes(values));
        next += values.size();
        continue;
      }
    }
    for_each_element(file, header, range, [&](const std::byte* from, std::int64_t index) {
      const auto stored = widen(load_element<Stored>(from, header.big_endian));
      array.values[reorder ? odometer.next() : next++] = converted<T>(file.path(), stored, index);
    });
  }
}

// By how much of itself a finite value changed.
double relative_change(double stored, float value) {
  return stored == 0 || !std::isfinite(stored) ? 0 : std::abs(static_cast<double>(value) - stored) / std::abs(stored);
}

// True when `header` holds what a T can be read from; the values are then read.
template <class T>
bool read_values(const files::InputFile& file, const NpyHeader& header, std::span<const Range> ranges,
                 Array<T>& array) {
  const int size = header.element_size;
  if constexpr (std::is_same_v<T, float>) {
    if (header.kind != 'f') return false;
    if (size == 2)
      read_elements<T, Float16>(file, header, ranges, array, [](Float16 stored) { return static_cast<float>(stored); });
    if (size == 4) read_elements<T, float>(file, header, ranges, array, kAsStored);
    if (size == 8) {
      read_elements<T, double>(file, header, ranges, array, [&](double stored) {
        array.rounded = std::max(array.rounded, relative_change(stored, static_cast<float>(stored)));
        return stored;
      });
    }
  } else if (header.kind == 'b') {
    read_elements<T, std::uint8_t>(file, header, ranges, array,
                                   [](std::uint8_t byte) { return std::uint8_t{byte != 0}; });
  } else if (header.kind == 'i') {
    if (size == 1) read_elements<T, std::int8_t>(file, header, ranges, array, kAsStored);
    if (size == 2) read_elements<T, std::int16_t>(file, header, ranges, array, kAsStored);
    if (size == 4) read_elements<T, std::int32_t>(file, header, ranges, array, kAsStored);
    if (size == 8) read_elements<T, std::int64_t>(file, header, ranges, array, kAsStored);
  } else if (header.kind == 'u') {
    if (size == 1) read_elements<T, std::uint8_t>(file, header, ranges, array, kAsStored);
    if (size == 2) read_elements<T, std::uint16_t>(file, header, ranges, array, kAsStored);
    if (size == 4) read_elements<T, std::uint32_t>(file, header, ranges, array, kAsStored);
    if (size == 8) read_elements<T, std::uint64_t>(file, header, ranges, array, kAsStored);
  } else {
    return false;
  }
  return true;
}

template <class T>
Array<T> read_selected(const files::InputFile& file, const NpyHeader& header, const Selection& selection) {
  // The header's elements may be smaller than a T. Axes of no extent do not excuse the others here either.
  auto bytes = static_cast<std::int64_t>(sizeof(T));
  for (const std::int64_t extent : selection.shape) {
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
      throw FileError(file.path(), "has the shape (" + npy_tuple(header.shape) + "), expected less than 2⁶³ bytes of " +
                                       std::to_string(sizeof(T)) + " for each number");
    }
  }
  std::int64_t count = 0;
  for (const Range& range : selection.ranges) count += range.count;
  Array<T> array{.shape = selection.shape, .values = {}};
  array.values.resize(static_cast<std::size_t>(count));
  if (!read_values(file, header, selection.ranges, array)) {
    throw FileError(file.path(), "has the type " + in_quotes(header.descr) + ", expected " + std::string(kTypeName<T>));
  }
  return array;
}

}  // namespace

NpyReader::NpyReader(const std::string& path) : file_(path) {
  Opened opened = open_npy(file_);
  header_ = std::move(opened.header);
  data_offset_ = opened.data_offset;
}

template <class T>
Array<T> NpyReader::read() const {
  Selection all{{}, header_.shape};
  if (header_.count > 0) all.ranges.push_back({data_offset_, 0, header_.count});
  return read_selected<T>(file_, header_, all);
}

template <class T>
Array<T> NpyReader::read_rows(std::size_t axis, std::span<const RowRun> runs) const {
  return read_selected<T>(file_, header_, select_rows(header_, data_offset_, axis, runs));
}

template Array<float> NpyReader::read() const;
template Array<std::int64_t> NpyReader::read() const;
template Array<std::uint8_t> NpyReader::read() const;
template Array<float> NpyReader::read_rows(std::size_t, std::span<const RowRun>) const;

template <class T>
Array<T> read_npy(const std::string& path) {
  return NpyReader(path).read<T>();
}

template Array<float> read_npy<float>(const std::string& path);
template Array<std::int64_t> read_npy<std::int64_t>(const std::string& path);
template Array<std::uint8_t> read_npy<std::uint8_t>(const std::string& path);

}  // namespace headlight::models
