// The operations that networks are made of. Each is constructed with the values that it reads and the one that it
// makes, and refers to parameters of the same graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "headlight/attention.h"
#include "headlight/head_rows.h"
#include "headlight/layers/network_spec.h"
#include "layers/network/operation.h"
#include "layers/network/parameters.h"
#include "ops/attention_backward/operands.h"

namespace headlight::layers {

// y = dropout(x), outside of training x.
class DropoutOperation final : public Operation {
 public:
  DropoutOperation(const DropoutPlace& dropout, const Slice& x, const Slice& y)
      : Operation(y, {x}, 0), dropout_(dropout) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t) const noexcept override { return false; }

 private:
  DropoutPlace dropout_;
};

// y = word[id] + position[p] + token_type[t].
class EmbeddingOperation final : public Operation {
 public:
  struct Tables {
    MatrixParameter* word;
    MatrixParameter* position;    // null: none
    MatrixParameter* token_type;  // null: none
  };
  EmbeddingOperation(const Tables& tables, const Slice& y) : Operation(y, {}, -1), tables_(tables) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t) const noexcept override { return false; }
  [[nodiscard]] Blocks workspace(const Engine& engine, const BatchShape& shape) const override;
  [[nodiscard]] ParameterGradients gradients() noexcept override;

 private:
  [[nodiscard]] bool has_stored_tables() const noexcept;

  Tables tables_;
};

// y = factor · x + added, where that is given.
class ScaleOperation final : public Operation {
 public:
  ScaleOperation(const Slice& x, const Slice& added, float factor, const Slice& y)
      : Operation(y, {x, added}, added ? 1 : 0), factor_(factor) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t) const noexcept override { return false; }

 private:
  float factor_;
};

// y = norm(x) + added, where that is given: with NormKind::rms alone. y may be x or added.
void normalize_rows(Engine& engine, const NormSpec& spec, const VectorParameter* weight, const VectorParameter* bias,
                    const TypedView<2>& x, const TypedView<2>& added, const MutableTypedView<2>& y);
// The way back: to x_gradient, with `residual` added where that is given, and to the gradients of weight and bias.
void normalize_rows_backward(Engine& engine, const NormSpec& spec, VectorParameter* weight, VectorParameter* bias,
                             View<const float, 2> x, View<const float, 2> y_gradient, View<float, 2> x_gradient,
                             View<const float, 2> residual);
class NormOperation final : public Operation {
 public:
  NormOperation(const NormSpec& spec, VectorParameter* weight, VectorParameter* bias, const Slice& x,
                const Slice& added, const Slice& y)
      : Operation(y, {x, added}, added ? 1 : 0), spec_(spec), weight_(weight), bias_(bias) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t number) const noexcept override { return number == 0; }
  [[nodiscard]] ParameterGradients gradients() noexcept override;
  [[nodiscard]] OperationSizes sizes() const noexcept override {
    return {.sums = {{{output().columns, bias_ != nullptr ? 2 : 1, spec_.one_plus_weight, 0}}}};
  }

 private:
  NormSpec spec_;
  VectorParameter* weight_;
  VectorParameter* bias_;
};

