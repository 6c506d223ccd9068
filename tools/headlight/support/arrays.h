// .npy files as the subcommands need them: of a known number of axes, or broadcast to it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headlight/models/npy.h"
#include "headlight/tensor.h"
#include "models/describe.h"
#include "models/tensor_files/npy_reader.h"
#include "tools/headlight/support/output.h"

namespace headlight::program {

using models::describe;

// A file whose header has been read, of an array that has `axes` axes; `meaning` says which they are: "[B, Lq, Hq, D]".
// Throws FileError.
class ArrayFile : public models::NpyReader {
 public:
  ArrayFile(const std::string& path, std::size_t axes, const std::string& meaning);
};

// The array in a file. Throws FileError, also where there is no memory for it.
template <class T>
[[nodiscard]] models::Array<T> read_array(const models::NpyReader& file);
template <class T>
[[nodiscard]] models::Array<T> read_array(const std::string& path, std::size_t axes, const std::string& meaning) {
  return read_array<T>(ArrayFile(path, axes, meaning));
}
// NpyReader::read_rows() likewise.
[[nodiscard]] models::Array<float> read_rows(const models::NpyReader& file, std::size_t axis,
                                             std::span<const RowRun> runs);

// One line on standard error where float64 became float32 and not all values survived that (Array::rounded).
void warn_if_rounded(const std::string& path, double rounded);
inline void warn_if_rounded(const std::string& path, const models::Array<float>& array) {
  warn_if_rounded(path, array.rounded);
}

// "[2, 5, 3, 64] float32"
[[nodiscard]] std::string describe_float32(std::span<const std::int64_t> shape);

// Writes the tensor where a name is given, and says so in `written`; in its own shape, or in one of as many elements.
template <int Rank>
void write_asked(const std::string& path, const Tensor<float, Rank>& tensor, std::vector<WrittenFile>& written,
                 std::optional<std::span<const std::int64_t>> shape = std::nullopt) {
  if (path.empty()) return;
  if (!shape) shape = tensor.shape();
  models::write_npy(path, *shape, {tensor.begin(), tensor.end()});
  written.push_back({path, describe_float32(*shape)});
}

// An array whose shape has got axes of extent 1 in front, as broadcasting has it.
template <class T>
struct Broadcast : models::Array<T> {
  std::vector<std::int64_t> own_shape;  // as the file has it
};

// The array in `path` with as many axes as make it `axes`.
template <class T>
[[nodiscard]] Broadcast<T> read_broadcast(const std::string& path, std::size_t axes, const std::string& meaning);

extern template models::Array<float> read_array(const models::NpyReader&);
extern template models::Array<std::int64_t> read_array(const models::NpyReader&);
extern template Broadcast<float> read_broadcast(const std::string&, std::size_t, const std::string&);
extern template Broadcast<std::uint8_t> read_broadcast(const std::string&, std::size_t, const std::string&);

}  // namespace headlight::program
