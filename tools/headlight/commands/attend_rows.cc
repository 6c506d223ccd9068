#include "tools/headlight/commands/attend_rows.h"

#include <algorithm>
#include <array>

#include "headlight/models/errors.h"
#include "ops/attention/check.h"

namespace headlight::program {
namespace {

// Views of all that there is, at one address: shapes are checked, nothing is read.
View<const float, 4> nowhere(std::span<const std::int64_t> shape) {
  static constexpr float kAnywhere = 0;
  View<const float, 4> view{&kAnywhere, {}, {0, 0, 0, 1}};
  std::copy_n(shape.begin(), view.shape.size(), view.shape.begin());
  return view;
}

}  // namespace

void HeldRows::plan(std::span<const std::int64_t> query, std::span<const std::int64_t> key,
                    std::span<const std::int64_t> value, const AttentionOptions& options) {
  if (calls_ == nullptr) return;
  static_cast<void>(ops::check_attention_inputs("attention", nowhere(query), nowhere(key), nowhere(value), options));
  whole_ = {query[0], query[1], key[1], query[2], key[2], query[3], value[3]};
  rows_ = calls_->plan(whole_, options);
}

models::Array<float> HeldRows::read(const models::NpyReader& file, RowsOf of) const {
  if (calls_ == nullptr) return read_array<float>(file);
  if (file.shape()[1] != length(of)) {
    throw models::FileError(file.path(), "has shape " + describe(file.shape()) + ", expected " +
                                             std::to_string(length(of)) + " rows on axis 1");
  }
  return read_rows(file, 1, of == RowsOf::queries ? rows_.queries : rows_.keys);
}

void HeldRows::warn_if_rounded(const std::string& path, const models::Array<float>& rows) const {
  const double rounded = calls_ == nullptr ? rows.rounded : calls_->largest(rows.rounded);
  if (tells()) program::warn_if_rounded(path, rounded);
}

void HeldRows::write(const std::string& path, const Tensor<float, 4>& rows, RowsOf of,
                     std::vector<WrittenFile>& written) const {
  if (path.empty() || calls_ == nullptr) return write_asked(path, rows, written);
  calls_->write(path, rows, of);
  std::array<std::int64_t, 4> shape = rows.shape();
  shape[1] = length(of);
  written.push_back({path, describe_float32(shape)});
}

void HeldRows::write(const std::string& path, const Tensor<float, 3>& sums, std::vector<WrittenFile>& written) const {
  if (path.empty() || calls_ == nullptr) return write_asked(path, sums, written);
  calls_->write(path, sums);
  std::array<std::int64_t, 3> shape = sums.shape();
  shape[2] = whole_.query_length;
  written.push_back({path, describe_float32(shape)});
}

}  // namespace headlight::program