// y = dropout(x Wᵀ + b) + residual, where that is given.
class ProductOperation final : public Operation {
 public:
  struct Epilogue {
    Activation activation = Activation::none;  // of the ActivationOperation behind it, outside of training
    DropoutPlace dropout{};
    Slice residual{};
    bool is_of_floats = false;  // in training, whatever the activations
  };
  // W and b are the first y.columns rows of those.
  ProductOperation(MatrixParameter& weight, VectorParameter* bias, const Slice& x, const Epilogue& epilogue,
                   const Slice& y)
      : Operation(y, {x, epilogue.residual}, epilogue.residual ? 1 : -1),
        weight_(weight),
        bias_(bias),
        epilogue_(epilogue) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t number) const noexcept override {
    // What is dropped lies where y does before the residual is added.
    return number == 0 || epilogue_.dropout.probability > 0;
  }
  [[nodiscard]] Blocks workspace(const Engine& engine, const BatchShape& shape) const override;
  void pack_weights(Engine& engine) const override;
  [[nodiscard]] ParameterGradients gradients() noexcept override;
  [[nodiscard]] OperationSizes sizes() const noexcept override {
    return {.in = input(0).columns,
            .out = output().columns,
            .has_bias = bias_ != nullptr,
            .adds_behind_dropout = input(1) && epilogue_.dropout.probability > 0};
  }

 private:
  [[nodiscard]] NumberType type(const GraphCall& call) const noexcept {
    return epilogue_.is_of_floats ? NumberType::float32 : call.activations();
  }
  // The gradient of x Wᵀ + b.
  [[nodiscard]] View<float, 2> product_gradient(const GraphCall& call, const Dropout& dropout, const RowRange& rows,
                                                std::byte* memory) const;

  [[nodiscard]] WeightMatrix::Rows weight_rows() const noexcept { return {0, output().columns}; }
  [[nodiscard]] std::span<float> bias_gradient() const noexcept;

  MatrixParameter& weight_;
  VectorParameter* bias_;
  Epilogue epilogue_;
};

// y = dropout(activation(x)). Outside of training the product before it gives that already, in its place.
class ActivationOperation final : public Operation {
 public:
  ActivationOperation(Activation activation, const DropoutPlace& dropout, const Slice& x, const Slice& y)
      : Operation(y, {x}, 0), activation_(activation), dropout_(dropout) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t) const noexcept override { return true; }
  [[nodiscard]] bool is_made_again() const noexcept override { return true; }

 private:
  Activation activation_;
  DropoutPlace dropout_;
};

// y = dropout(activation(a) ∘ b)
class GateOperation final : public Operation {
 public:
  GateOperation(Activation activation, const DropoutPlace& dropout, const Slice& a, const Slice& b, const Slice& y)
      : Operation(y, {a, b}, -1), activation_(activation), dropout_(dropout) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t) const noexcept override { return true; }
  [[nodiscard]] bool is_made_again() const noexcept override { return true; }
  [[nodiscard]] Blocks workspace(const Engine& engine, const BatchShape& shape) const override;

 private:
  Activation activation_;
  DropoutPlace dropout_;
};

// The cosines and sines by which each token turns its heads: [N, rotary_columns()].
class AnglesOperation final : public Operation {
 public:
  AnglesOperation(const RotarySpec& spec, std::int64_t head_dim, const Slice& y)
      : Operation(y, {}, -1), spec_(spec), head_dim_(head_dim) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t) const noexcept override { return false; }
  [[nodiscard]] Blocks workspace(const Engine& engine, const BatchShape& shape) const override;

 private:
  RotarySpec spec_;
  std::int64_t head_dim_;
};

