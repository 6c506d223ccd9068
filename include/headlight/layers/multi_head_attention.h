// Multi-head attention as a layer: project, attend with every head, put the heads together again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "headlight/attention.h"
#include "headlight/layers/layer.h"
#include "headlight/layers/linear.h"
#include "headlight/merge_kind.h"
#include "headlight/typed_view.h"

namespace headlight {

// What a MultiHeadAttention is made of.
struct MultiHeadAttentionOptions {
  // E: width of queries and outputs. D = E / heads is the width of a head.
  std::int64_t width = 0;
  std::int64_t heads = 1;
  // 0: as many as heads. Else a divisor of heads: each key/value head serves heads / key_value_heads query heads.
  std::int64_t key_value_heads = 0;
  // 0: as wide as the queries.
  std::int64_t key_width = 0;
  std::int64_t value_width = 0;
  bool bias = true;
  // One parameter in_proj_weight rather than q_proj_weight, k_proj_weight and v_proj_weight. Only where all widths are
  // the same; load() takes either.
  bool packed_projection = true;
  // Of the probabilities, in training: in [0, 1).
  float dropout = 0.0f;
  Merge merge = Merge::concatenate;
  // Whether initialize() draws W_Q and W_K with orthonormal rows, so that heads begin in spaces at right angles.
  bool orthogonal = false;
};

// Which of query, key and value are the same tensor, and so share a product; the most first.
enum class SharedInputs : std::uint8_t {
  all,            // self-attention: forward(engine, x, x, x, y)
  key_and_value,  // cross-attention: forward(engine, x, memory, memory, y)
  none
};

// How much one call gets.
struct MultiHeadAttentionShape {
  // B, Lq, Lk, and which inputs are the same tensor.
  std::int64_t batch = 1;
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  SharedInputs inputs = SharedInputs::all;
};

// What lies between the heads and W_O, for those who ask.
struct HeadAccess {
  // [B, Lq, E], written where given: Concat(head_1 … head_H), head h in columns h·D … (h+1)·D − 1, before any weights
  // or gates.
  View<float, 3> outputs{};
  // Heads whose output is replaced by zeros.
  std::span<const std::int64_t> silenced{};
  // [B, Lq, E], written where given: the same after its weight or gate, as it goes into the last product: head_h where
  // heads are concatenated, head_h / H, α_h head_h or g_h ∘ head_h.
  View<float, 3> scaled_outputs{};
};

// Looks at the heads of a layer on the way back, and may add to their gradient: how a training step measures what heads
// bring, or asks something of them beside the loss.
class HEADLIGHT_API HeadVisitor {
 public:
  virtual ~HeadVisitor() = default;
  // outputs [B, Lq, H · D] as in HeadAccess, or as a Network's block has them; gradient, of the same shape: that of the
  // loss by them.
  virtual void visit(Engine& engine, std::int64_t layer, View<const float, 3> outputs, View<float, 3> gradient) = 0;
};

// Who looks at the heads of a layer on the way back.
struct HeadVisit {
  HeadVisitor* visitor = nullptr;  // none
  // What the visitor is told; an Encoder, which goes from its last layer to its first, counts for itself.
  std::int64_t layer = 0;
};

// Where the gradients of a layer's inputs go. Inputs that are the same view share one: give it for the first of them.
struct MultiHeadAttentionGradients {
  View<float, 3> query{};  // [B, Lq, E]; those not given are not computed. May be the gradient of out itself
  View<float, 3> key{};    // [B, Lk, key_width]; but for that none may overlap an input or another gradient,
  View<float, 3> value{};  // [B, Lk, value_width]; for they are written one after another
  // Added to that of the query; may be that view or the gradient of out itself.
  View<const float, 3> residual{};
  // Whether those of key and value are added to what is there (a memory that many layers look at).
  bool accumulate_key_and_value = false;
  HeadVisit visit{};
  // That of the bias in forward()'s options, of its shape and summed where that is broadcast. Overwritten.
  View<float, 4> bias{};
};

// out = Concat(head_1 … head_H) W_Oᵀ + b_O (or another Merge), head_h = attention(query W_Qᵀ + b_Q, key W_Kᵀ + b_K,
// value W_Vᵀ + b_V) over the columns of head h.
//
// Parameters are named and shaped as in nn.MultiheadAttention, with Ekv = D · key_value_heads:
//   in_proj_weight [E + 2·Ekv, E] (rows of W_Q, W_K, W_V), or q_proj_weight [E, E], k_proj_weight [Ekv, key_width] and
//   v_proj_weight [Ekv, value_width]; in_proj_bias [E + 2·Ekv]; out_proj.weight [E, E], out_proj.bias [E].
// Other merges have, in place of W_O, W_up in out_proj.weight [E, D]; a in merge_logits [H]; W_a in merge_proj.weight
// [H, E]; W_g in gate_proj.weight [H, E] or [E, E]. bias_k and bias_v (an extra learned key) are not supported.
class HEADLIGHT_API MultiHeadAttention : public Layer {
 public:
  // Throws std::invalid_argument when heads do not divide width, key_value_heads do not divide heads, or a size is < 1.
  explicit MultiHeadAttention(const MultiHeadAttentionOptions& options);

