// Rows of a matrix that lie elsewhere, in parts: wherever a file has them, in whichever format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "headlight/layers/weight_matrix.h"
#include "headlight/storage_format.h"
#include "storage/formats.h"

namespace headlight::layers {

class LentRows {
 public:
  using Rows = WeightMatrix::Rows;
  using Lent = WeightMatrix::Lent;

  LentRows() = default;
  LentRows(std::vector<Lent> parts, std::int64_t columns) noexcept : parts_(std::move(parts)), columns_(columns) {}

  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }

  // The part that those rows are in, or null.
  [[nodiscard]] const Lent* find(const Rows& which) const noexcept {
    const auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Lent& some) {
      return some.rows.first <= which.first && which.first + which.count <= some.rows.first + some.rows.count;
    });
    return part == parts_.end() ? nullptr : &*part;
  }

  // Those rows where they lie side by side as floats already, or null.
  [[nodiscard]] const float* find_floats(const Rows& which) const noexcept {
    const Lent* const part = find(which);
    if (part == nullptr || part->numbers.format != StorageFormat::float32) return nullptr;
    return static_cast<const float*>(part->numbers.data) + (which.first - part->rows.first) * columns_;
  }

  // Those rows one after another, as floats.
  void copy(const Rows& which, float* to) const noexcept {
    walk(which, [&](const Lent& part, std::int64_t first, std::int64_t count, std::int64_t before) {
      widen_rows(part.numbers, columns_, first, count, to + before * columns_);
    });
  }

  // Scales of a row, where all those rows are integers that panels of that type take as they are; else 0.
  [[nodiscard]] std::int64_t scales_of_row(const Rows& which, NumberType panels) const noexcept {
    std::int64_t scales = 0;
    if (parts_.empty()) return 0;
    bool are_all = columns_ > 0 && which.count > 0;
    walk(which, [&](const Lent& part, std::int64_t, std::int64_t, std::int64_t) {
      const StorageFormatInfo& of = info(part.numbers.format);
      are_all = are_all && of.panels == panels;
      scales = storage::scales_of_row(of, columns_);
    });
    return are_all ? scales : 0;
  }
  void copy_integers(const Rows& which, float* to, float* scales, std::int64_t scales_of_row) const noexcept {
    walk(which, [&](const Lent& part, std::int64_t first, std::int64_t count, std::int64_t before) {
      const storage::Format& format = storage::table_entry(part.numbers.format);
      for (std::int64_t row = 0; row < count; ++row) {
        format.integers(storage::row_of(part.numbers, columns_, first + row), columns_, to + (before + row) * columns_,
                        scales + (before + row) * scales_of_row);
      }
    });
  }

  // Nobody reads those rows for the time being.
  void let_go(const Rows& which) const noexcept {
    if (parts_.empty()) return;
    walk(which, [&](const Lent& part, std::int64_t first, std::int64_t count, std::int64_t) {
      if (part.let_go == nullptr) return;
      const storage::Row row = storage::row_of(part.numbers, columns_, first);
      const std::int64_t scales = row_scale_bytes(part.numbers.format, columns_);
      part.let_go(row.blocks, static_cast<std::size_t>(count * row_bytes(part.numbers.format, columns_)));
      if (row.scales != nullptr) part.let_go(row.scales, static_cast<std::size_t>(count * scales));
    });
  }

 private:
  // f(part, first row in it, rows, rows before them) for all of those rows.
  template <class Function>
  void walk(const Rows& which, const Function& f) const noexcept {
    const std::int64_t end = which.first + which.count;
    for (std::int64_t row = which.first; row < end;) {
      const Lent& part = *find({row, 1});
      const std::int64_t count = std::min(end, part.rows.first + part.rows.count) - row;
      f(part, row - part.rows.first, count, row - which.first);
      row += count;
    }
  }

  std::vector<Lent> parts_;
  std::int64_t columns_ = 0;
};

}  // namespace headlight::layers
