// The operands of attention in one struct, for tests that change them one by one.
#pragma once

#include "ops/attention/operands.h"
#include "ops/attention_backward/operands.h"

namespace headlight::test {

inline void attend(Engine& engine, const ops::AttentionOperands& of, AttentionOptions options = {}) {
  options.key_scales = of.key_scales;
  options.value_scales = of.value_scales;
  attention(engine, of.query, of.key, of.value, of.out, options);
}

inline void attend_backward(Engine& engine, const ops::AttentionBackwardOperands& of,
                            const TypedAttentionGradients& gradients, AttentionOptions options = {}) {
  options.log_sum_exp_gradient = of.log_sum_exp_gradient;
  attention_backward(engine, of.query, of.key, of.value, of.out, of.log_sum_exp, of.out_gradient, gradients, options);
}

}  // namespace headlight::test
