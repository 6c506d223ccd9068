#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "c/attention_options.h"
#include "c/handles.h"
#include "headlight/c/mpi.h"
#include "headlight/mpi.h"
#include "mpi/c_group.h"

namespace headlight::c {
namespace {

constexpr const char* kGroup = "mpi_group";
constexpr const char* kPlan = "mpi_plan";
constexpr const char* kName = "mpi_attention";
constexpr const char* kBackward = "mpi_attention_backward";

mpi::Spread spread_of(const char* operation, const headlight_mpi_spread* given) {
  // Its doubles have no bytes but their own: a field of an older caller is 0, which is "chosen".
  mpi::Spread spread;
  if (given == nullptr) return spread;
  headlight_mpi_spread fields{};
  std::memcpy(&fields, given, std::min(size_of_struct(operation, "spread", *given), sizeof(fields)));
  spread.head_ranks = fields.head_ranks;
  spread.block = fields.block;
  if (fields.flops_per_second != 0) spread.flops_per_second = fields.flops_per_second;
  if (fields.bytes_per_second != 0) spread.bytes_per_second = fields.bytes_per_second;
  if (fields.bytes_per_number != 0) spread.bytes_per_number = fields.bytes_per_number;
  return spread;
}

void fill_in(const std::vector<mpi::Run>& runs, headlight_mpi_run* to, std::int64_t room) {
  if (to == nullptr) return;
  for (std::size_t n = 0; n < runs.size() && static_cast<std::int64_t>(n) < room; ++n) {
    to[n] = {runs[n].first, runs[n].count};
  }
}

mpi::Gradients gradients_of(const headlight_attention_gradients* given) {
  const TypedAttentionGradients gradients = attention_gradients(kBackward, given);
  if (gradients.accumulate) refuse(kBackward, "gradients.accumulate is set, expected 0 over ranks");
  if (gradients.bias) refuse(kBackward, "gradients.bias is given, expected none over ranks");
  return {gradients.query, gradients.key, gradients.value, gradients.sinks};
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_mpi_group_create(MPI_Comm communicator, int64_t timeout_milliseconds,
                                            headlight_mpi_group** group, headlight_error* error) {
  mpi::GroupOptions options;
  if (timeout_milliseconds != 0) options.timeout = std::chrono::milliseconds(timeout_milliseconds);
  return create(kGroup, group, error, [&] {
    try {
      return std::make_unique<headlight_mpi_group>(headlight_mpi_group{mpi::Group(communicator, options)});
    } catch (const mpi::Error& failure) {
      throw Failure(HEADLIGHT_SYSTEM_ERROR, failure.what());
    }
  });
}

void headlight_mpi_group_destroy(headlight_mpi_group* group) { delete group; }

headlight_status headlight_mpi_plan_call(const headlight_attention_shape* whole,
                                         const headlight_attention_options* options, int32_t rank, int32_t size,
                                         const headlight_mpi_spread* spread, headlight_mpi_plan* plan,
                                         headlight_error* error) {
  return call(error, [&] {
    const mpi::Plan made = mpi::plan(attention_shape(kPlan, "whole", whole), attention_options(kPlan, options), rank,
                                     size, spread_of(kPlan, spread));
    headlight_mpi_plan& to = required(kPlan, "plan", plan);
    if (size_of_struct(kPlan, "plan", to) < sizeof(to)) refuse(kPlan, "plan has a struct_size that is too small");
    fill_in(made.queries, to.queries, to.query_room);
    fill_in(made.keys, to.keys, to.key_room);
    to.query_runs = static_cast<std::int64_t>(made.queries.size());
    to.key_runs = static_cast<std::int64_t>(made.keys.size());
    to.query_rows = made.query_rows;
    to.key_rows = made.key_rows;
    to.block = made.block;
    to.ring = made.ring;
    to.head_ranks = made.head_ranks;
  });
}

headlight_status headlight_mpi_attention(headlight_mpi_group* group, headlight_engine* engine,
                                         const headlight_attention_shape* whole, const headlight_tensor* query,
                                         const headlight_tensor* key, const headlight_tensor* value,
                                         const headlight_tensor* out, const headlight_attention_options* options,
                                         const headlight_mpi_spread* spread, headlight_error* error) {
  return call_of_group(kName, group, error, [&] {
    return
        [&of = engine_of(kName, engine), shape = attention_shape(kName, "whole", whole),
         queries = typed_view<4, const void*>(kName, "query", query),
         keys = typed_view<4, const void*>(kName, "key", key, true),
         values = typed_view<4, const void*>(kName, "value", value, true), to = typed_view<4, void*>(kName, "out", out),
         given = attention_options(kName, options), spread = spread_of(kName, spread)](mpi::Group& of_all) {
          mpi::attention(of_all, of, shape, queries, keys, values, to, given, spread);
        };
  });
}

headlight_status headlight_mpi_attention_backward(headlight_mpi_group* group, headlight_engine* engine,
                                                  const headlight_attention_shape* whole, const headlight_tensor* query,
                                                  const headlight_tensor* key, const headlight_tensor* value,
                                                  const headlight_tensor* out, const headlight_tensor* log_sum_exp,
                                                  const headlight_tensor* out_gradient,
                                                  const headlight_attention_gradients* gradients,
                                                  const headlight_attention_options* options,
                                                  const headlight_mpi_spread* spread, headlight_error* error) {
  return call_of_group(kBackward, group, error, [&] {
    return
        [&of = engine_of(kBackward, engine), shape = attention_shape(kBackward, "whole", whole),
         queries = typed_view<4, const void*>(kBackward, "query", query),
         keys = typed_view<4, const void*>(kBackward, "key", key),
         values = typed_view<4, const void*>(kBackward, "value", value),
         outs = typed_view<4, const void*>(kBackward, "out", out),
         sums = view<const float, 3>(kBackward, "log_sum_exp", log_sum_exp),
         back = typed_view<4, const void*>(kBackward, "out_gradient", out_gradient), wanted = gradients_of(gradients),
         given = attention_options(kBackward, options), spread = spread_of(kBackward, spread)](mpi::Group& of_all) {
          mpi::attention_backward(of_all, of, shape, queries, keys, values, outs, sums, back, wanted, given, spread);
        };
  });
}
