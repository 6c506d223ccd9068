#include "tools/headlight/arrays.h"

#include "headlight/models/errors.h"

namespace headlight::program {

std::string describe(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

template <class T>
models::Array<T> read_array(const std::string& path, std::size_t axes, const std::string& meaning) {
  models::Array<T> array = models::read_npy<T>(path);
  if (array.shape.size() != axes)
    throw models::FileError(path, "has shape " + describe(array.shape) + ", expected " + meaning);
  return array;
}

template <class T>
models::Array<T> read_broadcast(const std::string& path, std::size_t axes, const std::string& meaning) {
  models::Array<T> array = models::read_npy<T>(path);
  if (array.shape.size() > axes) {
    throw models::FileError(path,
                            "has shape " + describe(array.shape) + ", expected one that broadcasts against " + meaning);
  }
  array.shape.insert(array.shape.begin(), axes - array.shape.size(), 1);
  return array;
}

template models::Array<float> read_array(const std::string&, std::size_t, const std::string&);
template models::Array<std::int64_t> read_array(const std::string&, std::size_t, const std::string&);
template models::Array<float> read_broadcast(const std::string&, std::size_t, const std::string&);
template models::Array<std::uint8_t> read_broadcast(const std::string&, std::size_t, const std::string&);

}  // namespace headlight::program
