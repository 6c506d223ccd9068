#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "headlight/out_of_memory.h"
#include "headlight/storage_types.h"
#include "ops/gemm/internal.h"
#include "ops/gemm/split.h"
#include "ops/rows/blocks.h"
#include "runtime/cancellation.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

using kernels::GemmBlock;
using kernels::OperandLayout;

// Rows [row, row + rows) and columns [column, column + columns) of a product.
GemmBlock part(const GemmBlock& product, std::int64_t row, std::int64_t rows, std::int64_t column,
               std::int64_t columns) noexcept {
  GemmBlock block = product;
  block.rows = rows;
  block.columns = columns;
  block.a = kernels::numbers_behind(block.a, row * product.a_row_stride, block.a_type);
  block.c = kernels::numbers_behind(block.c, row * product.c_row_stride + column, block.c_type);
  block.b_column += column;
  if (product.epilogue.bias != nullptr) block.epilogue.bias += column;
  if (product.epilogue.residual != nullptr) {
    block.epilogue.residual += row * product.epilogue.residual_row_stride + column;
  }
  return block;
}

}  // namespace

GemmBlock gemm_block(const TypedView<2>& a, View<const float, 2> b, const MutableTypedView<2>& c, Transpose transpose_a,
                     Transpose transpose_b, float alpha, float beta) noexcept {
  const bool a_is_transposed = transpose_a == Transpose::yes;
  GemmBlock block{};
  block.rows = c.extent(0);
  block.columns = c.extent(1);
  block.depth = a.extent(a_is_transposed ? 0 : 1);
  block.a = a.data;
  block.a_type = a.type;
  // Rows without elements may lie any number apart.
  block.a_row_stride = a_is_transposed ? 1 : block.depth == 0 ? 0 : a.stride(0);
  block.a_depth_stride = a_is_transposed ? a.stride(0) : 1;
  block.b = gemm_operand(b, transpose_b);
  block.c = c.data;
  block.c_type = c.type;
  block.c_row_stride = c.stride(0);
  block.epilogue.alpha = alpha;
  block.epilogue.beta = beta;
  return block;
}

std::int64_t gemm_scratch_floats(Isa isa, std::int64_t m, std::int64_t n, std::int64_t k,
                                 Transpose transpose_a) noexcept {
  GemmBlock block{};
  block.rows = m;
  block.columns = n;
  block.depth = k;
  block.a_depth_stride = transpose_a == Transpose::yes ? 2 : 1;
  block.b.layout = kernels::OperandLayout::columns;  // asks for the most, and so does β
  block.epilogue.beta = 1.0f;
  return kernels::gemm_kernels(isa).scratch_floats(block);
}

namespace {

// Whether a product has one column, which lies side by side as what it is multiplied by does.
bool is_column(const GemmBlock& product) noexcept {
  const kernels::GemmEpilogue& epilogue = product.epilogue;
  return product.columns == 1 && product.rows > 1 && product.c_row_stride == 1 &&
         (product.b.layout == OperandLayout::columns ||
          (product.b.layout == OperandLayout::rows && product.b.stride == 1)) &&
         epilogue.bias == nullptr && (epilogue.residual == nullptr || epilogue.residual_row_stride == 1);
}

// Such products as ones with one row, (A x)ᵀ = xᵀ Aᵀ: Aᵀ is read where it lies, and an element's chain of multiply-adds
// is the same, and they are faster so.
GemmBatch as_rows(const GemmBatch& batch) noexcept {
  const GemmBlock& product = batch.product;
  GemmBatch turned = batch;
  std::swap(turned.a_stride, turned.b_stride);
  std::swap(turned.product.rows, turned.product.columns);
  turned.product.a = product.b.floats();
  turned.product.a_row_stride = product.depth;
  turned.product.a_depth_stride = 1;
  turned.product.b.data = product.a;
  const bool by_rows = product.a_depth_stride == 1;
  turned.product.b.layout = by_rows ? OperandLayout::columns : OperandLayout::rows;
  // That of a single row, or of rows without elements, may be any number.
  turned.product.b.stride = by_rows ? product.a_row_stride : product.a_depth_stride;
  if (product.depth < (by_rows ? 1 : 2)) turned.product.b.stride = 0;
  turned.product.c_row_stride = product.rows;
  turned.product.epilogue.residual_row_stride = product.rows;
  return turned;
}

// Floats of A's rows where tiles read them rounded.
std::int64_t rounded_floats(const kernels::GemmKernels& kernels, const GemmBlock& product) noexcept {
  return kernels.round_rows == nullptr ? 0 : product.rows * kernels.rounded_row(product.depth);
}

// Whether it is nearly over before it would be known how to cut it, and does with some of the stack: a panel always
// does, and A turned over beside it on most instruction sets.
constexpr std::int64_t kSmallExtent = 32;
constexpr std::int64_t kSmallScratch = 2048;
bool is_small(const kernels::GemmKernels& kernels, const GemmBatch& batch) noexcept {
  const GemmBlock& product = batch.product;
  if (batch.count != 1 || product.rows > kSmallExtent || product.columns > kSmallExtent || product.depth == 0 ||
      product.depth > kSmallExtent) {
    return false;
  }
  // Without asking the kernels, who would plan the product for that, and once more to compute it.
  const bool needs_panel_alone = kernels.round_rows == nullptr && product.a_depth_stride == 1;
  if (needs_panel_alone && kSmallExtent * kernels.panel_width <= kSmallScratch) return true;
  return rounded_floats(kernels, product) + kernels.scratch_floats(product) <= kSmallScratch;
}

}  // namespace

