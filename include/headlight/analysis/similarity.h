// How alike the outputs of heads are, and how many directions they use together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headlight/analysis/measure.h"
#include "headlight/engine.h"
#include "headlight/tensor.h"

namespace headlight::analysis {

// Linear CKA over many minibatches, of heads of any layers: for heads x and y with outputs X [n, p] and Y [n, q] of a
// minibatch, K = X Xᵀ, L = Y Yᵀ,
//   CKA = Σ_b HSIC₁(K_b, L_b) / √(Σ_b HSIC₁(K_b, K_b) · Σ_b HSIC₁(L_b, L_b)).
// HSIC₁ is the unbiased estimator (Song et al. 2012), so the result does not depend on n as that of few rows otherwise
// would (Nguyen et al. 2021). At most about 1; a little below 0 where two heads have nothing in common. It does not
// change when a head's outputs are rotated, shifted or scaled, by whatever a float32 holds.
//
// Memory: H² float64 sums, and for a call H · n² floats a thread. Time: some n²·(2·H·D + H²/2) FLOP a minibatch by the
// engine's gemm; with n = 48 a fiftieth of MiniLM's forward pass. The same bits for any number of threads.
class HEADLIGHT_API MinibatchCka {
 public:
  // `minibatch`: about how many rows make one. Throws std::invalid_argument for heads < 1 or beyond 2²⁰ − 1 and for
  // fewer than 4 rows; OutOfMemory.
  explicit MinibatchCka(std::int64_t heads, std::int64_t minibatch = 48);

  // One view [N, D] a head, last stride 1; `rows`: those that count, in this order (empty: all). They are dealt out to
  // minibatches in turn, so that a minibatch is of many texts where texts lie one after another. Fewer than four rows
  // say nothing and are passed over. Throws std::invalid_argument for another number of views, or of rows in one of
  // them, and for rows outside; OutOfMemory.
  void add(Engine& engine, std::span<const View<const float, 2>> outputs, std::span<const std::int64_t> rows = {});

  // As many as the constructor was told.
  [[nodiscard]] std::int64_t heads() const noexcept { return heads_; }
  // Rows that counted.
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  // Undefined: too_few_rows (no minibatch of four), constant (a factor is not above 0), not_finite.
  [[nodiscard]] Measure cka(std::int64_t a, std::int64_t b) const;

 private:
  std::int64_t heads_, minibatch_;
  std::int64_t rows_ = 0;
  std::vector<double> sums_;  // [H, H]: Σ_b HSIC₁, upper half
};

// The covariance of what the heads of a layer give together, Concat(head_1 … head_H) [N, H·D], over many texts: float64
// sums of products by the engine's gemm around the mean of the first rows. Outputs may be of any size that a float32
// holds: those of a head that is far from 1 are scaled by a power of two on the way. Memory: (H·D)² float64.
class HEADLIGHT_API HeadCovariance {
 public:
  // Throws std::invalid_argument for sizes < 1 and more than 2²⁰ − 1 columns H·D; OutOfMemory.
  HeadCovariance(std::int64_t heads, std::int64_t head_dim);

  // outputs [N, H·D], last stride 1; `rows`: those that count (empty: all). Throws std::invalid_argument for another
  // width or rows outside; OutOfMemory, and then no row counts.
  void add(Engine& engine, View<const float, 2> outputs, std::span<const std::int64_t> rows = {});

  // Rows that counted.
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  // Linear CKA over all rows at once, ‖YᵀX‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F) of centred outputs (Kornblith et al. 2019): 0 to 1,
  // biased upwards for few rows. Undefined: too_few_rows (under two), constant, not_finite.
  [[nodiscard]] Measure cka(std::int64_t a, std::int64_t b) const;
  // exp(−Σ p ln p), p_i = σ_i / Σ σ over the singular values of the centred rows (Roy & Vetterli 2007): how many
  // directions they use, 1 to H·D.
  [[nodiscard]] Measure effective_rank() const;

 private:
  [[nodiscard]] double squared_block(std::int64_t a, std::int64_t b) const noexcept;
  [[nodiscard]] double centred(std::int64_t row, std::int64_t column) const noexcept;
  [[nodiscard]] bool is_constant(std::int64_t head) const noexcept;
  [[nodiscard]] Undefined state(std::int64_t head) const noexcept;
  struct Rows;
  struct Room;
  void fit_scale(std::int64_t head, float largest, int power) noexcept;
  void shift(Engine& engine, const Rows& rows, const Room& room) noexcept;
  void add_rows(Engine& engine, const Rows& rows, const Room& room) noexcept;

  std::int64_t heads_, head_dim_;
  std::int64_t rows_ = 0;
  // Of each head: whether its numbers are finite, and the s with which 2⁻ˢ (x − origin) = y makes products that a
  // float32 holds; unset while all are 0.
  std::vector<bool> finite_;
  std::vector<std::optional<int>> scales_;
  std::vector<float> origin_;     // [E], about the mean of the first rows
  std::vector<double> sums_;      // [E], Σ y
  std::vector<double> products_;  // [E, E], Σ y yᵀ, upper half
};

}  // namespace headlight::analysis