// Query, key and value as attention reads them: the heads of query and key are normalised and turned. x [query | key |
// value] → y, the same columns.
class HeadsOperation final : public Operation {
 public:
  struct Heads {
    std::int64_t count;
    NormSpec norm;  // of each head by itself, or of all heads as one row
    VectorParameter* weight;
    VectorParameter* bias;
  };
  // `spec` with every size set.
  HeadsOperation(const Heads& query, const Heads& key, const AttentionSpec& spec, const Slice& x, const Slice& angles,
                 const Slice& y)
      : Operation(y, {x, angles}, 0),
        query_(query),
        key_(key),
        head_dim_(spec.head_dim),
        whole_width_norms_(spec.whole_width_norms),
        pairing_(spec.rotary.pairing) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t number) const noexcept override {
    return number == 1 || query_.norm || key_.norm;
  }
  [[nodiscard]] bool has_gradient(std::size_t number) const noexcept override { return number == 0; }
  [[nodiscard]] Blocks workspace(const Engine& engine, const BatchShape& shape) const override;
  [[nodiscard]] ParameterGradients gradients() noexcept override;
  [[nodiscard]] OperationSizes sizes() const noexcept override { return {.sums = {sums_of(query_), sums_of(key_)}}; }

 private:
  [[nodiscard]] OperationSizes::Sums sums_of(const Heads& heads) const noexcept {
    if (!heads.norm) return {};
    const std::int64_t all = heads.count * head_dim_, count = heads.bias != nullptr ? 2 : 1;
    if (whole_width_norms_) return {all, count, heads.norm.one_plus_weight, 0};
    return {head_dim_, count, heads.norm.one_plus_weight, all};
  }
  void prepare(const GraphCall& call, const Heads& heads, std::int64_t first, const RowRange& rows) const;
  void prepare_backward(const GraphCall& call, const Heads& heads, std::int64_t first, const RowRange& rows) const;
  [[nodiscard]] HeadRowsOptions options(const GraphCall& call, const Heads& heads, const RowRange& rows) const;

  Heads query_;
  Heads key_;
  std::int64_t head_dim_;
  bool whole_width_norms_;
  RotaryPairing pairing_;
};

// Keys and values [B, Lm, key | value] of the memory that a call is given: memory Wᵀ + b, with those rows of a
// projection.
class MemoryProjection {
 public:
  MemoryProjection(MatrixParameter& weight, VectorParameter* bias, WeightMatrix::Rows rows) noexcept
      : weight_(&weight.matrix), bias_(bias), rows_(rows) {}

  // That of inference, where heads are so wide.
  [[nodiscard]] NumberType type(const Engine& engine, std::int64_t head_dim) const noexcept;
  [[nodiscard]] std::size_t bytes(const BatchShape& shape, NumberType type) const noexcept;
  // Where they lie in memory of so many bytes.
  [[nodiscard]] MutableTypedView<3> placed(const GraphCall& call, NumberType type, std::byte* memory) const noexcept;
  void forward(const GraphCall& call, const MutableTypedView<3>& key_value) const;
  // To the gradients of W and b, and to that of the memory.
  void backward(const GraphCall& call, const View<float, 3>& key_value_gradient) const;
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, const BatchShape& shape) const;
  void pack_weights(Engine& engine) const { static_cast<void>(weight_->packed(engine, rows_)); }

 private:
  WeightMatrix* weight_;
  VectorParameter* bias_;
  WeightMatrix::Rows rows_;
};

// The memory of the gradients of an attention's sinks.
[[nodiscard]] inline std::size_t sink_bytes(const AttentionSpec& spec) noexcept {
  return static_cast<std::size_t>(spec.heads) * sizeof(float);
}