GemmBytes gemm_batch_bytes(const Engine& engine, const GemmBatch& batch) noexcept {
  if (is_column(batch.product)) return gemm_batch_bytes(engine, as_rows(batch));
  if (batch.count == 0 || batch.product.rows == 0 || batch.product.columns == 0) return {};
  if (is_small(gemm_kernels(engine, batch.product.b.type), batch)) return {};
  return {split_gemm(engine, batch.count, batch.product).borrowed(),
          split_gemm(engine, batch.count, batch.product, PackB::by_block).borrowed()};
}

kernels::Operand pack_matrix(Engine& engine, const kernels::Operand& b, NumberType type, std::int64_t depth,
                             std::int64_t columns, float* packed) noexcept {
  const kernels::GemmKernels& kernels = gemm_kernels(engine, type);
  const kernels::Operand panels = gemm_panels(kernels, type, depth, columns, packed);
  if (depth == 0 || columns == 0) return panels;
  const std::int64_t width = kernels.panel_width;
  const std::int64_t count = divide_up(columns, width);
  const int workers =
      runtime::workers_for(engine, count, static_cast<double>(panels.stride) * static_cast<double>(depth));
  runtime::parallel_for(engine, count, workers, [&](std::int64_t panel, int) noexcept {
    const std::int64_t column = panel * width;
    kernels.pack_columns(b, column, depth, column, std::min(width, columns - column), panels, packed,
                         &runtime::is_cancelled);
  });
  return panels;
}

namespace {

// Number k of a column of a panel, whose rows of words lie `stride` apart.
float number_at(const float* panel, std::int64_t column, std::int64_t stride, std::int64_t k, NumberType type,
                std::int64_t lanes) noexcept {
  if (type == NumberType::float32) return panel[k * stride + column];
  const float* const words = panel + k / 2 * stride;
  if (type == NumberType::float16) {  // the two rows of a vector of columns lie one behind the other
    const std::int64_t lane = column % lanes;
    std::uint16_t half = 0;
    std::memcpy(&half, reinterpret_cast<const char*>(words) + 2 * (2 * (column - lane) + k % 2 * lanes + lane),
                sizeof half);
    return static_cast<float>(Float16::from_bits(half));
  }
  const auto pair = std::bit_cast<std::uint32_t>(words[column]);
  return std::bit_cast<float>(k % 2 == 0 ? pair << 16 : pair & 0xffff0000);
}

}  // namespace

