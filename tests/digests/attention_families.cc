// Attention forward, over keys that come in pieces, and backward.
#include <algorithm>

#include "digests/attention_call.h"
#include "digests/family.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/attention_stream.h"

namespace headlight::test {

void digest_attention(DigestCase& c) {
  AttentionSize size = draw_attention_size(c.random, 24e6);
  AttentionChoice choice(c.random, size, AttentionChoice::Kind::all, c.words);
  AttentionOperands operands(c.random, size, c.words);
  const View<float, 4> out =
      operands.memory.heads(c.random, {size.batch, size.query_length, size.query_heads, size.value_dim});
  Tensor<float, 3> log_sum_exp({size.batch, size.query_heads, size.query_length});
  if (c.random.once_in(2)) choice.options.log_sum_exp = log_sum_exp;
  if (c.random.once_in(4)) choice.ask_for_probabilities(c.random, size, c.words);
  c.words << size;

  attention(c.engine, operands.query, operands.key, operands.value, out, choice.options);
  c.digest.add(out);
  c.digest.add(choice.options.log_sum_exp);
  c.digest.add(choice.options.probabilities.per_head);
  c.digest.add(choice.options.probabilities.averaged);
}

void digest_attention_stream(DigestCase& c) {
  AttentionSize size = draw_attention_size(c.random, 8e6);
  AttentionChoice choice(c.random, size, AttentionChoice::Kind::of_streams, c.words);
  AttentionOperands operands(c.random, size, c.words);
  c.words << size << " pieces:";

  const auto part = [](View<const float, 4> view, std::int64_t first, std::int64_t count) {
    view.data += first * view.stride(1);
    view.shape[1] = count;
    return view;
  };
  AttentionStream stream(c.engine, operands.query, size.key_value_heads, size.value_dim, choice.options);
  for (std::int64_t first = 0; first < size.key_length;) {
    const std::int64_t most = std::min<std::int64_t>(size.key_length - first, c.random.once_in(2) ? 900 : 60);
    const std::int64_t count = c.random.integer(0, most);
    stream.append(part(operands.key, first, count), part(operands.value, first, count));
    first += count;
    c.words << " " << count;
  }
  const View<float, 4> out =
      operands.memory.heads(c.random, {size.batch, size.query_length, size.query_heads, size.value_dim});
  Tensor<float, 3> log_sum_exp({size.batch, size.query_heads, size.query_length});
  stream.finish(out, log_sum_exp);
  c.digest.add(out);
  c.digest.add(log_sum_exp);
}

void digest_attention_backward(DigestCase& c) {
  AttentionSize size = draw_attention_size(c.random, 10e6);
  AttentionChoice choice(c.random, size, AttentionChoice::Kind::all, c.words);
  AttentionOperands operands(c.random, size, c.words);
  DigestMemory& memory = operands.memory;
  const View<float, 4>::Shape out_shape = {size.batch, size.query_length, size.query_heads, size.value_dim};
  View<float, 4> out = memory.heads(c.random, out_shape), out_gradient = memory.heads(c.random, out_shape);
  fill(c.random, out_gradient);
  Tensor<float, 3> log_sum_exp({size.batch, size.query_heads, size.query_length});
  choice.options.log_sum_exp = log_sum_exp;
  attention(c.engine, operands.query, operands.key, operands.value, out, choice.options);

  AttentionGradients gradients;
  gradients.accumulate = c.random.once_in(4);
  const auto place = [&](View<float, 4>& gradient, const View<float, 4>::Shape& shape) {
    if (c.random.once_in(8)) return;
    gradient = memory.heads(c.random, shape);
    if (gradients.accumulate) fill(c.random, gradient);
  };
  place(gradients.query, operands.query.shape);
  place(gradients.key, operands.key.shape);
  place(gradients.value, operands.value.shape);
  if (choice.options.bias) place(gradients.bias, choice.options.bias.shape);
  const bool over_out = !gradients.accumulate && size.head_dim == size.value_dim && c.random.once_in(4);
  if (over_out) gradients.query = out;
  c.words << " gradients=" << (gradients.query ? "q" : "") << (gradients.key ? "k" : "") << (gradients.value ? "v" : "")
          << (gradients.bias ? "b" : "") << (gradients.accumulate ? " accumulate" : "") << (over_out ? " over out" : "")
          << size;

  c.digest.add(log_sum_exp);
  attention_backward(c.engine, operands.query, operands.key, operands.value, out, log_sum_exp, out_gradient, gradients,
                     choice.options);
  c.digest.add(gradients.query);
  c.digest.add(gradients.key);
  c.digest.add(gradients.value);
  c.digest.add(gradients.bias);
}

}  // namespace headlight::test
