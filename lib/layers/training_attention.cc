#include "headlight/layers/training_attention.h"

namespace headlight {
namespace {

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

const TrainingAttention& fused_attention() noexcept { return kFused; }

}  // namespace headlight
