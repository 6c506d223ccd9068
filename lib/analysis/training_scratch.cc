#include "analysis/training_scratch.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "layers/rows.h"
#include "ops/gemm/internal.h"
#include "ops/rows/sums.h"
#include "runtime/slot_choice.h"

namespace headlight::analysis {

namespace {

using Loan = ScratchAccount::Loan;

// What gemm() borrows for C [m, n], which is `residual` itself or is not.
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  kernels::OperandLayout b = kernels::OperandLayout::rows;
  bool a_is_transposed = false;
  float beta = 0;
  bool adds_to_itself = false;
};

void pass_product(const Engine& engine, const Product& product, ScratchAccount& account) {
  float c = 0;  // an address, no more
  kernels::GemmBlock block{};
  block.rows = product.m;
  block.columns = product.n;
  block.depth = product.k;
  block.a_depth_stride = product.a_is_transposed ? 2 : 1;
  block.b.layout = product.b;
  // Rows of activations lie lines apart, so that no product of one column is computed as one of one row.
  block.b.stride = block.c_row_stride = layers::row_distance(product.n);
  block.c = &c;
  block.epilogue.beta = product.beta;
  if (product.adds_to_itself) block.epilogue.residual = &c;
  account.pass(ops::gemm_batch_bytes(engine, {.product = block}).wanted);
}

}  // namespace

void pass_linear(const Engine& engine, std::int64_t rows, std::int64_t in, std::int64_t out, ScratchAccount& account) {
  pass_product(engine, {.m = rows, .n = out, .k = in, .b = kernels::OperandLayout::columns}, account);
}

void pass_linear_backward(const Engine& engine, std::int64_t rows, std::int64_t in, std::int64_t out, bool bias,
                          ScratchAccount& account, bool adds_to_itself) {
  pass_product(engine, {.m = out, .n = in, .k = rows, .a_is_transposed = true, .beta = 1}, account);
  if (bias) account.pass(ops::row_sums_bytes(rows, out, 1));
  pass_product(engine, {.m = rows, .n = in, .k = out, .adds_to_itself = adds_to_itself}, account);
}

int ScratchAccount::borrow(std::size_t bytes) noexcept {
  if (bytes == 0) return -1;
  const auto candidates = static_cast<int>(std::min(touched_ + 1, kSlots));
  const runtime::SlotChoice chosen =
      runtime::choose_slot(candidates, bytes, [&](int index) -> std::optional<std::size_t> {
        const auto slot = static_cast<std::size_t>(index);
        return borrowed_[slot] ? std::nullopt : std::optional(capacity_[slot]);
      });
  if (chosen.index < 0) return -1;
  const auto slot = static_cast<std::size_t>(chosen.index);
  if (slot == touched_) ++touched_;
  borrowed_[slot] = true;
  if (chosen.capacity < bytes) capacity_[slot] = runtime::slot_capacity(bytes);
  return chosen.index;
}

std::size_t ScratchAccount::bytes() const noexcept {
  return std::accumulate(capacity_.begin(), capacity_.end(), std::size_t{0});
}

std::size_t rows_bytes(std::int64_t rows, std::int64_t columns) noexcept {
  runtime::ScratchLayout layout;
  layout.add<float>(rows, layers::row_distance(columns));
  return layout.bytes();
}

}  // namespace headlight::analysis
