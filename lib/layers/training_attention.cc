#include "headlight/layers/training_attention.h"

#include "layers/summed_rows.h"
#include "ops/attention_backward/row_sums.h"

namespace headlight {
namespace {

constexpr std::string_view kTrainingAttention = "TrainingAttention";

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

}  // namespace

void TrainingAttention::differentiate_distances(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                                View<const float, 4> value, View<const float, 4> out,
                                                View<const float, 3> log_sum_exp, View<const float, 4> out_gradient,
                                                View<float, 3> distances, const AttentionOptions& options) const {
  const layers::SummedRows summed(engine, *this, query.extent(1), kTrainingAttention);
  ops::differentiate_rows(engine, kTrainingAttention, {query, key, value, out, log_sum_exp, out_gradient}, options,
                          {.rows = summed.rows(), .distances = distances});
}

void TrainingAttention::find_largest(std::span<std::int64_t>) const {}

const TrainingAttention& fused_attention() noexcept { return kFused; }

}  // namespace headlight
