// What the softmax weights of heads say: how sharp they are, how far they reach, where they look, how alike they are.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "headlight/analysis/measure.h"
#include "headlight/engine.h"
#include "headlight/tensor.h"

namespace headlight::analysis {

// Some rows of softmax weights of one text, of all heads of a layer.
struct AttentionText {
  // [H, R, L]: rows that sum to 1 over the L tokens of the text, or of zeros where a head sees nothing. The last stride
  // is 1.
  View<const float, 3> weights;
  // [R], the token that each row belongs to; empty: tokens 0 … R − 1.
  std::span<const std::int64_t> rows{};
  // Tokens that only mark the end of something ([SEP]).
  std::span<const std::int64_t> separators{};
};

// Beyond which share a head is called something. Only the first is from the literature: Voita et al. (2019) call a head
// positional when its largest weight is at one relative position in at least nine rows of ten. The others are this
// library's. In short texts weight lies near, or on the first token and the separators, by itself: it must be there
// `times_even` times as much as if it were spread evenly.
struct KindThresholds {
  double positional = 0.9;  // share of rows
  double local = 0.8;       // weight within kLocalReach tokens
  double no_op = 0.8;       // weight on the first token and the separators, where a head looks that finds nothing to do
                            // (Clark et al. 2019)
  double times_even = 1.5;  // see above
  std::int64_t fewest_rows = 10;  // with fewer, nine rows of ten cannot be told from all
};

// The largest weight of a row is at the token before, after, at the text's first, or at a separator, in that share of
// the rows; the weight lies within a few tokens; the weight lies on tokens that mean nothing.
struct HeadKinds {
  // Where the largest weight is.
  bool previous_token = false;
  bool next_token = false;
  bool first_token = false;
  bool separator = false;
  // Where the weight lies.
  bool local = false;
  bool no_op = false;
  // Why nothing can be said: too_few_rows, or what its measures are undefined for.
  Undefined why = Undefined::none;
};

// Means over the rows that were added and see something; α_ij is the weight of token j in the row of token i. All
// undefined: no_rows, zero (every row is of zeros), not_weights and not_finite (one row was).
struct HeadAttention {
  // How many tokens away is local, and how far the profile goes.
  static constexpr std::int64_t kLocalReach = 2;
  static constexpr std::int64_t kProfileReach = 8;

  std::int64_t rows = 0;  // that see something

  Measure entropy;     // −Σ_j α_ij ln α_ij, in nats (Clark et al. 2019)
  Measure confidence;  // max_j α_ij (Voita et al. 2019)
  Measure distance;    // Σ_j α_ij |i − j|, in tokens (Vig & Belinkov 2019)

  // Shares of rows whose largest weight is at the token before, at the one after, at the token itself, at token 0, at a
  // separator. A row whose largest weight occurs twice has it nowhere; even: no row has one.
  Measure peaks_previous, peaks_next, peaks_itself, peaks_first, peaks_separator;
  // Weight on token 0 and the separators, and within kLocalReach tokens of i.
  Measure weight_first, weight_separators, weight_local;
  // What weight_first + weight_separators and weight_local would be if the weight were spread evenly.
  Measure even_no_op, even_local;
  // Weight at j − i = −kProfileReach … kProfileReach; 0 for tokens that a text does not have.
  std::array<double, 2 * kProfileReach + 1> profile{};

  // What the head may be called.
  [[nodiscard]] HEADLIGHT_API HeadKinds kinds(const KindThresholds& thresholds = {}) const noexcept;
};

// Sums over many texts, in memory that does not grow with them: float64 sums of float32 terms. The same bits for any
// number of threads.
class HEADLIGHT_API AttentionMeasures {
 public:
  // How far from 1 the weights of a row may sum: what numbers of 16 bits leave.
  static constexpr double kSumTolerance = 1e-3;

  // `pairs`: whether divergences are wanted too; their cost grows with heads². Throws std::invalid_argument for
  // heads < 1 or beyond 2²⁰ − 1; OutOfMemory.
  explicit AttentionMeasures(std::int64_t heads, bool pairs = true);

  // Throws std::invalid_argument for another number of heads, rows and separators outside the text, a text of 2²⁴
  // tokens or more; OutOfMemory, and then no row counts. A row that holds no weights makes the measures of its head
  // undefined, and of no other.
  void add(Engine& engine, std::span<const AttentionText> texts);

  // As many as the constructor was told.
  [[nodiscard]] std::int64_t heads() const noexcept { return heads_; }
  // Rows that were added, whatever is in them.
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] HeadAttention head(std::int64_t head) const;
  // The mean over the rows in which both see something of the Jensen–Shannon divergence of their weights, Σ_j ½ α
  // ln(α/m) + ½ β ln(β/m), m = (α + β)/2, in nats: 0 where they always agree, ln 2 where they never meet. Clark et al.
  // (2019) take its sum over rows as the distance of two heads; its square root is a metric.
  [[nodiscard]] Measure jensen_shannon(std::int64_t a, std::int64_t b) const;

 private:
  void check(const AttentionText& text, std::size_t number) const;
  [[nodiscard]] std::int64_t pairs() const noexcept { return pairs_ ? heads_ * (heads_ - 1) / 2 : 0; }
  [[nodiscard]] Undefined state(std::int64_t head) const noexcept;

  std::int64_t heads_;
  bool pairs_;
  std::int64_t rows_ = 0;
  // For each head its sums in the order of HeadAttention, then for each pair a < b the divergence, then the rows that
  // it is the sum of.
  std::vector<double> sums_;
};

}  // namespace headlight::analysis
