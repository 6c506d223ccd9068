#include <algorithm>
#include <array>
#include <limits>

#include "headlight/attention_merge.h"
#include "kernels/kernels.h"
#include "kernels/operand.h"
#include "ops/call_plan.h"
#include "ops/check.h"
#include "ops/entry_name.h"
#include "ops/rows/in_place.h"
#include "ops/typed_check.h"
#include "runtime/cancellation.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"

namespace headlight {
namespace {

constexpr std::string_view kMergeName = "merge_attention";
// Rows between two looks whether the call shall end.
constexpr std::int64_t kRowsOfQuestion = 256;
// The log-sum-exp of a row without keys.
constexpr float kNothing = -std::numeric_limits<float>::infinity();

struct Extents {
  ops::Extent out;
  ops::Extent log_sum_exp;  // empty where it is not given
};

std::array<std::int64_t, 3> rows_of(const MutableTypedView<4>& out) noexcept {
  return {out.extent(0), out.extent(2), out.extent(1)};
}

void check_part(const AttentionPart& part, std::size_t index, const MutableTypedView<4>& out,
                const View<float, 3>& log_sum_exp, const Extents& extents) {
  const ops::EntryName part_out_name("parts", index, "out"), part_rows_name("parts", index, "log_sum_exp");
  ops::check_widened_type(kMergeName, part_out_name, part.out.type);
  const ops::Extent part_out = ops::check_view(kMergeName, part_out_name, part.out);
  const ops::Extent part_rows = ops::check_view(kMergeName, part_rows_name, part.log_sum_exp);
  ops::check_shape(kMergeName, part_out_name, part.out.shape, out.shape, "the shape of out");
  ops::check_shape(kMergeName, part_rows_name, part.log_sum_exp.shape, rows_of(out), "[B, Hq, Lq]");
  ops::check_same_or_disjoint(kMergeName, "out", out, extents.out, part_out_name, part.out, part_out);
  ops::check_disjoint(kMergeName, "out", extents.out, part_rows_name, part_rows);
  if (!log_sum_exp) return;
  ops::check_same_or_disjoint(kMergeName, "log_sum_exp", log_sum_exp, extents.log_sum_exp, part_rows_name,
                              part.log_sum_exp, part_rows);
  ops::check_disjoint(kMergeName, "log_sum_exp", extents.log_sum_exp, part_out_name, part_out);
}

void check(std::span<const AttentionPart> parts, const MutableTypedView<4>& out, const View<float, 3>& log_sum_exp) {
  if (parts.empty()) ops::fail(kMergeName, "parts is empty, expected at least one");
  ops::check_widened_type(kMergeName, "out", out.type);
  Extents extents{ops::check_output(kMergeName, "out", out), {}};
  if (log_sum_exp) {
    extents.log_sum_exp = ops::check_output(kMergeName, "log_sum_exp", log_sum_exp, rows_of(out), "[B, Hq, Lq]");
    ops::check_disjoint(kMergeName, "log_sum_exp", extents.log_sum_exp, "out", extents.out);
  }
  for (std::size_t p = 0; p < parts.size(); ++p) check_part(parts[p], p, out, log_sum_exp, extents);
}

// Rows without columns may have no memory, and any strides.
template <class Pointer>
Pointer row_of(const AnyTypedView<4, Pointer>& x, std::int64_t b, std::int64_t i, std::int64_t h) noexcept {
  if (x.extent(3) == 0) return x.data;
  return kernels::numbers_behind(x.data, b * x.stride(0) + i * x.stride(1) + h * x.stride(2), x.type);
}

bool is_narrow(NumberType type) noexcept { return type != NumberType::float32; }

// Rows of a worker's own that stand for those of 16 bits: one for each such part, and one for out.
class WideRows {
 public:
  WideRows(const kernels::ConvertKernels& convert, float* rows, std::int64_t columns) noexcept
      : convert_(convert), rows_(rows), columns_(columns) {}

