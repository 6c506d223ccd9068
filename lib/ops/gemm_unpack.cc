#include "ops/gemm_unpack.h"

#include <algorithm>

#include "kernels/kernels.h"
#include "simd/integers.h"

namespace headlight::ops {

// As pack_matrix() placed them (kernels/gemm_kernels.h has the picture).
void unpack_columns(const PackedMatrix& b, std::int64_t first, std::int64_t count, float* rows) noexcept {
  const kernels::GemmKernels& kernels = kernels::gemm_kernels(b.isa());
  const std::int64_t depth = b.rows(), columns = b.columns(), width = kernels.panel_width;
  const std::int64_t row = round_up(columns, kernels.lanes);
  const std::int64_t depth_block = kernels.depth_block(depth);
  for (std::int64_t begin = 0; begin < depth; begin += depth_block) {
    const std::int64_t length = std::min(depth_block, depth - begin);
    for (std::int64_t column = first; column < first + count; ++column) {
      const std::int64_t panel = column / width * width;
      const std::int64_t panel_row = std::min(width, row - panel);
      const float* from = b.data() + begin * row + panel * length + (column - panel);
      float* to = rows + (column - first) * depth + begin;
      for (std::int64_t k = 0; k < length; ++k) to[k] = from[k * panel_row];
    }
  }
}

}  // namespace headlight::ops
