// Attention written out with its matrix of scores, forward and backward.
#include "baseline/attention_unfused.h"
#include "digests/attention_call.h"
#include "digests/family.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"

namespace headlight::test {

void digest_attention_unfused(DigestCase& c) {
  AttentionSize size = draw_attention_size(c.random, 3e6);
  AttentionChoice choice(c.random, size, AttentionChoice::Kind::all, c.words);
  AttentionOperands operands(c.random, size, c.words);
  DigestMemory& memory = operands.memory;
  const View<float, 4>::Shape out_shape = {size.batch, size.query_length, size.query_heads, size.value_dim};
  const View<float, 4> out = memory.heads(c.random, out_shape), out_gradient = memory.heads(c.random, out_shape);
  fill(c.random, out_gradient);
  Tensor<float, 3> log_sum_exp({size.batch, size.query_heads, size.query_length});
  if (c.random.once_in(2)) choice.options.log_sum_exp = log_sum_exp;
  // Backward takes those of all rows as they are; what else may be asked for is digest_attention()'s.
  Tensor<float, 4> probabilities({size.batch, size.query_heads, size.query_length, size.key_length});
  const bool kept = c.random.once_in(2);
  if (kept) choice.options.probabilities.per_head = probabilities;
  AttentionGradients gradients;
  gradients.query = memory.heads(c.random, operands.query.shape);
  gradients.key = memory.heads(c.random, operands.key.shape);
  gradients.value = memory.heads(c.random, operands.value.shape);
  if (choice.options.bias) gradients.bias = memory.heads(c.random, choice.options.bias.shape);
  c.words << (kept ? " kept" : "") << size;

  baseline::attention_unfused(c.engine, operands.query, operands.key, operands.value, out, choice.options);
  c.digest.add(out);
  c.digest.add(log_sum_exp);
  c.digest.add(probabilities);
  baseline::attention_unfused_backward(c.engine, operands.query, operands.key, operands.value, out_gradient, gradients,
                                       choice.options);
  c.digest.add(gradients.query);
  c.digest.add(gradients.key);
  c.digest.add(gradients.value);
  c.digest.add(gradients.bias);
}

}  // namespace headlight::test