  // query [B, Lq, E], key [B, Lk, key_width], value [B, Lk, value_width] → out [B, Lq, E] (+ residual [B, Lq, E] where
  // given). Every option of attention() has its meaning there. out may be query, key, value or residual itself; what
  // the options and `heads` ask for lies apart from all of those, from out and from each other. Throws
  // std::invalid_argument, naming both where two overlap.
  void forward(Engine& engine, View<const float, 3> query, View<const float, 3> key, View<const float, 3> value,
               View<float, 3> out, const AttentionOptions& options = {}, View<const float, 3> residual = {},
               const HeadAccess& heads = {}) const;

  // Training: the same with dropout on the probabilities, keeping what backward() needs. out must lie apart from the
  // inputs; `options` name no log_sum_exp and no dropout.
  void forward(Engine& engine, View<const float, 3> query, View<const float, 3> key, View<const float, 3> value,
               View<float, 3> out, SavedState& saved, const TrainingStep& step, const AttentionOptions& options = {},
               View<const float, 3> residual = {}) const;
  // query, key and value are those of forward(). Parameters' gradients are added to.
  void backward(Engine& engine, View<const float, 3> query, View<const float, 3> key, View<const float, 3> value,
                const SavedState& saved, View<const float, 3> out_gradient,
                const MultiHeadAttentionGradients& gradients);

  // Those that it was made with, every size set.
  [[nodiscard]] const MultiHeadAttentionOptions& options() const noexcept { return options_; }
  // What forward() takes from the engine for that many; and taking it now, so that not even the first call allocates.
  // Throws std::invalid_argument where shape.inputs names as one what has different widths here.
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, const MultiHeadAttentionShape& shape) const;
  void reserve(Engine& engine, const MultiHeadAttentionShape& shape) const;

