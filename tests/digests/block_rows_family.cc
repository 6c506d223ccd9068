// Operations on the rows of today's transformer blocks: SiLU, RMS norm, gates, heads that are normalised and turned.
#include "digests/family.h"
#include "digests/rows_draws.h"
#include "headlight/activation.h"
#include "headlight/gate.h"
#include "headlight/head_rows.h"
#include "headlight/normalization.h"

namespace headlight::test {
namespace block_rows_family {

constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                       Activation::silu};
constexpr float kScales[] = {1.0f, 1.0f, 4.0f, 30.0f, 1e-3f};

void silu_of(DigestCase& c) {
  c.words << " silu";
  DigestRows rows(c);
  const View<float, 2> x = rows.filled(one_of(c.random, kScales));
  const View<float, 2> y = rows.beside_or(x);
  activate(c.engine, Activation::silu, x, y);
  c.digest.add(y);
}

RmsNormOptions draw_rms_norm(DigestRows& rows) {
  RmsNormOptions options;
  if (!rows.c.random.once_in(3)) options.weight = rows.vector();
  options.one_plus_weight = rows.c.random.once_in(2);
  if (rows.c.random.once_in(2)) options.epsilon = 1e-12f;
  return options;
}

void rms_norm_of(DigestCase& c) {
  c.words << " rms_norm";
  DigestRows rows(c);
  const View<float, 2> x = rows.filled(one_of(c.random, kScales));
  RmsNormOptions options = draw_rms_norm(rows);
  if (c.random.once_in(2)) options.added = rows.filled();
  const View<float, 2> y = rows.beside_or(x);
  rms_norm(c.engine, x, y, options);
  c.digest.add(y);
}

void gate_of(DigestCase& c) {
  const Activation activation = one_of(c.random, kActivations);
  c.words << " gate=" << static_cast<int>(activation);
  DigestRows rows(c);
  const View<float, 2> a = rows.filled(one_of(c.random, kScales));
  const View<float, 2> b = rows.filled();
  const View<float, 2> y = rows.beside_or(c.random.once_in(2) ? a : b);
  gate(c.engine, activation, a, b, y);
  c.digest.add(y);
}

// Rows of heads, contiguous or with gaps between the rows, and what is done to them.
struct Heads {
  explicit Heads(DigestCase& c_) : c(c_) {
    count = c.random.integer(0, 40);
    heads = c.random.integer(1, 20);
    constexpr std::int64_t kHeadDims[] = {1, 2, 6, 16, 31, 32, 64, 80, 128};
    head_dim = one_of(c.random, kHeadDims);
    constexpr NormKind kNorms[] = {NormKind::none, NormKind::rms, NormKind::rms, NormKind::layer};
    options.norm = one_of(c.random, kNorms);
    const auto length = static_cast<std::size_t>(head_dim);
    const auto vector = [&] {
      const View<float, 1> view(memory.floats(head_dim), {head_dim});
      fill(c.random, view);
      return std::span<const float>(view.data, length);
    };
    if (options.norm != NormKind::none && c.random.once_in(2)) options.weight = vector();
    if (options.norm == NormKind::layer && c.random.once_in(2)) options.bias = vector();
    options.one_plus_weight = options.norm == NormKind::rms && c.random.once_in(2);
    options.rotation.pairing = c.random.once_in(2) ? RotaryPairing::halves : RotaryPairing::interleaved;
    const std::int64_t dims = c.random.once_in(3) ? 2 * c.random.integer(0, head_dim / 2) : head_dim / 2 * 2;
    if (!c.random.once_in(4)) {
      const View<float, 2> angles = memory.rows(c.random, count, dims);
      fill(c.random, angles);
      options.rotation.cosines_and_sines = angles;
    }
    c.words << " rows=" << count << " heads=" << heads << " head_dim=" << head_dim << " dims=" << dims
            << " norm=" << static_cast<int>(options.norm);
  }
  View<float, 3> empty() {
    const View<float, 2> rows = memory.rows(c.random, count, heads * head_dim);
    return {rows.data, {count, heads, head_dim}, {rows.stride(0), head_dim, 1}};
  }
  View<float, 3> filled() {
    const View<float, 3> view = empty();
    fill(c.random, View<float, 2>(view.data, {count, heads * head_dim}, {view.stride(0), 1}),
         one_of(c.random, kScales));
    return view;
  }

