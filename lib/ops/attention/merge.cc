#include <array>

#include "headlight/attention_merge.h"
#include "kernels/kernels.h"
#include "ops/call_plan.h"
#include "ops/check.h"
#include "ops/entry_name.h"
#include "ops/rows/in_place.h"
#include "runtime/cancellation.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"

namespace headlight {
namespace {

constexpr std::string_view kName = "merge_attention";
// Rows between two looks whether the call shall end.
constexpr std::int64_t kRowsOfQuestion = 256;

struct Extents {
  ops::Extent out;
  ops::Extent log_sum_exp;  // empty where it is not given
};

std::array<std::int64_t, 3> rows_of(const View<float, 4>& out) noexcept {
  return {out.extent(0), out.extent(2), out.extent(1)};
}

void check_part(const AttentionPart& part, std::size_t index, const View<float, 4>& out,
                const View<float, 3>& log_sum_exp, const Extents& extents) {
  const ops::EntryName part_out_name("parts", index, "out"), part_rows_name("parts", index, "log_sum_exp");
  const ops::Extent part_out = ops::check_view(kName, part_out_name, part.out);
  const ops::Extent part_rows = ops::check_view(kName, part_rows_name, part.log_sum_exp);
  ops::check_shape(kName, part_out_name, part.out.shape, out.shape, "the shape of out");
  ops::check_shape(kName, part_rows_name, part.log_sum_exp.shape, rows_of(out), "[B, Hq, Lq]");
  ops::check_same_or_disjoint(kName, "out", out, extents.out, part_out_name, part.out, part_out);
  ops::check_disjoint(kName, "out", extents.out, part_rows_name, part_rows);
  if (!log_sum_exp) return;
  ops::check_same_or_disjoint(kName, "log_sum_exp", log_sum_exp, extents.log_sum_exp, part_rows_name, part.log_sum_exp,
                              part_rows);
  ops::check_disjoint(kName, "log_sum_exp", extents.log_sum_exp, part_out_name, part_out);
}

void check(std::span<const AttentionPart> parts, const View<float, 4>& out, const View<float, 3>& log_sum_exp) {
  if (parts.empty()) ops::fail(kName, "parts is empty, expected at least one");
  Extents extents{ops::check_output(kName, "out", out), {}};
  if (log_sum_exp) {
    extents.log_sum_exp = ops::check_output(kName, "log_sum_exp", log_sum_exp, rows_of(out), "[B, Hq, Lq]");
    ops::check_disjoint(kName, "log_sum_exp", extents.log_sum_exp, "out", extents.out);
  }
  for (std::size_t p = 0; p < parts.size(); ++p) check_part(parts[p], p, out, log_sum_exp, extents);
}

// Rows without columns may have no memory, and any strides.
template <class T>
T* row_of(const View<T, 4>& x, std::int64_t b, std::int64_t i, std::int64_t h) noexcept {
  return x.extent(3) == 0 ? x.data : x.data + b * x.stride(0) + i * x.stride(1) + h * x.stride(2);
}

}  // namespace

void merge_attention(Engine& engine, std::span<const AttentionPart> parts, View<float, 4> out,
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
  const runtime::Scratch memory(engine, plan.bytes(), kName);
  runtime::parallel_for(engine, plan.workers, plan.workers, [&](std::int64_t run, int worker) {
    const float** const part_rows = plan.in(memory.data(), worker, places);
    float* const part_sums = plan.in(memory.data(), worker, sums);
    kernels::MergePartsArguments arguments{.parts = part_rows,
                                           .log_sum_exps = part_sums,
                                           .weights = plan.in(memory.data(), worker, weights),
                                           .count = count,
                                           .columns = out.extent(3),
                                           .out = nullptr};
    const std::int64_t end = runtime::first_of_run(rows, plan.workers, run + 1);
    for (std::int64_t row = runtime::first_of_run(rows, plan.workers, run); row < end; ++row) {
      if (row % kRowsOfQuestion == 0 && runtime::is_cancelled()) return;
      const std::int64_t h = row % heads, i = row / heads % queries, b = row / heads / queries;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        part_rows[p] = row_of(parts[p].out, b, i, h);
        part_sums[p] = parts[p].log_sum_exp(b, h, i);
      }
      arguments.out = row_of(out, b, i, h);
      const float sum = kernels.merge_parts(arguments);
      if (log_sum_exp) log_sum_exp(b, h, i) = sum;
    }
  });
}

}  // namespace headlight
