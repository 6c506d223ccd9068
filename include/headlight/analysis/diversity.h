// How different heads are made: the subspaces of their projections, and the terms that training may use to part them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/analysis/measure.h"
#include "headlight/engine.h"
#include "headlight/tensor.h"

namespace headlight::analysis {

// The angles between the spaces that the rows of a [p, E] and b [q, E] span, ascending, in radians; as many as the
// smaller space has dimensions. Cosines for large angles, sines for small ones (Björck & Golub 1973). Rows that depend
// on the ones before span nothing. Throws std::invalid_argument when the widths differ or something is not finite.
[[nodiscard]] HEADLIGHT_API std::vector<double> principal_angles(View<const float, 2> a, View<const float, 2> b);

// [H, H]: the overlap of the row spaces of the heads' parts [D, E] of a projection weight [H·D, E], the mean of cos² of
// their principal angles: 1 the same space, 0 at right angles, D / E where both are drawn at random. By the engine's
// gemm, so within 1e-6. Undefined::zero for a head whose part is all zeros. Throws std::invalid_argument when heads do
// not divide the rows.
[[nodiscard]] HEADLIGHT_API std::vector<Measure> subspace_overlaps(Engine& engine, View<const float, 2> weight,
                                                                   std::int64_t heads);

// ‖Ŵ Ŵᵀ − I‖²_F, where row h of Ŵ is the head's part [D, E] of `weight` [H·D, E], flattened and divided by its norm: 0
// where all are at right angles, H² − H where they are the same up to their sign. Undefined::zero where a head's part
// is all zeros.
[[nodiscard]] HEADLIGHT_API Measure orthogonality_penalty(View<const float, 2> weight, std::int64_t heads);

// Disagreement of heads (Li et al. 2018), between −1 (all the same) and 1. Of their values or outputs x [N, H, D]:
// −H⁻² Σ_ab cos(x_a, x_b), each head's rows as one vector. Undefined::zero where a head is all zeros.
[[nodiscard]] HEADLIGHT_API Measure output_disagreement(View<const float, 3> x);
// Of their positions: −H⁻² Σ_ab Σ_ij α_a,ij α_b,ij / R over softmax weights [H, R, L], between −1 and 0.
[[nodiscard]] HEADLIGHT_API Measure position_disagreement(View<const float, 3> weights);

// Importance of a head: the mean over samples of |Σ head · ∂L/∂head|, the sum over the sample's rows and columns, which
// is how much the loss changes when the head is scaled (Michel et al. 2019).
class HEADLIGHT_API HeadImportance {
 public:
  // Throws std::invalid_argument for heads < 1.
  explicit HeadImportance(std::int64_t heads);

  // outputs, gradients [N, H, D]; offsets [n + 1] ascending from 0 to N: sample s is rows offsets[s] … offsets[s+1] − 1
  // (empty: one sample). Samples without rows count. Throws std::invalid_argument for other shapes or offsets.
  void add(View<const float, 3> outputs, View<const float, 3> gradients, std::span<const std::int64_t> offsets = {});

  [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }
  [[nodiscard]] Measure importance(std::int64_t head) const;

 private:
  std::int64_t samples_ = 0;
  std::vector<double> sums_;  // [H]
};

}  // namespace headlight::analysis
