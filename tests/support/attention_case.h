// One call of attention(), written as a line of text: what random tests print when they fail, and what the golden cases
// are kept as.
//
//   seed=7 B=2 Lq=17 Lk=23 Hq=6 Hkv=2 D=8 Dv=5 causal=bottom-right window=3,-1 key_lengths=3,17 mask=1,1,17,23
//   mask_means=attend
//
// The line holds everything: numbers come from the seed, in the order query, key, value, mask, bias, slopes, sinks.
// tests/golden/attention.py reads the same lines.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headlight/attention.h"
#include "headlight/number_type.h"
#include "support/random.h"

namespace headlight::test {

using Shape4 = View<float, 4>::Shape;

struct AttentionCase {
  std::uint64_t seed = 0;
  std::int64_t batch = 1;
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  std::int64_t query_heads = 1;
  std::int64_t key_value_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t value_dim = 1;
  Causal causal = Causal::none;
  std::optional<Align> align;
  Window window;
  std::int64_t chunk = 0;
  std::vector<std::int64_t> query_lengths;
  std::vector<std::int64_t> key_lengths;
  std::vector<std::int64_t> query_offsets;
  std::vector<std::int64_t> key_offsets;
  std::optional<Shape4> mask;
  MaskMeans mask_means = MaskMeans::attend;
  std::optional<Shape4> bias;
  // Every eighth entry of the bias, or so, is −inf.
  bool bias_has_infinities = false;
  std::optional<float> scale;
  float softcap = 0;
  bool alibi = false;  // as ALiBi gives them, for Hq heads a power of two
  bool sinks = false;
  // None: not given; one: for all; else one for each sequence.
  std::vector<std::int64_t> key_start;
  std::vector<std::int64_t> query_start;
  // What query, key, value and out are stored as, for those who look at it.
  std::array<NumberType, 4> types{};
  // Probability of dropout; its seed and stream are functions of the case's seed.
  float dropout = 0;

  // Throws std::invalid_argument for a line it cannot read.
  [[nodiscard]] static AttentionCase parse(const std::string& line);
  [[nodiscard]] std::string line() const;
  // One word of a line, cut at its equals sign; false where there is none of that name.
  bool set(const std::string& name, const std::string& value);
  // Becomes the nearest case that attention() takes: masks as large as the call or 1, as many lengths as samples.
  void make_valid();
};

// Every option but the sizes, which are there: alone and in any combination.
void draw_attention_options(Random& random, AttentionCase& c);

// A case with any of the options in any combination: lengths from 0 to `longest`, grouped heads, Dv ≠ Dqk.
[[nodiscard]] AttentionCase random_attention_case(std::uint64_t seed, std::int64_t longest);

// The same with keys for two or three blocks, of which there are key_block(head_dim, value_dim) in one; rows as many,
// or few. Heads are few and mostly narrow, for the twin's sake.
using KeyBlock = std::function<std::int64_t(std::int64_t, std::int64_t)>;
[[nodiscard]] AttentionCase random_case_of_several_blocks(std::uint64_t seed, const KeyBlock& key_block);

// The tensors of a case. `options` looks into this object and into the case, which must both stay where they are.
struct AttentionInputs {
  explicit AttentionInputs(const AttentionCase& attention_case);
  AttentionInputs(const AttentionInputs&) = delete;
  AttentionInputs& operator=(const AttentionInputs&) = delete;

  Tensor<float, 4> query;
  Tensor<float, 4> key;
  Tensor<float, 4> value;
  Tensor<std::uint8_t, 4> mask;
  Tensor<float, 4> bias;
  std::vector<float> slopes;
  std::vector<float> sinks;
  AttentionOptions options;
};

// 1 + the last block of `block` keys, within its sequence, that some row of a case sees; 0 if none sees any.
[[nodiscard]] std::int64_t blocks_that_are_seen(const AttentionCase& c, const AttentionInputs& in, std::int64_t block);

// The options that a case has, one name each.
[[nodiscard]] std::vector<std::string> names_of_options(const AttentionCase& c);

}  // namespace headlight::test