  DigestCase& c;
  DigestMemory memory;
  std::int64_t count = 0, heads = 0, head_dim = 0;
  HeadRowsOptions options;
};

void head_rows_of(DigestCase& c) {
  c.words << " head_rows";
  Heads heads(c);
  const View<float, 3> x = heads.filled();
  const View<float, 3> y = c.random.once_in(4) ? x : heads.empty();
  head_rows(c.engine, x, y, heads.options);
  c.digest.add(y);
}

void silu_gradient_of(DigestCase& c) {
  c.words << " silu_backward";
  DigestRows rows(c);
  const View<float, 2> x = rows.filled(one_of(c.random, kScales)), y_gradient = rows.filled();
  const View<float, 2> x_gradient = rows.beside_or(c.random.once_in(2) ? x : y_gradient);
  activate_backward(c.engine, Activation::silu, x, y_gradient, x_gradient);
  c.digest.add(x_gradient);
}

void rms_norm_gradient_of(DigestCase& c) {
  c.words << " rms_norm_backward";
  DigestRows rows(c);
  const View<float, 2> x = rows.filled(one_of(c.random, kScales)), y_gradient = rows.filled();
  const RmsNormOptions options = draw_rms_norm(rows);
  RmsNormGradients gradients;
  if (c.random.once_in(2)) gradients.residual = rows.filled();
  View<float, 2> x_gradient;
  if (!c.random.once_in(5)) gradients.x = x_gradient = rows.beside_or(y_gradient);
  if (!c.random.once_in(5)) gradients.weight = rows.vector();
  rms_norm_backward(c.engine, x, y_gradient, gradients, options);
  c.digest.add(x_gradient);
  c.digest.add(std::span<const float>(gradients.weight));
}

void gate_gradient_of(DigestCase& c) {
  const Activation activation = one_of(c.random, kActivations);
  c.words << " gate_backward=" << static_cast<int>(activation);
  DigestRows rows(c);
  const View<float, 2> a = rows.filled(one_of(c.random, kScales)), b = rows.filled(), y_gradient = rows.filled();
  const View<float, 2> a_gradient = rows.beside_or(a), b_gradient = rows.beside_or(b);
  gate_backward(c.engine, activation, a, b, y_gradient, a_gradient, b_gradient);
  c.digest.add(a_gradient);
  c.digest.add(b_gradient);
}

void head_rows_gradient_of(DigestCase& c) {
  c.words << " head_rows_backward";
  Heads heads(c);
  const View<float, 3> x = heads.filled(), y_gradient = heads.filled();
  std::vector<float> weight(static_cast<std::size_t>(heads.head_dim)), bias(weight);
  const View<float, 3> x_gradient = c.random.once_in(4) ? y_gradient : heads.empty();
  HeadRowsGradients gradients = {.x = x_gradient};
  if (heads.options.norm != NormKind::none && !c.random.once_in(3)) gradients.weight = weight;
  if (heads.options.norm == NormKind::layer && !c.random.once_in(3)) gradients.bias = bias;
  head_rows_backward(c.engine, x, y_gradient, gradients, heads.options);
  c.digest.add(x_gradient);
  c.digest.add(std::span<const float>(weight));
  c.digest.add(std::span<const float>(bias));
}

}  // namespace block_rows_family

void digest_block_rows(DigestCase& c) {
  constexpr void (*kKinds[])(DigestCase&) = {block_rows_family::silu_of, block_rows_family::rms_norm_of,
                                             block_rows_family::gate_of, block_rows_family::head_rows_of};
  kKinds[c.number % 4](c);
}

void digest_block_row_gradients(DigestCase& c) {
  constexpr void (*kKinds[])(DigestCase&) = {
      block_rows_family::silu_gradient_of, block_rows_family::rms_norm_gradient_of, block_rows_family::gate_gradient_of,
      block_rows_family::head_rows_gradient_of};
  kKinds[c.number % 4](c);
}

}  // namespace headlight::test
