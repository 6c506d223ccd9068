// Splitting of row-wise operations: blocks of rows, fixed by the shape alone.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "headlight/view.h"
#include "kernels/rows/rows.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"

namespace headlight::ops {

// Its rows from `first` on; null where it is not given.
template <class T>
[[nodiscard]] kernels::Rows<T> rows_from(const View<T, 2>& matrix, std::int64_t first) noexcept {
  return {matrix ? matrix.data + first * matrix.stride(0) : nullptr, matrix.stride(0)};
}

// Its first element; null for a list without entries, which means that it is not given.
template <class T>
[[nodiscard]] T* given(std::span<T> list) noexcept {
  return list.empty() ? nullptr : list.data();
}

// How rows are cut into blocks, by their shape alone, and on how many workers those are worth computing.
// `nanoseconds_per_element` is one of runtime/costs.h. As many blocks as workers divide evenly, so that each worker has
// the rows that it had in the product before (parallel.h).
struct RowBlocks {
  RowBlocks(const Engine& engine, std::int64_t rows, std::int64_t columns, double nanoseconds_per_element) noexcept
      : runs(rows) {
    const double nanoseconds_per_row = nanoseconds_per_element * static_cast<double>(columns);
    // Less is too short for a second worker, and no longer than a task may be: one block, without a division.
    constexpr double kLeastToCut = 2 * runtime::costs::kPerWorker;
    static_assert(kLeastToCut <= runtime::costs::kRowTask);
    if (nanoseconds_per_row * static_cast<double>(rows) >= kLeastToCut) cut(engine, rows, nanoseconds_per_row);
  }

  runtime::Runs runs;  // of rows
  std::int64_t count = 1;
  int workers = 1;

 private:
  void cut(const Engine& engine, std::int64_t rows, double nanoseconds_per_row) noexcept;
};

// Calls f(first row, count), or f(first row, count, worker), for blocks that together are all rows.
template <class Function>
void for_row_blocks(Engine& engine, std::int64_t rows, std::int64_t columns, double nanoseconds_per_element,
                    Function f) {
  const RowBlocks blocks(engine, rows, columns, nanoseconds_per_element);
  runtime::parallel_for(engine, blocks.count, blocks.workers, [&](std::int64_t task, [[maybe_unused]] int worker) {
    const std::int64_t begin = blocks.runs.first(task), count = blocks.runs.first(task + 1) - begin;
    if constexpr (std::is_invocable_v<Function, std::int64_t, std::int64_t, int>) {
      f(begin, count, worker);
    } else {
      f(begin, count);
    }
  });
}

}  // namespace headlight::ops
