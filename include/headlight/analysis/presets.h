// Where the parameters, the operations and the bytes of the classic transformers are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/export.h"
#include "headlight/layers/multi_head_attention.h"
#include "headlight/number_type.h"

namespace headlight::analysis {

// The shape of a transformer of one kind of layer: BERT's (embeddings normalised, a pooler behind the first token) or
// GPT-2's (causal, one normalisation at the end, the word table once more as output).
struct ModelShape {
  std::int64_t width = 0;               // E
  std::int64_t heads = 1;               // of each layer
  std::int64_t feed_forward_width = 0;  // F
  // How many there are, and the rows of the tables of words and of positions.
  std::int64_t layers = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;
  std::int64_t token_types = 0;  // 0: no such table
  bool pooler = false;           // tanh(x W + b), [E, E]
  bool causal = false;           // GPT-2's: a word sees those before it alone
};

// A classic model.
struct Preset {
  // "BERT-base", and what it is made of.
  std::string_view name;
  ModelShape shape;
  std::int64_t published_parameters = 0;  // of the checkpoint, as its authors published it
};

// BERT-base, BERT-large (Devlin et al. 2019), GPT-2 small, GPT-2 medium (Radford et al. 2019), MiniLM-L6 (Wang et al.
// 2020, as all-MiniLM-L6-v2).
[[nodiscard]] HEADLIGHT_API std::span<const Preset> presets() noexcept;

// The weights of one attention block. A head has E × D of each of W_Q, W_K, W_V, and D = E / heads: all heads together
// have E × E of each, however many they are.
struct AttentionParameters {
  std::int64_t head_dim = 0;              // D
  std::int64_t one_projection = 0;        // E · D: W_Q (or W_K, or W_V) of one head
  std::int64_t projections_per_head = 0;  // 3 · E · D
  std::int64_t projections = 0;           // of all heads: 3 · E²
  std::int64_t output = 0;                // W_O: E²
  std::int64_t weights = 0;               // 4 · E²
  std::int64_t biases = 0;                // 4 · E
};

// Throws std::invalid_argument unless 1 ≤ width < 2²⁰ and heads divide it.
[[nodiscard]] HEADLIGHT_API AttentionParameters attention_parameters(std::int64_t width, std::int64_t heads);

// Parameters of one purpose.
struct ParameterPart {
  // "attention W_O", and how many numbers it has.
  std::string name;
  std::int64_t count = 0;
};

// All parameters, part by part: tables, normalisations, attention, feed-forward, pooler. A tied output head counts
// once. Throw std::invalid_argument for sizes that are negative or so large that the sum might leave 63 bits.
[[nodiscard]] HEADLIGHT_API std::vector<ParameterPart> parameters_by_part(const ModelShape& shape);
[[nodiscard]] HEADLIGHT_API std::int64_t parameter_count(const ModelShape& shape);

// Bytes of all parameters where products multiply in that type (Layer::set_precision()): the matrices of layers and
// pooler in it, those of int8 with eight bytes a column beside them, those of int4 with two for each 32 numbers of a
// column; tables, biases and normalisations in float32. What fills panels up to whole vectors is not counted.
[[nodiscard]] HEADLIGHT_API double weight_bytes(const ModelShape& shape, NumberType type);

// One forward pass over one sequence. A multiply-add is two operations; row operations are not counted. Whole numbers,
// exact below 2⁵³.
struct ForwardFlops {
  double projections = 0;   // 8 · L · E² a layer: to queries, keys, values and back
  double attention = 0;     // 4 · pairs · E a layer; pairs = L², causal L (L + 1) / 2
  double feed_forward = 0;  // 4 · L · E · F a layer
  // Their sum.
  [[nodiscard]] double all() const noexcept { return projections + attention + feed_forward; }
};

// What attention alone holds in float32, one layer, for one sequence.
struct AttentionBytes {
  double scores = 0;        // 4 · heads · L²
  double kept_plain = 0;    // for a backward pass with the weights kept: q, k, v, out and the weights
  double kept_rebuilt = 0;  // with the weights computed anew: q, k, v, out and one log-sum-exp a row and head
};

// Throw std::invalid_argument for a length < 1.
[[nodiscard]] HEADLIGHT_API ForwardFlops forward_flops(const ModelShape& shape, std::int64_t length);
[[nodiscard]] HEADLIGHT_API AttentionBytes attention_bytes(const ModelShape& shape, std::int64_t length);

// What one way to put heads together takes behind them, in one layer.
struct MergeCost {
  Merge merge = Merge::concatenate;  // which way
  std::int64_t weights = 0;          // W_O or W_up, and what weighs or gates; without the bias
  // For `length` tokens: of its products with matrices, and of what it does beside them, element by element: weighted
  // sums of heads, softmaxes and gates, each exponential, addition, product and quotient one operation.
  double flops = 0;
  double row_flops = 0;
};

// Every Merge, in the order of the enum. Throws as attention_parameters() and forward_flops() do.
[[nodiscard]] HEADLIGHT_API std::vector<MergeCost> merge_costs(std::int64_t width, std::int64_t heads,
                                                               std::int64_t length);

}  // namespace headlight::analysis
