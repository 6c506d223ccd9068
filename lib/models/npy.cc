#include "headlight/models/npy.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "headlight/models/atomic_file.h"
#include "headlight/models/errors.h"
#include "headlight/storage_types.h"
#include "models/input_file.h"
#include "models/npy_header.h"

namespace headlight::models {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and so is their reader");

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::size_t kAlignment = 64;
// Three keys fit into 128 bytes; 32 axes of 19 digits into 800. Longer headers hold field names, which are refused
// anyway.
constexpr std::uint32_t kMostHeaderBytes = 1 << 16;

// Elements are converted in pieces, so that a file never lies in memory twice.
constexpr std::size_t kPieceBytes = 1 << 18;

struct Opened {
  NpyHeader header;
  std::uint64_t data_offset = 0;
};

Opened open_npy(const InputFile& file) {
  const std::string& path = file.path();
  std::array<unsigned char, 12> start{};
  const auto given = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), start.size()));
  file.read(0, std::as_writable_bytes(std::span(start).first(given)));
  if (given < 10 || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
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

// Calls convert(bytes of one element, its index) for every element of the file, in file order.
template <class Convert>
void for_each_element(const InputFile& file, const Opened& opened, Convert convert) {
  const auto size = static_cast<std::size_t>(opened.header.element_size);
  std::vector<std::byte> piece;
  std::uint64_t offset = opened.data_offset;
  for (std::int64_t index = 0; index < opened.header.count;) {
    const auto count = std::min(kPieceBytes / size, static_cast<std::size_t>(opened.header.count - index));
    piece.resize(count * size);
    file.read(offset, piece);
    for (std::size_t i = 0; i < count; ++i) convert(piece.data() + i * size, index++);
    offset += piece.size();
  }
}

// Where element `index` of Fortran order (first axis fastest) lies in C order: an odometer that steps with the file.
class FortranOdometer {
 public:
  explicit FortranOdometer(const std::vector<std::int64_t>& shape)
      : shape_(shape), strides_(shape.size()), at_(shape.size(), 0) {
    std::int64_t step = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      strides_[axis] = step;
      step *= shape[axis];
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

template <class T, class Stored, class Widen>
void read_elements(const InputFile& file, const Opened& opened, std::vector<T>& values, Widen widen) {
  FortranOdometer odometer(opened.header.shape);
  const bool reorder = opened.header.fortran_order && opened.header.shape.size() > 1;
  for_each_element(file, opened, [&](const std::byte* from, std::int64_t index) {
    const auto stored = widen(load_element<Stored>(from, opened.header.big_endian));
    values[reorder ? odometer.next() : static_cast<std::size_t>(index)] = converted<T>(file.path(), stored, index);
  });
}

// By how much of itself a finite value changed.
double relative_change(double stored, float value) {
  return stored == 0 || !std::isfinite(stored) ? 0 : std::abs(static_cast<double>(value) - stored) / std::abs(stored);
}

constexpr auto kAsStored = [](auto stored) { return stored; };

// True when `header` holds what a T can be read from; the values are then read.
template <class T>
bool read_values(const InputFile& file, const Opened& opened, Array<T>& array) {
  std::vector<T>& values = array.values;
  const NpyHeader& header = opened.header;
  const int size = header.element_size;
  if constexpr (std::is_same_v<T, float>) {
    if (header.kind != 'f') return false;
    if (size == 2)
      read_elements<T, Float16>(file, opened, values, [](Float16 stored) { return static_cast<float>(stored); });
    if (size == 4) read_elements<T, float>(file, opened, values, kAsStored);
    if (size == 8) {
      read_elements<T, double>(file, opened, values, [&](double stored) {
        array.rounded = std::max(array.rounded, relative_change(stored, static_cast<float>(stored)));
        return stored;
      });
    }
  } else if (header.kind == 'b') {
    read_elements<T, std::uint8_t>(file, opened, values, [](std::uint8_t byte) { return std::uint8_t{byte != 0}; });
  } else if (header.kind == 'i') {
    if (size == 1) read_elements<T, std::int8_t>(file, opened, values, kAsStored);
    if (size == 2) read_elements<T, std::int16_t>(file, opened, values, kAsStored);
    if (size == 4) read_elements<T, std::int32_t>(file, opened, values, kAsStored);
    if (size == 8) read_elements<T, std::int64_t>(file, opened, values, kAsStored);
  } else if (header.kind == 'u') {
    if (size == 1) read_elements<T, std::uint8_t>(file, opened, values, kAsStored);
    if (size == 2) read_elements<T, std::uint16_t>(file, opened, values, kAsStored);
    if (size == 4) read_elements<T, std::uint32_t>(file, opened, values, kAsStored);
    if (size == 8) read_elements<T, std::uint64_t>(file, opened, values, kAsStored);
  } else {
    return false;
  }
  return true;
}

// "3, 4"
std::string tuple_of(std::span<const std::int64_t> shape) {
  std::string tuple;
  for (const std::int64_t extent : shape) tuple += (tuple.empty() ? "" : ", ") + std::to_string(extent);
  return shape.size() == 1 ? tuple + ',' : tuple;
}

[[noreturn]] void fail_to_write(std::string_view who, std::span<const std::int64_t> shape, const std::string& what) {
  throw std::invalid_argument(std::string(who) + ": the shape (" + tuple_of(shape) + ") does not say " + what);
}

// How many values the shape says. Throws for what read_npy() would refuse: axes of no extent do not excuse the others.
std::uint64_t count_of(std::string_view who, std::span<const std::int64_t> shape, std::size_t element_size) {
  if (shape.size() > kMostAxes) {
    throw std::invalid_argument(std::string(who) + ": the shape has " + std::to_string(shape.size()) +
                                " axes, expected at most " + std::to_string(kMostAxes));
  }
  auto bytes = static_cast<std::int64_t>(element_size);
  bool empty = false;
  for (const std::int64_t extent : shape) {
    empty = empty || extent == 0;
    if (extent < 0 || (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes))) {
      fail_to_write(who, shape, "how many values there are, expected extents ≥ 0 and less than 2⁶³ bytes");
    }
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes) / element_size;
}

void write_header(AtomicFile& file, std::string_view descr, std::span<const std::int64_t> shape) {
  std::string header = std::string(kMagic) + std::string("\x01\x00\x00\x00", 4) + "{'descr': '" + std::string(descr) +
                       "', 'fortran_order': False, 'shape': (" + tuple_of(shape) + "), }";
  header.append(kAlignment - 1 - header.size() % kAlignment, ' ');
  header += '\n';
  const std::size_t length = header.size() - 10;
  header[8] = static_cast<char>(length & 0xFF);
  header[9] = static_cast<char>(length >> 8);
  file.write(header.data(), header.size());
}

void write_array(const std::string& path, std::string_view descr, std::span<const std::int64_t> shape,
                 std::span<const std::byte> bytes, std::size_t count, std::size_t element_size) {
  constexpr std::string_view kName = "write_npy";
  if (count_of(kName, shape, element_size) != count) fail_to_write(kName, shape, std::to_string(count) + " values");
  AtomicFile file(path);
  write_header(file, descr, shape);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace

template <class T>
Array<T> read_npy(const std::string& path) {
  const InputFile file(path);
  const Opened opened = open_npy(file);
  // The header's elements may be smaller than a T. Axes of no extent do not excuse the others here either.
  auto bytes = static_cast<std::int64_t>(sizeof(T));
  for (const std::int64_t extent : opened.header.shape) {
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
      throw FileError(path, "has the shape (" + tuple_of(opened.header.shape) + "), expected less than 2⁶³ bytes of " +
                                std::to_string(sizeof(T)) + " for each number");
    }
  }
  Array<T> array{.shape = opened.header.shape, .values = {}};
  array.values.resize(static_cast<std::size_t>(opened.header.count));
  if (!read_values(file, opened, array)) {
    throw FileError(path, "has the type " + in_quotes(opened.header.descr) + ", expected " + std::string(kTypeName<T>));
  }
  return array;
}

template Array<float> read_npy<float>(const std::string& path);
template Array<std::int64_t> read_npy<std::int64_t>(const std::string& path);
template Array<std::uint8_t> read_npy<std::uint8_t>(const std::string& path);

void write_npy(const std::string& path, std::span<const std::int64_t> shape, std::span<const float> values) {
  write_array(path, "<f4", shape, std::as_bytes(values), values.size(), sizeof values[0]);
}
void write_npy(const std::string& path, std::span<const std::int64_t> shape, std::span<const std::int64_t> values) {
  write_array(path, "<i8", shape, std::as_bytes(values), values.size(), sizeof values[0]);
}
void write_npy(const std::string& path, std::span<const std::int64_t> shape, std::span<const std::uint8_t> values) {
  write_array(path, "|u1", shape, std::as_bytes(values), values.size(), sizeof values[0]);
}

NpyWriter::NpyWriter(const std::string& path, std::span<const std::int64_t> shape)
    : left_(count_of("NpyWriter", shape, sizeof(float))), file_(path) {
  write_header(file_, "<f4", shape);
}

void NpyWriter::write(std::span<const float> values) {
  if (values.size() > left_) {
    throw std::invalid_argument("NpyWriter: " + std::to_string(values.size()) + " values are written, expected " +
                                std::to_string(left_) + " more at most");
  }
  file_.write(values.data(), values.size_bytes());
  left_ -= values.size();
}

void NpyWriter::commit() {
  if (left_ > 0) throw std::invalid_argument("NpyWriter: " + std::to_string(left_) + " values are missing");
  file_.commit();
}

}  // namespace headlight::models
