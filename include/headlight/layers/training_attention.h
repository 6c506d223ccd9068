// The attention of a layer in training, as both its passes: the engine's own, or another in its place.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/attention_backward.h"
#include "headlight/export.h"

namespace headlight {

class RowShards;

// What a layer runs in place of attention() and attention_backward() where a SavedState names it: that over
// ranks (headlight/mpi.h), or an attention that is under study. query [B, Lq, Hq, D], key and value [B, Lk, Hkv, D], as
// the layer projected them; options are those of its call with its dropout. One object may serve
// many layers at once, and outlives every SavedState that names it.
class HEADLIGHT_API TrainingAttention {
 public:
  // How many numbers each query of each head keeps between the passes, beside its output and its log-sum-exp.
  [[nodiscard]] virtual std::int64_t kept_columns(std::int64_t key_length,
                                                  const AttentionOptions& options) const noexcept = 0;
  // Writes out [B, Lq, Hq, D] and whatever the options ask for, log_sum_exp [B, Hq, Lq] always, and to kept [B, Hq, Lq,
  // kept_columns()] what backward() wants.
  virtual void forward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                       View<float, 4> out, View<float, 4> kept, const AttentionOptions& options) const = 0;
  // As attention_backward(); `kept` as forward() left it.
  virtual void backward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                        View<const float, 4> value, View<const float, 4> out, View<const float, 3> log_sum_exp,
                        View<float, 4> kept, View<const float, 4> out_gradient, const AttentionGradients& gradients,
                        const AttentionOptions& options) const = 0;
  // The gradient of a relative position bias, bias(0, h, i, j) = f(h, j − i), of one sample: dS summed over
  // all pairs of a distance, of each shard's rows by themselves, or of all rows where there are no shards:
  //   distances(s, h, j − i + Lq − 1) = Σ dS_ij   [shards, Hq, Lq + Lk − 1],
  // Lq and Lk those of the whole sequence, overwritten. Operands as backward() takes them. By itself this is what
  // attention_backward() would give where all rows and keys are here, and where shards() holds only some shards it
  // throws std::invalid_argument, as for operands that do not fit. Throws OutOfMemory.
  virtual void differentiate_distances(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                       View<const float, 4> value, View<const float, 4> out,
                                       View<const float, 3> log_sum_exp, View<const float, 4> out_gradient,
                                       View<float, 3> distances, const AttentionOptions& options) const;
  // Makes each number the largest that any of those gives who hold rows of the sequence; all call it alike. By itself
  // this leaves them to one who holds all rows, and throws std::invalid_argument where shards() holds only some shards.
  virtual void find_largest(std::span<std::int64_t> numbers) const;
  // The shards that rows of x fall into: layers keep the gradients of parameters there, shard by shard, and options of
  // their calls speak of the whole sequence. Null: there are none.
  [[nodiscard]] virtual RowShards* shards() const noexcept { return nullptr; }
  // What a decoder layer runs over its memory.
  [[nodiscard]] virtual const TrainingAttention& of_memory() const noexcept { return *this; }

 protected:
  ~TrainingAttention() = default;
};

// attention() and attention_backward(), which keep nothing more.
[[nodiscard]] HEADLIGHT_API const TrainingAttention& fused_attention() noexcept;

}  // namespace headlight