// out = attention of query, key and value, each of whole heads. Tokens see those of their own sequence, or all that the
// memory has for them.
class AttentionOperation final : public Operation {
 public:
  // Parameters beside the projections, null where there are none.
  struct Own {
    VectorParameter* sinks;
    MatrixParameter* relative_bias;
    std::optional<MemoryProjection> memory;  // with which there are queries alone
  };
  // `spec` has every size set. `block` is that whose heads callers may ask for. `bias` is what a RelativeBiasOperation
  // made of the table, where there is one.
  // `layer`: its name, in messages.
  AttentionOperation(std::string_view layer, const AttentionSpec& spec, std::int64_t block, const Own& own,
                     const DropoutPlace& dropout, const Slice& query_key_value, const Slice& bias, const Slice& out)
      : Operation(out, {query_key_value, bias}, -1),
        layer_(layer),
        spec_(spec),
        block_(block),
        own_(own),
        dropout_(dropout) {}

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t) const noexcept override { return true; }
  [[nodiscard]] bool keeps_output() const noexcept override { return true; }
  // Keys and values of the memory, log-sum-exp [B, H, L], and what the attention keeps for itself.
  [[nodiscard]] std::size_t kept_bytes(const GraphCall& call) const override;
  [[nodiscard]] bool goes_by_rows() const noexcept override { return false; }
  [[nodiscard]] bool has_gradient(std::size_t number) const noexcept override { return number == 0; }
  [[nodiscard]] OperationSizes sizes() const noexcept override {
    return {.attention = &spec_, .dropout = dropout_.probability};
  }
  [[nodiscard]] Blocks workspace(const Engine& engine, const BatchShape& shape) const override;
  void pack_weights(Engine& engine) const override;

 private:
  [[nodiscard]] AttentionOptions options(const GraphCall& call) const;
  [[nodiscard]] const TrainingAttention& attention_of(const GraphCall& call) const noexcept;
  [[nodiscard]] AttentionShape attention_shape(const BatchShape& shape) const noexcept;
  // Of keys and values of the memory outside of training, where there are any.
  [[nodiscard]] std::size_t memory_bytes(const Engine& engine, const BatchShape& shape) const noexcept;
  // [B, L, heads, D] each.
  struct Projected {
    MutableTypedView<4> query;
    MutableTypedView<4> key;
    MutableTypedView<4> value;
  };
  [[nodiscard]] Projected projected(const GraphCall& call, const RowRange& rows, std::byte* of_memory) const;
  void forward_in_training(const GraphCall& call, const RowRange& rows, AttentionOptions options) const;
  struct Kept {
    std::byte* of_memory;
    View<float, 3> log_sum_exp;
    View<float, 4> beside;
    std::size_t bytes;
  };
  // Without memory for its size.
  [[nodiscard]] Kept kept(const GraphCall& call, const AttentionOptions& options, std::byte* memory) const;

  void differentiate_sinks(const GraphCall& call, const ops::AttentionBackwardOperands& operands,
                           const AttentionOptions& options);
  void differentiate_bias(const GraphCall& call, const ops::AttentionBackwardOperands& operands,
                          const AttentionOptions& options);

  std::string_view layer_;
  AttentionSpec spec_;
  std::int64_t block_;
  Own own_;
  DropoutPlace dropout_;
};

// Heads [N, H · D] as the last product takes them: summed by their weights, or each after its gates. `by` are what
// weights are the softmax of, or the gates before σ, a row for each token; without it all tokens share `logits`, or
// weigh each head the same.
class MergeOperation final : public Operation {
 public:
  MergeOperation(const AttentionSpec& spec, std::int64_t block, VectorParameter* logits, const Slice& heads,
                 const Slice& by, const Slice& y)
      : Operation(y, {heads, by}, gates(spec.merge) ? 0 : -1),
        heads_(spec.heads),
        gates_(gates(spec.merge)),
        block_(block),
        logits_(logits) {}

  // Whether that is a product with gates, else a sum with weights.
  [[nodiscard]] static bool gates(Merge merge) noexcept {
    return merge == Merge::gated_by_head || merge == Merge::gated_by_element;
  }

  void forward(const GraphCall& call, const RowRange& rows) const override;
  void backward(const GraphCall& call, const RowRange& rows) override;
  [[nodiscard]] bool keeps_input(std::size_t) const noexcept override { return true; }
  [[nodiscard]] Blocks workspace(const Engine& engine, const BatchShape& shape) const override;
  [[nodiscard]] ParameterGradients gradients() noexcept override;
  [[nodiscard]] OperationSizes sizes() const noexcept override {
    if (gates_) return {};
    return {.sums = {{{logits_ != nullptr ? heads_ : 0, 1, false, 0}}}, .weights = heads_};
  }

 private:
  // Of those rows: of each, or one row for all.
  [[nodiscard]] View<float, 2> weights(const GraphCall& call, const RowRange& rows, std::byte* memory) const;

  std::int64_t heads_;
  bool gates_;
  std::int64_t block_;
  VectorParameter* logits_;
};

}  // namespace headlight::layers
