// Splitting of row-wise operations: blocks of rows, fixed by the shape alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "headlight/view.h"
#include "kernels/rows/rows.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

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

// Calls f(first row, count), or f(first row, count, worker), for blocks that together are all rows, on as many workers
// as the work is worth. `nanoseconds_per_element` is one of runtime/costs.h. As many blocks as workers divide evenly,
// so that each worker has the rows that it had in the product before (parallel.h).
template <class Function>
void for_row_blocks(Engine& engine, std::int64_t rows, std::int64_t columns, double nanoseconds_per_element,
                    Function f) {
  const double nanoseconds_per_row = nanoseconds_per_element * static_cast<double>(columns);
  const int workers = runtime::workers_for(engine, rows, nanoseconds_per_row * static_cast<double>(rows));
  const auto most =
      std::max(std::int64_t{1}, static_cast<std::int64_t>(runtime::costs::kRowTask / (nanoseconds_per_row + 1)));
  const std::int64_t of_worker = divide_up(rows, workers);
  const std::int64_t blocks = workers * divide_up(of_worker, most);
  const auto first = [&](std::int64_t task) { return runtime::first_of_run(rows, blocks, task); };
  runtime::parallel_for(engine, blocks, workers, [&](std::int64_t task, [[maybe_unused]] int worker) {
    const std::int64_t begin = first(task), count = first(task + 1) - begin;
    if constexpr (std::is_invocable_v<Function, std::int64_t, std::int64_t, int>) {
      f(begin, count, worker);
    } else {
      f(begin, count);
    }
  });
}

}  // namespace headlight::ops
