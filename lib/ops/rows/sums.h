// Sums over rows with an order of their own: the gradients of biases and normalisation weights.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/kernels.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {

// The rows fall into runs fixed by their number alone: at most 64, for each has sums of its own in scratch memory, and
// of 16 rows at least.
struct RowRuns {
  explicit RowRuns(std::int64_t rows_) noexcept
      : rows(rows_), length(std::max<std::int64_t>(16, divide_up(rows_, 64))) {}

  // A quotient: to be asked once.
  [[nodiscard]] std::int64_t count() const noexcept { return divide_up(rows, length); }
  [[nodiscard]] std::int64_t first(std::int64_t run) const noexcept { return run * length; }
  [[nodiscard]] std::int64_t size(std::int64_t run) const noexcept { return std::min(length, rows - run * length); }

  std::int64_t rows;
  std::int64_t length;
};

// Between the partial sums of two runs.
constexpr std::int64_t sums_distance(std::int64_t columns) noexcept { return round_up(columns, 32); }

// Bytes of scratch that add_sums_over_rows() takes for so many sums.
inline std::size_t row_sums_bytes(std::int64_t rows, std::int64_t columns, std::int64_t sums) noexcept {
  runtime::ScratchLayout layout;
  for (std::int64_t s = 0; s < sums; ++s) layout.add<float>(RowRuns(rows).count(), sums_distance(columns));
  return layout.bytes();
}

// For each of several sums [columns], null where not wanted: sums[j] += Σ over runs, ascending, of the partial sums
// that `sum_run(first row, rows, partials, worker)` adds to zeros. Throws OutOfMemory in the name of `operation`.
template <std::size_t kSums, class Function>
void add_sums_over_rows(Engine& engine, std::string_view operation, std::int64_t rows, std::int64_t columns,
                        double nanoseconds_per_element, const std::array<float*, kSums>& sums, Function sum_run) {
  const RowRuns runs(rows);
  const std::int64_t count = runs.count();
  const std::int64_t distance = sums_distance(columns);
  runtime::ScratchLayout layout;
  std::array<runtime::ScratchPart<float>, kSums> parts{};
  for (std::size_t s = 0; s < kSums; ++s) {
    if (sums[s] != nullptr) parts[s] = layout.add<float>(count, distance);
  }
  const runtime::Scratch scratch(engine, layout.bytes(), operation);
  const auto partial_of = [&](std::size_t s, std::int64_t run) { return parts[s].in(scratch.data()) + run * distance; };
  const int workers = runtime::workers_for(
      engine, count, nanoseconds_per_element * static_cast<double>(rows) * static_cast<double>(columns));
  runtime::parallel_for(engine, count, workers, [&](std::int64_t run, int worker) {
    std::array<float*, kSums> partials{};
    for (std::size_t s = 0; s < kSums; ++s) {
      if (sums[s] == nullptr) continue;
      partials[s] = partial_of(s, run);
      std::fill_n(partials[s], columns, 0.0f);
    }
    sum_run(runs.first(run), runs.size(run), partials, worker);
  });
  const auto sum_rows = kernels::row_gradient_kernels(engine.isa()).sum_rows;
  for (std::size_t s = 0; s < kSums; ++s) {
    if (sums[s] != nullptr) sum_rows(partial_of(s, 0), distance, count, columns, sums[s]);
  }
}

}  // namespace headlight::ops
