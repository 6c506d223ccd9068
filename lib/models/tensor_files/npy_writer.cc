#include <cstddef>
#include <string_view>

#include "headlight/models/atomic_file.h"
#include "headlight/models/npy.h"
#include "models/tensor_files/npy_header.h"

namespace headlight::models {
namespace {

[[noreturn]] void fail_to_write(std::string_view who, std::span<const std::int64_t> shape, const std::string& what) {
  throw std::invalid_argument(std::string(who) + ": the shape (" + npy_tuple(shape) + ") does not say " + what);
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

void write_array(const std::string& path, std::string_view descr, std::span<const std::int64_t> shape,
                 std::span<const std::byte> bytes, std::size_t count, std::size_t element_size) {
  constexpr std::string_view kCall = "write_npy";
  if (count_of(kCall, shape, element_size) != count) fail_to_write(kCall, shape, std::to_string(count) + " values");
  AtomicFile file(path);
  const std::string start = npy_start(descr, shape);
  file.write(start.data(), start.size());
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace

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
  const std::string start = npy_start("<f4", shape);
  file_.write(start.data(), start.size());
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
