#include "baseline/attention_unfused.h"
#include "ops/attention/masks.h"

namespace headlight::baseline {
namespace {

// What is kept of every row: its probabilities; in packed sequences as many as the longest one has keys.
Probabilities as_probabilities(const View<float, 4>& kept, const AttentionOptions& options) noexcept {
  return {.per_head = kept, .own_keys = !options.query_offsets.empty()};
}

class UnfusedAttention final : public TrainingAttention {
 public:
  [[nodiscard]] std::int64_t kept_columns(std::int64_t key_length,
                                          const AttentionOptions& options) const noexcept override {
    return options.query_offsets.empty() ? key_length : ops::longest_packed_keys(options);
  }
  void forward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
               View<float, 4> out, View<float, 4> kept, const AttentionOptions& options) const override {
    // What the caller asks for may be other rows: it takes a call of its own.
    if (options.probabilities.per_head || options.probabilities.averaged) {
      attention_unfused(engine, query, key, value, out, options);
    }
    AttentionOptions keeping = options;
    keeping.probabilities = as_probabilities(kept, options);
    attention_unfused(engine, query, key, value, out, keeping);
  }
  void backward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                View<const float, 4>, View<const float, 3>, View<float, 4> kept, View<const float, 4> out_gradient,
                const AttentionGradients& gradients, const AttentionOptions& options) const override {
    AttentionOptions keeping = options;
    keeping.probabilities = as_probabilities(kept, options);
    attention_unfused_backward(engine, query, key, value, out_gradient, gradients, keeping);
  }
};

constexpr UnfusedAttention kUnfused;

}  // namespace

const TrainingAttention& unfused_attention() noexcept { return kUnfused; }

}  // namespace headlight::baseline
