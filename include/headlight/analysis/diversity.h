// How different heads are made: the subspaces of their projections, the terms that training may use to part them, and
// how much the loss would miss a head.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/analysis/measure.h"
#include "headlight/engine.h"
#include "headlight/layers/multi_head_attention.h"
#include "headlight/parameters.h"
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

// Where the gradient of a penalty goes: `into` += scale · ∂penalty/∂x, of the shape of x. Nothing is added where the
// penalty has no value, or where `into` is not given.
template <int Rank>
struct PenaltyGradient {
  View<float, Rank> into{};
  double scale = 1;  // what the gradient is multiplied by
};

// ‖Ŵ Ŵᵀ − I‖²_F, where row h of Ŵ is the head's part [D, E] of `weight` [H·D, E], flattened and divided by its norm: 0
// where all are at right angles, H² − H where they are the same up to their sign. Undefined::zero where a head's part
// is all zeros.
HEADLIGHT_API Measure orthogonality_penalty(View<const float, 2> weight, std::int64_t heads,
                                            const PenaltyGradient<2>& gradient = {});

// The same for what heads span rather than for each of their numbers: Σ_a≠b ‖W_a W_bᵀ‖²_F / (‖W_a W_aᵀ‖_F ‖W_b W_bᵀ‖_F)
// over the heads' parts [D, E] of `weight` [H·D, E]: 0 where their row spaces are at right angles, H² − H where they
// are the same and used alike; no rotation within a head changes it. By the engine's gemm, so within 1e-6.
HEADLIGHT_API Measure subspace_penalty(Engine& engine, View<const float, 2> weight, std::int64_t heads,
                                       const PenaltyGradient<2>& gradient = {});

// Disagreement of heads (Li et al. 2018), between −1 (all the same) and 1. Of their values or outputs x [N, H, D]:
// −H⁻² Σ_ab cos(x_a, x_b), each head's rows as one vector. Undefined::zero where a head is all zeros.
HEADLIGHT_API Measure output_disagreement(View<const float, 3> x, const PenaltyGradient<3>& gradient = {});
// The linear CKA (see similarity.h) of what heads give for the same rows, summed over pairs a ≠ b: outputs [N, H·D], N
// ≥ 2: 0 where no linear map takes anything of one head to another, H² − H where all say the same up to a rotation.
// Over all rows at once, so biased upwards for few. Undefined::constant where a head gives the same in every row.
HEADLIGHT_API Measure similarity_penalty(Engine& engine, View<const float, 2> outputs, std::int64_t heads,
                                         const PenaltyGradient<2>& gradient = {});
// Of their positions: −H⁻² Σ_ab Σ_ij α_a,ij α_b,ij / R over softmax weights [H, R, L], between −1 and 0.
[[nodiscard]] HEADLIGHT_API Measure position_disagreement(View<const float, 3> weights);

// How much each term counts beside the loss; 0: not at all, and nothing is computed for it.
struct DiversityWeights {
  double subspaces = 0;      // of the mean over layers of the subspace penalties of W_Q and W_K, each over H² − H
  double orthogonality = 0;  // the same with orthogonality_penalty()
  // On the outputs: of the mean over layers of the mean CKA of two heads, and of −output_disagreement(). The latter
  // asks for opposite outputs, and what is opposite is alike: heads that cancel out say the same.
  double similarity = 0;
  double disagreement = 0;
};

// What training may have beside its loss, so that heads part. In a step:
//   DiversityPenalty penalty(layers, heads, weights);
//   encoder.backward(engine, input, saved, hidden_gradient, &penalty);  // heads' outputs, on the way; or a Network's
//   penalty.add(engine, parameters);                                     // W_Q and W_K
//   loss += penalty.take();
// Gradients are added to those that are there; a layer whose heads have no direction adds nothing.
class HEADLIGHT_API DiversityPenalty final : public HeadVisitor {
 public:
  // Throws std::invalid_argument for layers or heads < 1 and for weights that are negative or not finite.
  DiversityPenalty(std::int64_t layers, std::int64_t heads, const DiversityWeights& weights);

  void visit(Engine& engine, std::int64_t layer, View<const float, 3> outputs, View<float, 3> gradient) override;
  // Of every parameter whose name ends in in_proj_weight, q_proj_weight or k_proj_weight, and of a Network's in
  // attention.query.weight or attention.key.weight.
  void add(Engine& engine, std::span<const Parameter> parameters);
  // The value since the last call.
  [[nodiscard]] double take() noexcept;

 private:
  void add(Engine& engine, View<const float, 2> weight, std::int64_t heads, View<float, 2> gradient);

  std::int64_t layers_;
  std::int64_t heads_;
  DiversityWeights weights_;
  double value_ = 0;
};

// Importance of a head: the mean over samples of |Σ head · ∂L/∂head|, the sum over the sample's rows and columns, which
// is how much the loss changes when the head is scaled (Michel et al. 2019).
class HEADLIGHT_API HeadImportance {
 public:
  // Throws std::invalid_argument for heads < 1.
  explicit HeadImportance(std::int64_t heads);

  // outputs, gradients [N, H, D]; offsets [n + 1] ascending from 0 to N: sample s is rows offsets[s] … offsets[s+1] − 1
  // (empty: one sample). Samples without rows count. Throws std::invalid_argument for other shapes or offsets.
  void add(View<const float, 3> outputs, View<const float, 3> gradients, std::span<const std::int64_t> offsets = {});

  // How many were added.
  [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }
  // Undefined: no_rows, not_finite. Throws std::invalid_argument for a head that there is not.
  [[nodiscard]] Measure importance(std::int64_t head) const;

 private:
  std::int64_t samples_ = 0;
  std::vector<double> sums_;  // [H]
};

}  // namespace headlight::analysis
