// A .npy file of any bytes, read as each of the three types: refused by a FileError, or its shape says as many values
// as there are, and what is written of them is read back to the bit.
#include <cstring>

#include "fuzz/bytes.h"
#include "fuzz/memory_file.h"
#include "headlight/models/errors.h"
#include "headlight/models/npy.h"

namespace headlight::fuzz::npy_fuzz {
namespace {

template <class T>
void read_as(const MemoryFile& file) {
  try {
    const models::Array<T> array = models::read_npy<T>(file.path());
    std::int64_t count = 1;
    for (const std::int64_t extent : array.shape) {
      must(extent >= 0 && !__builtin_mul_overflow(count, extent, &count), "extents whose product is a number");
    }
    must(static_cast<std::size_t>(count) == array.values.size(), "as many values as the shape says");
    static MemoryFile written;
    written.fill("");
    models::write_npy(written.path(), array.shape, array.values);
    const models::Array<T> again = models::read_npy<T>(written.path());
    must(again.shape == array.shape && again.values.size() == array.values.size(), "shapes are read as written");
    must(array.values.empty() ||
             std::memcmp(again.values.data(), array.values.data(), array.values.size() * sizeof(T)) == 0,
         "numbers are read as written");
  } catch (const models::FileError&) {
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  file.fill({reinterpret_cast<const char*>(data), size});
  read_as<float>(file);
  read_as<std::int64_t>(file);
  read_as<std::uint8_t>(file);
}

}  // namespace headlight::fuzz::npy_fuzz
