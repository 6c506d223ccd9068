// The tensors [B, L, H, D] of headlight attend, as files: whole ones, or the rows that this process holds where several
// compute together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/attention.h"
#include "models/tensor_files/npy_reader.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/arrays.h"

namespace headlight::program {

class HeldRows {
 public:
  // calls: null where this process computes alone; it then holds everything.
  explicit HeldRows(AttentionCalls* calls) : calls_(calls) {}

  // What this process holds of operands with these shapes. Throws std::invalid_argument where they do not fit together.
  void plan(std::span<const std::int64_t> query, std::span<const std::int64_t> key, std::span<const std::int64_t> value,
            const AttentionOptions& options);

  // Of an array of four axes, the rows held. Throws models::FileError.
  [[nodiscard]] models::Array<float> read(const models::NpyReader& file, RowsOf of) const;
  // Tells once what rounding has changed in the whole: all processes call it together.
  void warn_if_rounded(const std::string& path, const models::Array<float>& rows) const;

  // As write_asked(), from the rows held: all processes call them together.
  void write(const std::string& path, const Tensor<float, 4>& rows, RowsOf of, std::vector<WrittenFile>& written) const;
  // Of log_sum_exp, [B, H, L].
  void write(const std::string& path, const Tensor<float, 3>& sums, std::vector<WrittenFile>& written) const;
  // Whether this process writes what all of them have alike, and tells what has been written.
  [[nodiscard]] bool tells() const { return calls_ == nullptr || calls_->tells(); }

 private:
  [[nodiscard]] std::int64_t length(RowsOf of) const noexcept {
    return of == RowsOf::queries ? whole_.query_length : whole_.key_length;
  }

  AttentionCalls* calls_;
  AttentionShape whole_{};
  AttentionRows rows_;
};

}  // namespace headlight::program
