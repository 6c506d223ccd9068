#include "headlight/layers/training_attention.h"

#include "layers/summed_rows.h"
#include "ops/attention_backward/check.h"
#include "ops/attention_backward/row_sums.h"

namespace headlight {
namespace {

constexpr std::string_view kDistances = "TrainingAttention::differentiate_distances";
constexpr std::string_view kFindLargest = "TrainingAttention::find_largest";

class FusedAttention final : public TrainingAttention {
 public:
  [[nodiscard]] std::int64_t kept_columns(std::int64_t, const AttentionOptions&) const noexcept override { return 0; }
  void forward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
               View<float, 4> out, View<float, 4>, const AttentionOptions& options) const override {
    attention(engine, query, key, value, out, options);
  }
  void backward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                View<const float, 4> out, View<const float, 3> log_sum_exp, View<float, 4>,
                View<const float, 4> out_gradient, const AttentionGradients& gradients,
                const AttentionOptions& options) const override {
    attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient, gradients, options);
  }
};

constexpr FusedAttention kFused;

// What there is by itself is for one who holds all rows: others have to ask for what is not here.
void expect_all_shards(std::string_view operation, const TrainingAttention& attention) {
  const RowShards* const shards = attention.shards();
  if (shards == nullptr || shards->count() == shards->options().shards) return;
  ops::fail(operation, "shards() holds ", shards->count(), " shards, expected all ", shards->options().shards,
            ", or an attention that overrides it");
}

}  // namespace

void TrainingAttention::differentiate_distances(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                                View<const float, 4> value, View<const float, 4> out,
                                                View<const float, 3> log_sum_exp, View<const float, 4> out_gradient,
                                                View<float, 3> distances, const AttentionOptions& options) const {
  expect_all_shards(kDistances, *this);
  const ops::AttentionBackwardOperands operands = {
      query, key, value, out, log_sum_exp, out_gradient, options.log_sum_exp_gradient};
  const ops::AttentionSizes sizes = ops::check_attention_backward(kDistances, operands, {}, options);
  if (const RowShards* const of = shards(); of != nullptr && of->row_count() != sizes.query_length) {
    ops::fail(kDistances, "query has ", sizes.query_length, " rows, expected ", of->row_count(),
              ", those of the shards");
  }
  const layers::SummedRows summed(engine, *this, sizes.query_length, kDistances);
  ops::check_distances(kDistances, sizes, operands, options, summed.sums(), distances);
  if (ops::is_empty(distances)) return;
  ops::differentiate_rows(engine, kDistances, operands, options, {.rows = summed.rows(), .distances = distances});
}

void TrainingAttention::find_largest(std::span<std::int64_t>) const { expect_all_shards(kFindLargest, *this); }

const TrainingAttention& fused_attention() noexcept { return kFused; }

}  // namespace headlight
