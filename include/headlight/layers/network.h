// A network of transformer blocks by specification: from token ids to hidden states.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/layers/network_spec.h"

namespace headlight {

// A parameter that there may be.
struct ParameterShape {
  std::string name;                 // "blocks.0.attention.query.weight"
  std::vector<std::int64_t> shape;  // [rows, columns] of a matrix
};

// hidden = last_norm(block_n(… block_1(embedding(ids)))), each token of a sequence seeing those of its own sequence
// that its block's mask shows. Parameters, for block N; those that the specification does not ask for are not there:
//
//   embeddings.word.weight [vocabulary, E], embeddings.position.weight [positions, E],
//   embeddings.token_type.weight [token_types, E], embeddings.norm.{weight,bias} [E]
//   relative_bias.weight [buckets, H], of all blocks together
//   blocks.N.attention.{before,after,sum}.{weight,bias} [E]: the norms of its residual
//   blocks.N.attention.query.{weight,bias} [H · D, E], .key and .value [Hkv · D, E], .output [E, H · D]
//   blocks.N.attention.query_norm.{weight,bias}, .key_norm [D], or all heads' width; .sinks [H]
//   blocks.N.attention.merge_logits [H], .merge.weight [H, E], .gate.weight [H, E] or [H · D, E]: a, W_a and W_g of
//   Merge; .output.weight is [E, D] where heads are summed
//   blocks.N.feed_forward.{before,after,sum}.{weight,bias} [E]
//   blocks.N.feed_forward.{gate,up}.{weight,bias} [F, E], .down [E, F]
//   norm.{weight,bias} [E]
//   logits.{weight,bias} [vocabulary, E]
class HEADLIGHT_API Network : public Layer {
 public:
  // Throws std::invalid_argument naming the field for sizes that do not fit together, OutOfMemory. A network that was
  // moved from may be assigned to, or destroyed.
  explicit Network(const NetworkSpec& spec);
  // The parameters of such a network, which is not made: what a file of weights must hold. Throws as the constructor.
  [[nodiscard]] static std::vector<ParameterShape> parameter_shapes(const NetworkSpec& spec);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network() override;

  // Those that it was made with, every size set.
  [[nodiscard]] const NetworkSpec& spec() const noexcept;

  // hidden [N, E]. input.positions are rows of the table of positions, and what heads are turned by; masks count the
  // tokens of a sequence. Lists of what the specification does not ask for may be empty. The rows of a sequence have
  // the same bits whatever stands beside it. Throws std::invalid_argument, before anything is written; OutOfMemory.
  //
  // The two lists ask for softmax weights and heads of blocks, as those of Encoder::forward() do; what heads give is
  // [N, heads · head_dim] there.
  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
               std::span<const LayerProbabilities> probabilities = {}, std::span<const LayerHeads> heads = {}) const;

  // Training: the same, keeping what backward() needs; with Checkpoint::layer_input the input of every block, with
  // every_k_layers that of every k-th. Where `saved` names an attention with shards (RowShards), rows of hidden, ids,
  // positions and token types are those that are held, and offsets those of the whole.
  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, SavedState& saved,
               const TrainingStep& step = {}) const;
  // From the gradient of hidden [N, E] those of all parameters, which are added to; `input` is that of forward().
  // `visitor`, where given, looks at the heads of every block on the way, from the last to the first: outputs and
  // gradients are [1, N, heads · head_dim], before weights or gates.
  void backward(Engine& engine, const EncoderInput& input, const SavedState& saved,
                View<const float, 2> hidden_gradient, HeadVisitor* visitor = nullptr);

  // logits [N, vocabulary] of rows of hidden states [N, E], all that a forward pass gave or some of them; see
  // LogitsSpec. Throws std::invalid_argument where the specification asks for no logits, or for views of other shapes
  // or that overlap.
  void logits(Engine& engine, View<const float, 2> hidden, View<float, 2> logits) const;
  // From the gradient of those logits [N, vocabulary], which is overwritten where there is a factor or a cap, that of
  // the rows [N, E], and those of W and b, which are added to. `logits` are read where there is a cap, and need not be
  // given where there is none. hidden_gradient may be hidden itself. A logits_gradient that is overwritten may not
  // overlap itself, and is logits itself or lies apart from it where that is read. Throws std::invalid_argument.
  void logits_backward(Engine& engine, View<const float, 2> hidden, View<const float, 2> logits,
                       View<float, 2> logits_gradient, View<float, 2> hidden_gradient);

  // What forward(), and logits() of as many rows, take from the engine for that many tokens or fewer, whatever
  // sequences they are; and taking it now, so that not even the first call allocates.
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t tokens) const;
  void reserve(Engine& engine, std::int64_t tokens) const;

  void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                         const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool open) noexcept override;
  void make_gradients(bool wanted) override;

 private:
  struct State;

  [[nodiscard]] std::string_view type_name() const noexcept override { return "Network"; }
  void check(const EncoderInput& input, std::string_view name, const View<const float, 2>& hidden,
             const layers::RowVisitor& visitor) const;
  void check_logits(const View<const float, 2>& hidden, std::string_view name,
                    const View<const float, 2>& logits) const;
  [[nodiscard]] std::array<std::int64_t, 12> made_with() const noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace headlight
