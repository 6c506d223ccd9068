#include "tools/headlight/support/arrays.h"

#include <new>

#include "headlight/models/errors.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

template <class Read>
auto with_memory(const models::NpyReader& file, const Read& read) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    throw models::FileError(file.path(), "memory for this array cannot be had");
  }
}

}  // namespace

std::string describe_float32(std::span<const std::int64_t> shape) { return describe(shape) + " float32"; }

void warn_if_rounded(const std::string& path, double rounded) {
  if (rounded == 0) return;
  print_warning(models::printable(path) + ": float64 is rounded to float32, which changes a value by up to " +
                format("%.2g", rounded) + " of itself");
}

ArrayFile::ArrayFile(const std::string& path, std::size_t axes, const std::string& meaning) : NpyReader(path) {
  if (shape().size() != axes) {
    throw models::FileError(path, "has shape " + describe(shape()) + ", expected " + meaning);
  }
}

template <class T>
models::Array<T> read_array(const models::NpyReader& file) {
  return with_memory(file, [&] { return file.read<T>(); });
}

models::Array<float> read_rows(const models::NpyReader& file, std::size_t axis, std::span<const RowRun> runs) {
  return with_memory(file, [&] { return file.read_rows<float>(axis, runs); });
}

template <class T>
Broadcast<T> read_broadcast(const std::string& path, std::size_t axes, const std::string& meaning) {
  Broadcast<T> array{read_array<T>(models::NpyReader(path)), {}};
  if (array.shape.size() > axes) {
    throw models::FileError(path,
                            "has shape " + describe(array.shape) + ", expected one that broadcasts against " + meaning);
  }
  array.own_shape = array.shape;
  array.shape.insert(array.shape.begin(), axes - array.shape.size(), 1);
  return array;
}

template models::Array<float> read_array(const models::NpyReader&);
template models::Array<std::int64_t> read_array(const models::NpyReader&);
template Broadcast<float> read_broadcast(const std::string&, std::size_t, const std::string&);
template Broadcast<std::uint8_t> read_broadcast(const std::string&, std::size_t, const std::string&);

}  // namespace headlight::program