  void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                         const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool open) noexcept override;
  void make_gradients(bool wanted) override;

 private:
  // A run of projections that share an input, and where its weights are.
  enum Group : std::uint8_t { kQuery, kKey, kValue, kKeyValue, kAll, kGroups };
  struct Buffers;
  struct Place {
    std::size_t matrix;  // of projections_
    WeightMatrix::Rows rows;
  };

  [[nodiscard]] std::string_view type_name() const noexcept override { return "MultiHeadAttention"; }
  // Both passes of training with their state in memory of saved_bytes(). `kept_columns` is that of the attention.
  struct Kept {
    std::byte* memory = nullptr;
    AttentionOptions options{};
    Dropout dropout{};
    const TrainingAttention* attention = &fused_attention();
    NumberType activations = NumberType::float32;
  };
  [[nodiscard]] std::size_t saved_bytes(const MultiHeadAttentionShape& shape, std::int64_t kept_columns,
                                        NumberType activations) const;
  void forward_from(Engine& engine, View<const float, 3> query, View<const float, 3> key, View<const float, 3> value,
                    View<float, 3> out, const Kept& kept, View<const float, 3> residual) const;
  void backward_from(Engine& engine, View<const float, 3> query, View<const float, 3> key, View<const float, 3> value,
                     const Kept& kept, View<const float, 3> out_gradient, const MultiHeadAttentionGradients& gradients);
  [[nodiscard]] std::int64_t key_value_columns() const noexcept;
  // What each matrix of projections_ holds, in order.
  [[nodiscard]] std::span<const Group> matrices() const noexcept;
  // A group's rows in [W_Q; W_K; W_V], and so its part of the bias.
  [[nodiscard]] WeightMatrix::Rows rows_of(Group group) const noexcept;
  [[nodiscard]] Place place_of(Group group) const noexcept;
  // The most that inputs of these widths can share.
  [[nodiscard]] SharedInputs most_shared() const noexcept;
  // That shape.inputs is no more than that.
  void check_shared_inputs(const MultiHeadAttentionShape& shape) const;
  [[nodiscard]] SharedInputs inputs_of(const View<const float, 3>& query, const View<const float, 3>& key,
                                       const View<const float, 3>& value) const noexcept;
  void check_inputs(const View<const float, 3>& query, const View<const float, 3>& key,
                    const View<const float, 3>& value) const;
  void check_inputs_and_out(const View<const float, 3>& query, const View<const float, 3>& key,
                            const View<const float, 3>& value, const View<float, 3>& out,
                            const View<const float, 3>& residual) const;
  // That nothing the options and the access ask for lies over what is read, over out or over each other.
  static void check_output_places(const AttentionOptions& options, const HeadAccess& access,
                                  const View<const float, 3>& query, const View<const float, 3>& key,
                                  const View<const float, 3>& value, const View<float, 3>& out,
                                  const View<const float, 3>& residual);
  // `activations` are those of training, and float32 in inference, whose products are of the layer's precision.
  void project(Engine& engine, NumberType activations, Group group, View<const float, 3> x,
               const MutableTypedView<3>& projected) const;
  void project_all(Engine& engine, NumberType activations, const Buffers& buffers, std::byte* memory,
                   View<const float, 3> query, View<const float, 3> key, View<const float, 3> value) const;
  // Those of inference, in the types that its products hand on.
  [[nodiscard]] Buffers inference_buffers(const Engine& engine, const MultiHeadAttentionShape& shape) const;
  // From what project_all() left in the buffers to the heads, wherever they go.
  void attend(Engine& engine, const Buffers& buffers, std::byte* memory, const MutableTypedView<3>& heads,
              const AttentionOptions& options) const;
  // The columns that the last product takes, those of what weighs or gates each query (0 where nothing does), and the
  // same of what has a gradient.
  [[nodiscard]] std::int64_t merged_columns() const noexcept;
  [[nodiscard]] std::int64_t mixing_columns() const noexcept;
  [[nodiscard]] std::int64_t learned_mixing_columns() const noexcept;
  [[nodiscard]] View<const float, 3> mix_heads(Engine& engine, View<const float, 3> query, View<const float, 3> heads,
                                               View<float, 3> mixing, View<float, 3> mixed) const;
  // Each head after its weight, `weights` as mix_heads() left them; a copy where heads are concatenated.
  void scale_heads(Engine& engine, View<const float, 3> heads, View<const float, 3> weights,
                   View<float, 3> scaled) const;
  [[nodiscard]] bool gates() const noexcept;
  // What mix_heads() took and made on the way, and back from the gradient of what it gave. Returns what is still to be
  // added to the query's gradient: `residual`, or query_gradient itself, which then holds it and the mixing's part.
  struct MixedHeads {
    View<const float, 3> heads;
    View<const float, 3> mixing;
  };
  View<const float, 3> mix_heads_backward(Engine& engine, View<const float, 3> query, const MixedHeads& from,
                                          View<const float, 3> mixed_gradient, View<float, 3> mixing_gradient,
                                          View<float, 3> heads_gradient, View<float, 3> query_gradient,
                                          View<const float, 3> residual, const layers::RowVisitor& rows);
  void merge_heads(Engine& engine, NumberType activations, const TypedView<3>& heads, View<float, 3> out,
                   View<const float, 3> residual) const;
  // What forward_from() kept of the attention, and from the gradient of its heads those of the projected inputs.
  struct KeptHeads;
  void attend_backward(Engine& engine, const KeptHeads& kept, const TypedView<3>& heads_gradient,
                       const AttentionGradients& gradients) const;
  void project_backward(Engine& engine, const Kept& kept, Group group, View<const float, 3> x,
                        View<const float, 3> projected_gradient, View<float, 3> x_gradient,
                        View<const float, 3> residual);

  MultiHeadAttentionOptions options_;
  // W_Q, W_K and W_V. Those of one width lie in one matrix, for inputs that are the same share a product: all three, or
  // W_K and W_V. They are no Linears since their biases are one parameter.
  std::array<WeightMatrix, 3> projections_;
  Tensor<float, 1> projection_bias_;
  Tensor<float, 1> projection_bias_gradient_;
  Linear output_;
  // What a merge has beside; without memory where it has none.
  Tensor<float, 1> merge_logits_;
  Tensor<float, 1> merge_logits_gradient_;
  WeightMatrix merge_projection_;
};

}  // namespace headlight