void unpack_columns(const PackedMatrix& b, std::int64_t first, std::int64_t count, float* rows) noexcept {
  // What features change is how panels are multiplied, not how they lie.
  const kernels::GemmKernels& kernels = gemm_kernels(b.isa(), {}, b.type());
  const std::int64_t depth = b.rows(), width = kernels.panel_width;
  const kernels::Operand panels = gemm_panels(kernels, b.type(), depth, b.columns(), b.data());
  const std::int64_t depth_block = kernels.depth_block(depth);
  for (std::int64_t begin = 0; begin < depth; begin += depth_block) {
    const std::int64_t length = std::min(depth_block, depth - begin);
    for (std::int64_t column = first; column < first + count; ++column) {
      const std::int64_t panel = column / width * width;
      const std::int64_t panel_row = std::min(width, panels.stride - panel);
      const float* from = panels.words() + panels.panel_at(begin, length, panel);
      float* to = rows + (column - first) * depth + begin;
      for (std::int64_t k = 0; k < length; ++k) {
        to[k] = number_at(from, column - panel, panel_row, k, b.type(), kernels.lanes);
      }
    }
  }
}

namespace {

// Rows of A as the kernels read them, from `rounded` on.
void read_rounded(GemmBlock& block, const kernels::GemmKernels& kernels, const float* rounded) noexcept {
  block.a = rounded;
  block.a_type = NumberType::float32;
  block.a_row_stride = kernels.rounded_row(block.depth);
  block.a_depth_stride = 1;
}

// The same where they lie already, in words of two numbers.
void read_in_place(GemmBlock& block) noexcept {
  block.a_type = NumberType::float32;
  block.a_row_stride /= 2;
}

// A frame of its own: larger products have none of it.
[[gnu::noinline]] void run_small(const kernels::GemmKernels& kernels, GemmBlock product) noexcept {
  alignas(64) float scratch[kSmallScratch];
  product.scratch = scratch + rounded_floats(kernels, product);
  if (lies_rounded(kernels, product)) {
    read_in_place(product);
  } else if (kernels.round_rows != nullptr) {
    kernels.round_rows(product, scratch);
    read_rounded(product, kernels, scratch);
  }
  kernels.block(product);
}

// Rows of A as the kernels read them, so many at a time that what is between two questions does not grow with K.
void round_rows(const kernels::GemmKernels& kernels, const GemmBlock& block, float* rounded) noexcept {
  constexpr std::int64_t kNumbersOfQuestion = std::int64_t{4} << 20;
  const std::int64_t stride = kernels.rounded_row(block.depth);
  const std::int64_t rows = std::max(kNumbersOfQuestion / block.depth / kernels.lanes, std::int64_t{1}) * kernels.lanes;
  for (std::int64_t row = 0; row < block.rows && !runtime::is_cancelled(); row += rows) {
    kernels.round_rows(part(block, row, std::min(rows, block.rows - row), 0, block.columns), rounded + row * stride);
  }
}

// All of A rounded once, by all workers.
void round_ahead(Engine& engine, const kernels::GemmKernels& kernels, GemmBlock& product, float* rounded) noexcept {
  const std::int64_t stride = kernels.rounded_row(product.depth);
  for_row_blocks(engine, product.rows, product.depth, runtime::costs::kGemmRounding,
                 [&](std::int64_t first, std::int64_t count) noexcept {
                   round_rows(kernels, part(product, first, count, 0, product.columns), rounded + first * stride);
                 });
  read_rounded(product, kernels, rounded);
}

// Between two looks whether the call shall end.
constexpr std::int64_t kPanelsOfQuestion = 16;

// The products, cut so.
void run_split(Engine& engine, const GemmBatch& batch, const GemmSplit& split, std::byte* scratch) noexcept {
  GemmBlock product = batch.product;
  // An operand without elements may have no memory: arithmetic on its pointer must be harmless.
  if (product.depth == 0) product.b.data = product.a = product.c;

  if (split.packs_first) {
    product.b = pack_matrix(engine, product.b, NumberType::float32, product.depth, product.columns,
                            split.in(scratch, split.packed));
  }

  const kernels::GemmKernels& kernels = gemm_kernels(engine, product.b.type);
  if (lies_rounded(kernels, product)) read_in_place(product);
  if (split.rounding == RoundA::ahead) {
    round_ahead(engine, kernels, product, split.in(scratch, split.rounded));
  }
  const std::int64_t blocks_each = split.row_blocks * split.column_blocks;
  const std::int64_t rows_of_group = split.row_blocks / split.row_groups;
  const std::int64_t blocks = batch.count * blocks_each;
  runtime::parallel_for(engine, split.tasks, split.workers, [&](std::int64_t task, int worker) noexcept {
    const std::int64_t end = std::min((task + 1) * split.grain, blocks);
    for (std::int64_t index = task * split.grain; index < end && !runtime::is_cancelled(); ++index) {
      const std::int64_t item = index / blocks_each;
      const std::int64_t group = index % blocks_each / (rows_of_group * split.column_blocks);
      const std::int64_t inner = index % (rows_of_group * split.column_blocks);
      const std::int64_t row_block =
          group * rows_of_group + (split.rows_fastest ? inner % rows_of_group : inner / split.column_blocks);
      const std::int64_t column_block = split.rows_fastest ? inner / rows_of_group : inner % split.column_blocks;
      const std::int64_t row = runtime::first_of_run(product.rows, split.row_blocks, row_block);
      const std::int64_t column = column_block * split.columns_each;
      GemmBlock block = part(product, row, runtime::first_of_run(product.rows, split.row_blocks, row_block + 1) - row,
                             column, std::min(split.columns_each, product.columns - column));
      block.a = kernels::numbers_behind(block.a, item * batch.a_stride, block.a_type);
      if (batch.b_stride != 0) block.b = block.b.from(item * batch.b_stride);
      block.c = kernels::numbers_behind(block.c, item * batch.c_stride, block.c_type);
      if (block.epilogue.residual != nullptr) block.epilogue.residual += item * batch.residual_stride;
      block.scratch = split.in(scratch, worker, split.scratch);
      block.is_cancelled = &runtime::is_cancelled;
      if (split.rounding == RoundA::by_block) {
        const std::int64_t rows = divide_up(product.rows, split.row_blocks);
        float* const rounded = split.in(scratch, split.rounded) + worker * rows * kernels.rounded_row(product.depth);
        round_rows(kernels, block, rounded);
        read_rounded(block, kernels, rounded);
      }
      if (split.rounding != RoundA::by_block || !runtime::may_be_cancelled()) {
        kernels.block(block);
        continue;
      }
      // Such rows are taken by all columns: of a call that somebody may end, not all in one go.
      const std::int64_t columns = kPanelsOfQuestion * kernels.panel_width;
      for (std::int64_t first = 0; first < block.columns && !runtime::is_cancelled(); first += columns) {
        kernels.block(part(block, 0, block.rows, first, std::min(columns, block.columns - first)));
      }
    }
  });
}

// A frame of its own: products that borrow their memory have none of it.
[[gnu::noinline]] void run_on_stack(Engine& engine, const GemmBatch& batch, const GemmSplit& split) noexcept {
  alignas(128) std::byte scratch[GemmSplit::kStackBytes];
  run_split(engine, batch, split, scratch);
}

// Throws OutOfMemory before anything is written.
void run(Engine& engine, const GemmBatch& batch, const GemmSplit& split) {
  if (split.bytes() > 0 && split.fits_stack()) return run_on_stack(engine, batch, split);
  const runtime::Scratch scratch(engine, split.bytes(), "gemm");
  run_split(engine, batch, split, scratch.data());
}

}  // namespace

void run_gemm_batch(Engine& engine, const GemmBatch& batch) {
  const GemmBlock& product = batch.product;
  if (is_column(product)) return run_gemm_batch(engine, as_rows(batch));
  if (batch.count == 0 || product.rows == 0 || product.columns == 0) return;
  if (product.depth == 0 && product.b.type != NumberType::float32) {
    // Of nothing every type makes the same, and here no number of A or B is looked for.
    GemmBatch of_floats = batch;
    of_floats.product.a_type = of_floats.product.b.type = NumberType::float32;
    return run_gemm_batch(engine, of_floats);
  }
  const kernels::GemmKernels& kernels = gemm_kernels(engine, product.b.type);
  if (is_small(kernels, batch)) return run_small(kernels, product);
  const GemmSplit split = split_gemm(engine, batch.count, product);
  try {
    return run(engine, batch, split);
  } catch (const OutOfMemory&) {
    if (!split.packs_first) throw;
  }
  // There is no room for all of B, 64 MiB at most; for a panel of it there may be.
  run(engine, batch, split_gemm(engine, batch.count, product, PackB::by_block));
}

}  // namespace headlight::ops
