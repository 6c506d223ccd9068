// Reading .npy files: all of an array, or some rows of one of its axes, with no more memory than those take.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/input_file.h"
#include "headlight/models/npy.h"
#include "headlight/row_shards.h"
#include "models/tensor_files/npy_header.h"

namespace headlight::models {

// A file whose header has been read. All throw FileError, for what read_npy() refuses.
class NpyReader {
 public:
  explicit NpyReader(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const noexcept { return header_.shape; }

  // The whole array. T: float, std::int64_t or std::uint8_t.
  template <class T>
  [[nodiscard]] Array<T> read() const;

  // Of each index of the axes before `axis`, these of its rows one behind another: of [B, L, H, D] and axis 1,
  // [B, n, H, D]. The runs lie within the axis.
  template <class T>
  [[nodiscard]] Array<T> read_rows(std::size_t axis, std::span<const RowRun> runs) const;

 private:
  files::InputFile file_;
  std::uint64_t data_offset_ = 0;
  NpyHeader header_;
};

extern template Array<float> NpyReader::read() const;
extern template Array<std::int64_t> NpyReader::read() const;
extern template Array<std::uint8_t> NpyReader::read() const;
extern template Array<float> NpyReader::read_rows(std::size_t, std::span<const RowRun>) const;

}  // namespace headlight::models
