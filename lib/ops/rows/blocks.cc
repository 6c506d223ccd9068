#include "ops/rows/blocks.h"

#include <algorithm>

#include "simd/integers.h"

namespace headlight::ops {

void RowBlocks::cut(const Engine& engine, std::int64_t rows, double nanoseconds_per_row) noexcept {
  workers = runtime::workers_for(engine, rows, nanoseconds_per_row * static_cast<double>(rows));
  const auto most =
      std::max(std::int64_t{1}, static_cast<std::int64_t>(runtime::costs::kRowTask / (nanoseconds_per_row + 1)));
  const std::int64_t of_worker = divide_up(rows, workers);
  count = workers * divide_up(of_worker, most);
  runs = runtime::Runs(rows, count);
}

}  // namespace headlight::ops