  [[nodiscard]] const float* widened(const void* row, NumberType type, std::int64_t place) const noexcept {
    if (!is_narrow(type)) return static_cast<const float*>(row);
    float* const wide = rows_ + place * columns_;
    convert_.widen_rows(row, type, columns_, 1, columns_, wide, columns_);
    return wide;
  }
  // Where a row of floats goes that becomes `row`; and from there.
  [[nodiscard]] float* place_of(void* row, NumberType type, std::int64_t place) const noexcept {
    return is_narrow(type) ? rows_ + place * columns_ : static_cast<float*>(row);
  }
  void round_into(void* row, NumberType type, const float* wide) const noexcept {
    if (is_narrow(type)) convert_.narrow_rows(wide, columns_, 1, columns_, type, row, columns_);
  }

 private:
  const kernels::ConvertKernels& convert_;
  float* rows_;
  std::int64_t columns_;
};

}  // namespace

void merge_attention(Engine& engine, std::span<const AttentionPart> parts, const MutableTypedView<4>& out,
                     View<float, 3> log_sum_exp) {
  check(parts, out, log_sum_exp);
  const std::int64_t queries = out.extent(1), heads = out.extent(2), rows = out.extent(0) * queries * heads;
  if (rows == 0) return;

  const auto count = static_cast<std::int64_t>(parts.size());
  const kernels::MergeKernels& kernels = kernels::merge_kernels(engine.isa());
  const double nanoseconds = static_cast<double>(rows) *
                             (runtime::costs::kMergedRow + runtime::costs::kMergedElement * static_cast<double>(count) *
                                                               static_cast<double>(out.extent(3)));
  ops::CallPlan plan;
  plan.workers = runtime::workers_for(engine, rows, nanoseconds);
  const auto places = plan.for_worker<const float*>(count);
  const auto sums = plan.for_worker<float>(count);
  const auto weights = plan.for_worker<float>(count);
  const bool narrow = is_narrow(out.type) ||
                      std::ranges::any_of(parts, [](const AttentionPart& part) { return is_narrow(part.out.type); });
  const std::int64_t columns = out.extent(3);
  const auto wide_rows = plan.for_worker<float>(narrow ? count + 1 : 0, columns);
  const runtime::Scratch memory(engine, plan.bytes(), kMergeName);
  runtime::parallel_for(engine, plan.workers, plan.workers, [&](std::int64_t run, int worker) {
    const WideRows wide(kernels::convert_kernels(engine.isa(), engine.features()),
                        plan.in(memory.data(), worker, wide_rows), columns);
    const float** const part_rows = plan.in(memory.data(), worker, places);
    float* const part_sums = plan.in(memory.data(), worker, sums);
    kernels::MergePartsArguments arguments{.parts = part_rows,
                                           .log_sum_exps = part_sums,
                                           .weights = plan.in(memory.data(), worker, weights),
                                           .count = count,
                                           .columns = columns,
                                           .out = nullptr};
    const std::int64_t end = runtime::first_of_run(rows, plan.workers, run + 1);
    for (std::int64_t row = runtime::first_of_run(rows, plan.workers, run); row < end; ++row) {
      if (row % kRowsOfQuestion == 0 && runtime::is_cancelled()) return;
      const std::int64_t h = row % heads, i = row / heads % queries, b = row / heads / queries;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        const TypedView<4>& part = parts[p].out;
        part_sums[p] = parts[p].log_sum_exp(b, h, i);
        const void* const part_row = row_of(part, b, i, h);
        const bool is_read = part_sums[p] != kNothing;
        part_rows[p] = is_read ? wide.widened(part_row, part.type, static_cast<std::int64_t>(p)) : nullptr;
      }
      void* const row_of_out = row_of(out, b, i, h);
      arguments.out = wide.place_of(row_of_out, out.type, count);
      const float sum = kernels.merge_parts(arguments);
      wide.round_into(row_of_out, out.type, arguments.out);
      if (log_sum_exp) log_sum_exp(b, h, i) = sum;
    }
  });
}

}  // namespace headlight
