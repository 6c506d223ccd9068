// B laid out in panels, once: from a matrix that lies somewhere, or from rows that come a few at a time.
#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <string_view>

#include "headlight/gemm.h"
#include "headlight/out_of_memory.h"
#include "ops/check.h"
#include "ops/gemm/internal.h"
#include "ops/gemm/row_source.h"
#include "ops/typed_check.h"
#include "runtime/cancellation.h"
#include "runtime/large_memory.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {

namespace {

constexpr std::string_view kPackedMatrixName = "PackedMatrix";

}  // namespace

void PackedMatrix::Free::operator()(std::byte* panels) const noexcept { runtime::release_large(panels, bytes); }

void ops::check_product_type(std::string_view operation, std::string_view argument, NumberType type) {
  if (type <= NumberType::int4) return check_built_type(operation, argument, type);
  fail(operation, argument, " is ", type_name(type), ", expected float32, bfloat16, float16, int8 or int4");
}

void PackedMatrix::allocate(const Engine& engine) {
  const kernels::Operand panels = {.type = type_, .layout = kernels::OperandLayout::panels};
  const std::int64_t lanes = ops::gemm_kernels(engine, type_).lanes;
  std::int64_t words = 0;
  // Of a matrix without elements no size was checked, and its columns may be too many to round up.
  if (rows_ != 0 && columns_ != 0) {
    const std::int64_t vectors = columns_ / lanes + (columns_ % lanes != 0 ? 1 : 0);
    if (__builtin_mul_overflow(vectors, lanes, &words) ||
        __builtin_mul_overflow(words, panels.packed_rows(rows_), &words) || words > INT64_MAX / 8) {
      ops::fail(kPackedMatrixName, "b of shape ", std::array{rows_, columns_}, " has more bytes than 64 bits address");
    }
  }
  const std::size_t bytes = static_cast<std::size_t>(words) * sizeof(float);
  try {
    panels_ = {runtime::allocate_large(bytes), Free{bytes}};
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(kPackedMatrixName, bytes);
  }
}

PackedMatrix::PackedMatrix(Engine& engine, View<const float, 2> b, Transpose transpose_b, NumberType type)
    : isa_(engine.isa()), type_(type) {
  ops::check_view(kPackedMatrixName, "b", b);
  ops::check_product_type(kPackedMatrixName, "type", type);
  const bool transposed = transpose_b == Transpose::yes;
  rows_ = b.extent(transposed ? 1 : 0);
  columns_ = b.extent(transposed ? 0 : 1);
  allocate(engine);
  ops::pack_matrix(engine, ops::gemm_operand(b, transpose_b), type, rows_, columns_,
                   reinterpret_cast<float*>(panels_.get()));
  // Panels are kept: half of them would be wrong for ever.
  runtime::throw_if_stopped(engine);
}

PackedMatrix::PackedMatrix(Engine& engine, const ops::RowSource& source, NumberType type)
    : rows_(source.columns), columns_(source.rows), isa_(engine.isa()), type_(type) {
  allocate(engine);
  if (rows_ == 0 || columns_ == 0) return;
  // A worker reads the rows that become one panel.
  const kernels::GemmKernels& kernels = ops::gemm_kernels(engine, type);
  const std::int64_t width = kernels.panel_width, count = divide_up(columns_, width);
  const int workers =
      runtime::workers_for(engine, count, static_cast<double>(columns_) * static_cast<double>(source.columns));
  const std::int64_t numbers = std::min(width, columns_) * rows_;
  const std::int64_t of_worker = round_up(numbers + std::min(width, columns_) * source.scales_of_row, 16);
  const std::size_t bytes = static_cast<std::size_t>(of_worker * workers) * sizeof(float);
  std::unique_ptr<std::byte[], Free> memory{nullptr, Free{bytes}};
  try {
    memory.reset(runtime::allocate_large(bytes));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(kPackedMatrixName, bytes);
  }
  auto* const packed = reinterpret_cast<float*>(panels_.get());
  const kernels::Operand panels = ops::gemm_panels(kernels, type, rows_, columns_, packed);
  runtime::parallel_for(engine, count, workers, [&](std::int64_t panel, int worker) noexcept {
    const std::int64_t first = panel * width, some = std::min(width, columns_ - first);
    float* const read = reinterpret_cast<float*>(memory.get()) + worker * of_worker;
    float* const scales = source.scales_of_row == 0 ? nullptr : read + numbers;
    source.read(source.context, first, some, read, scales);
    const kernels::Operand b = {.layout = kernels::OperandLayout::columns,
                                .stride = rows_,
                                .data = read,
                                .scales = scales,
                                .scale_stride = source.scales_of_row};
    kernels.pack_columns(b, 0, rows_, first, some, panels, packed, &runtime::is_cancelled);
  });
  runtime::throw_if_stopped(engine);
}

}  // namespace headlight
