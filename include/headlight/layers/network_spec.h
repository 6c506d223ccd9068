// What a network of transformer blocks is made of, as plain values. A family of published models is a way to fill these
// in from its configuration.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/activation_kind.h"
#include "headlight/merge_kind.h"
#include "headlight/norm_kind.h"
#include "headlight/rotary.h"

namespace headlight {

// A normalisation, and what it has beside its weight w.
struct NormSpec {
  NormKind kind = NormKind::none;  // none: the values stay as they are
  float epsilon = 1e-5f;           // under the root
  bool bias = false;               // of NormKind::layer
  // Whether w = 1 + weight (Gemma), else w = weight.
  bool one_plus_weight = false;

  // Whether there is one.
  [[nodiscard]] explicit operator bool() const noexcept { return kind != NormKind::none; }
  // Whether all fields are equal.
  friend bool operator==(const NormSpec&, const NormSpec&) = default;
};

// A bias of each score by the distance of its key: table[bucket(j − i)][head]. Half of the buckets are of keys in front
// of the query and the query itself, half of those behind it; of either half the first half have one distance each, 0,
// 1 … buckets / 4 − 1, and the others grow with its logarithm, the last one from max_distance on. (T5's, Raffel et al.
// 2020; MPNet, Song et al. 2020) All blocks that have one share one table [buckets, heads].
struct RelativeBiasSpec {
  std::int64_t buckets = 0;         // 0: none; else an even number of 4 or more
  std::int64_t max_distance = 128;  // more than buckets / 4

  // Whether there is one.
  [[nodiscard]] explicit operator bool() const noexcept { return buckets != 0; }
  // Whether all fields are equal.
  friend bool operator==(const RelativeBiasSpec&, const RelativeBiasSpec&) = default;
};

// out = W_o · attention(q, k, v) + b_o of the tokens of a sequence; q = W_q x + b_q [heads · head_dim], k, v
// [key_value_heads · head_dim], of which q and k are then normalised and turned. With another merge than concatenate
// the heads are weighted or gated by x before W_o, which is [E, head_dim] where their weighted sum is what it takes.
struct AttentionSpec {
  std::int64_t heads = 1;            // of the queries
  std::int64_t key_value_heads = 0;  // a divisor of heads; 0: heads
  std::int64_t head_dim = 0;         // 0: width / heads
  bool input_bias = false;           // b_q, b_k, b_v
  bool output_bias = false;          // b_o
  // Of each head of q and of k, over head_dim; or, with whole_width_norms, of all heads as one row.
  NormSpec query_norm{};
  NormSpec key_norm{};
  bool whole_width_norms = false;
  RotarySpec rotary{};
  bool causal = false;
  // A token sees those at most so many positions before and after it; −1: no limit.
  std::int64_t window_before = -1;
  std::int64_t window_after = -1;
  float scale = 0;                   // 0: 1 / √head_dim
  float softcap = 0;                 // 0: none; see AttentionOptions
  bool sinks = false;                // one more logit for each head, a parameter; see AttentionOptions
  Merge merge = Merge::concatenate;  // how heads become one again
  // Whether initialize() draws W_q and W_k with orthonormal rows, so that heads begin in spaces at right angles.
  bool orthogonal = false;
  RelativeBiasSpec relative_bias{};  // equal in all blocks that have one, and so are their heads

  // Whether all fields are equal.
  friend bool operator==(const AttentionSpec&, const AttentionSpec&) = default;
};

// W_down · activation(W_up x + b_up) + b_down, or gated: W_down · (activation(W_gate x + b_gate) ∘ (W_up x + b_up)) +
// b_down (Shazeer 2020).
struct FeedForwardSpec {
  std::int64_t hidden_width = 0;             // F
  Activation activation = Activation::gelu;  // of the first product, or of the gate
  bool gated = false;                        // whether there is a gate
  bool input_bias = false;                   // b_up, b_gate
  bool output_bias = false;                  // b_down

  // Whether all fields are equal.
  friend bool operator==(const FeedForwardSpec&, const FeedForwardSpec&) = default;
};

// Where a part F of a block is normalised: y = sum(x + factor · after(F(before(x)))). BERT has `sum` alone (Post-LN),
// most models of today `before` alone (Pre-LN), Gemma 3 `before` and `after`.
struct ResidualSpec {
  NormSpec before{};
  NormSpec after{};
  NormSpec sum{};
  float factor = 1;  // of what is added

  // Whether all fields are equal.
  friend bool operator==(const ResidualSpec&, const ResidualSpec&) = default;
};

// Attention and then feed-forward, each inside its residual; or parallel: y = x + attention's part of x +
// feed-forward's part of x (no `sum` then).
struct BlockSpec {
  AttentionSpec attention{};
  ResidualSpec attention_residual{};     // around the attention
  FeedForwardSpec feed_forward{};        // behind it
  ResidualSpec feed_forward_residual{};  // around that
  bool parallel = false;                 // whether both read x

  // Whether all fields are equal.
  friend bool operator==(const BlockSpec&, const BlockSpec&) = default;
};

// norm(scale · (word[id] + position[p] + token_type[t])), of which each table may be missing but the first.
struct EmbeddingSpec {
  std::int64_t vocabulary = 0;   // rows of the table of words
  std::int64_t positions = 0;    // rows of a table of learned positions; 0: none
  std::int64_t token_types = 0;  // 0: none
  float scale = 1;               // of the sum
  NormSpec norm{};

  // Whether all fields are equal.
  friend bool operator==(const EmbeddingSpec&, const EmbeddingSpec&) = default;
};

// logits = f · (hidden Wᵀ + b), or with a cap c · tanh(f · (hidden Wᵀ + b) / c) (Gemma 2); W [vocabulary, E].
struct LogitsSpec {
  // Where W is.
  enum class Weight : std::uint8_t {
    none,             // there are no logits
    word_embeddings,  // it is the table of words (Press & Wolf 2017)
    own               // a parameter beside that
  };
  Weight weight = Weight::none;  // which of these
  bool bias = false;             // b
  float factor = 1;              // f
  float cap = 0;                 // c; 0: none

  // Whether there are any.
  [[nodiscard]] explicit operator bool() const noexcept { return weight != Weight::none; }
  // Whether all fields are equal.
  friend bool operator==(const LogitsSpec&, const LogitsSpec&) = default;
};

// A network: blocks between embeddings and a norm.
struct NetworkSpec {
  std::int64_t width = 0;           // E
  EmbeddingSpec embedding{};        // what the first block reads
  std::vector<BlockSpec> blocks{};  // in order
  NormSpec last_norm{};             // behind the last block
  LogitsSpec logits{};              // of hidden states
  // In training: of the embeddings, the softmax weights, the output of each part (before its norm `after`), and hidden
  // activations.
  float dropout = 0;

  // Whether all fields are equal.
  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

}  // namespace headlight
