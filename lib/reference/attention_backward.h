// The plain twin of headlight::attention_backward().
#pragma once

#include "headlight/attention.h"

namespace headlight::reference {

// Any may be left out; those given are overwritten. bias is of the shape of options.bias.
template <class Scalar>
struct AttentionGradients {
  View<Scalar, 4> query{};
  View<Scalar, 4> key{};
  View<Scalar, 4> value{};
  View<Scalar, 4> bias{};
  View<Scalar, 1> sinks{};  // [Hq]
};

// out_gradient [B, Lq, Hq, Dv] → the gradients of the arguments of attention(), every option included. Outputs and
// log-sum-exp are worked out again; arguments are trusted. With Z the dropout factors, δ_i = Σ_j P_ij dP_ij:
//   dV = (P∘Z)ᵀ dO,  dP = (dO Vᵀ)∘Z,  dS = P∘(dP − δ) = d(bias),  dQ = scale · dS∘C K,  dK = scale · (dS∘C)ᵀ Q,
// C the derivatives of the soft cap (1 without), and d(sink_h) = −Σ_i P_sink δ_i. log_sum_exp_gradient [B, Hq, Lq],
// where given, is taken from δ.
template <class Scalar>
void attention_backward(View<const Scalar, 4> query, View<const Scalar, 4> key, View<const Scalar, 4> value,
                        View<const Scalar, 4> out_gradient, const AttentionGradients<Scalar>& gradients,
                        const AttentionOptions& options = {}, View<const Scalar, 3> log_sum_exp_gradient = {});

extern template void attention_backward(View<const double, 4>, View<const double, 4>, View<const double, 4>,
                                        View<const double, 4>, const AttentionGradients<double>&,
                                        const AttentionOptions&, View<const double, 3>);
extern template void attention_backward(View<const float, 4>, View<const float, 4>, View<const float, 4>,
                                        View<const float, 4>, const AttentionGradients<float>&, const AttentionOptions&,
                                        View<const float, 3>);

}  // namespace headlight::reference
