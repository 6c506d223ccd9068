#include <cfloat>
#include <limits>
#include <string>
#include <vector>

#include "headlight/attention_backward.h"
#include "headlight/attention_merge.h"
#include "headlight/attention_stream.h"
#include "soak/harsh_calls.h"
#include "support/attention_case.h"
#include "support/quick.h"
#include "support/stored.h"
#include "support/typed_operands.h"

namespace headlight::soak {
namespace {

using test::AttentionCase;
using test::AttentionInputs;
using test::Random;
using test::Stored;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Biases that hide keys the way frameworks do, and whole rows of them.
void make_harsh(AttentionCase& c, AttentionInputs& in) {
  Random random(c.seed + 0xB1A5);
  constexpr float kHiding[] = {-FLT_MAX, -3.4e38f, -kInfinity, -1e30f, 1e30f};
  for (std::int64_t n = 0; n < in.bias.size(); ++n) {
    const std::int64_t row = n / in.bias.shape()[3];
    if (row % 3 == 1) in.bias.data()[n] = kHiding[row / 3 % 4];
    if (row % 3 == 2 && random.once_in(3)) in.bias.data()[n] = kHiding[random.integer(0, 4)];
  }
  for (std::size_t h = 0; h < in.sinks.size(); ++h) {
    if (h % 2 == 1) in.sinks[h] = h % 4 == 1 ? -kInfinity : -FLT_MAX;
  }
}

struct HarshCase {
  explicit HarshCase(std::uint64_t seed, std::int64_t longest = 150)
      : HarshCase(test::random_attention_case(seed, longest)) {}
  explicit HarshCase(const AttentionCase& made) : c(made), in(c) { make_harsh(c, in); }
  AttentionCase c;
  AttentionInputs in;
};

AttentionCase with_types(AttentionCase c, std::uint64_t seed) {
  Random random(seed);
  const auto type = [&] { return test::kStoredTypes[static_cast<std::size_t>(random.integer(0, 2))]; };
  const NumberType all = type();
  for (NumberType& one : c.types) one = seed % 2 == 0 ? all : type();
  return c;
}

const std::uint64_t kCases = test::count<std::uint64_t>(150, 50);

}  // namespace

void visit_attention(const Visit& visit) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    HarshCase harsh(seed);
    const AttentionCase& c = harsh.c;
    Tensor<float, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
    Tensor<float, 3> log_sum_exp({c.batch, c.query_heads, c.query_length});
    Tensor<float, 4> probabilities({c.batch, c.query_heads, c.query_length, c.key_length}),
        scores(probabilities.shape());
    AttentionOptions& options = harsh.in.options;
    if (seed % 2 == 0) options.log_sum_exp = log_sum_exp;
    if (seed % 5 == 0) options.probabilities.per_head = probabilities;
    if (seed % 7 == 0) options.scores = scores;
    visit(c.line(),
          [&](Engine& engine) { attention(engine, harsh.in.query, harsh.in.key, harsh.in.value, out, options); });
  }
}

void visit_attention_of_several_blocks(const Visit& visit) {
  const auto block = [](std::int64_t head_dim, std::int64_t value_dim) {
    return head_dim + value_dim > 192 ? std::int64_t{256} : std::int64_t{512};
  };
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    HarshCase harsh(test::random_case_of_several_blocks(seed, block));
    const AttentionCase& c = harsh.c;
    Tensor<float, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
    Tensor<float, 3> log_sum_exp({c.batch, c.query_heads, c.query_length});
    harsh.in.options.log_sum_exp = log_sum_exp;
    visit(c.line(), [&](Engine& engine) {
      attention(engine, harsh.in.query, harsh.in.key, harsh.in.value, out, harsh.in.options);
    });
  }
}

// Scores far beyond their cap, as large as floats are; some caps and scales have no short polynomial.
void visit_attention_of_capped_scores(const Visit& visit) {
  for (const std::int64_t keys : {1, 7, 40, 600}) {
    for (const float cap : {30.0f, 1e-6f, 1e6f}) {
      for (float largest = 10.0f; largest < 1e38f; largest *= 1e3f) {
        Tensor<float, 4> query({1, 5, 1, 1}), key({1, keys, 1, 1}), value({1, keys, 1, 3}), out({1, 5, 1, 3});
        Tensor<float, 4> query_gradient(query.shape()), key_gradient(key.shape()), value_gradient(value.shape());
        Tensor<float, 3> log_sum_exp({1, 1, 5});
        for (std::int64_t i = 0; i < 5; ++i) query(0, i, 0, 0) = i % 2 == 0 ? largest : -largest;
        for (std::int64_t j = 0; j < keys; ++j) key(0, j, 0, 0) = j % 5 == 3 ? 1e-3f : 1.0f;
        const AttentionOptions options{.scale = 1.0f, .softcap = cap, .log_sum_exp = log_sum_exp};
        AttentionOptions backward = options;
        backward.log_sum_exp = {};
        const std::string name = std::to_string(keys) + " keys, cap " + std::to_string(cap) + ", products of ";
        visit(name + std::to_string(largest), [&](Engine& engine) {
          attention(engine, query, key, value, out, options);
          attention_backward(engine, query, key, value, out, log_sum_exp, out,
                             {.query = query_gradient, .key = key_gradient, .value = value_gradient}, backward);
        });
      }
    }
  }
}

// A scale takes products near the largest float beyond it, and others far into those that are large.
void visit_attention_of_large_scales(const Visit& visit) {
  for (const std::int64_t keys : {1, 7, 40, 600}) {
    for (const float scale : {8.0f, 1e10f, -8.0f, FLT_MAX, 1e-27f}) {
      for (const float largest : {1.0f, 1e29f, 3e38f}) {
        Tensor<float, 4> query({1, 5, 1, 2}), key({1, keys, 1, 2}), value({1, keys, 1, 3}), out({1, 5, 1, 3});
        Tensor<float, 3> log_sum_exp({1, 1, 5});
        Tensor<float, 4> probabilities({1, 1, 5, keys});
        for (std::int64_t i = 0; i < 5; ++i) query(0, i, 0, 0) = i % 2 == 0 ? largest : -largest;
        for (std::int64_t j = 0; j < keys; ++j) key(0, j, 0, 0) = j % 5 == 3 ? 1e-3f : 1.0f;
        // Some rows do not see the key of their greatest score.
        const AttentionOptions backward{.causal = largest == 1e29f ? Causal::none : Causal::top_left, .scale = scale};
        AttentionOptions options = backward;
        options.log_sum_exp = log_sum_exp;
        if (keys % 2 == 1) options.probabilities.per_head = probabilities;
        const std::string name = std::to_string(keys) + " keys, scale " + std::to_string(scale) + ", products of ";
        for (const NumberType type : {NumberType::float32, NumberType::bfloat16}) {
          Stored q(type, query), k(type, key), v(type, value), o(type, out.shape());
          Stored query_gradient(type, query.shape()), key_gradient(type, key.shape());
          Stored value_gradient(type, value.shape());
          visit(name + std::to_string(largest), [&](Engine& engine) {
            attention(engine, q.view(), k.view(), v.view(), o.view(), options);
            attention_backward(
                engine, q.view(), k.view(), v.view(), o.view(), log_sum_exp, o.view(),
                {.query = query_gradient.view(), .key = key_gradient.view(), .value = value_gradient.view()}, backward);
          });
        }
      }
    }
  }
}

void visit_attention_over_stored_types(const Visit& visit) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    HarshCase harsh(with_types(test::random_attention_case(seed, 150), seed));
    const AttentionCase& c = harsh.c;
    test::TypedOperands operands(c, harsh.in);
    Stored out(c.types[3], View<float, 4>::Shape{c.batch, c.query_length, c.query_heads, c.value_dim});
    visit(c.line(), [&](Engine& engine) {
      attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(),
                harsh.in.options);
    });
  }
}

void visit_attention_over_int8(const Visit& visit) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    HarshCase harsh(seed);
    const AttentionCase& c = harsh.c;
    Tensor<std::int8_t, 4> key(harsh.in.key.shape()), value(harsh.in.value.shape());
    Tensor<float, 3> key_scales({c.batch, c.key_length, c.key_value_heads}), value_scales(key_scales.shape());
    Tensor<float, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
    visit(c.line(), [&](Engine& engine) {
      quantize_rows(engine, harsh.in.key, key, key_scales);
      quantize_rows(engine, harsh.in.value, value, value_scales);
      AttentionOptions options = harsh.in.options;
      options.key_scales = key_scales;
      options.value_scales = value_scales;
      attention(engine, harsh.in.query, key, value, out, options);
    });
  }
}

void visit_attention_backward(const Visit& visit) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    HarshCase harsh(seed, 100);
    const AttentionCase& c = harsh.c;
    const AttentionInputs& in = harsh.in;
    Tensor<float, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
    Tensor<float, 4> query(in.query.shape()), key(in.key.shape()), value(in.value.shape()), bias(in.bias.shape());
    Tensor<float, 1> sinks({static_cast<std::int64_t>(in.sinks.size())});
    Tensor<float, 3> log_sum_exp({c.batch, c.query_heads, c.query_length});
    const Tensor<float, 4> out_gradient = Random(seed).normal_tensor<4>(out.shape());
    harsh.in.options.log_sum_exp = log_sum_exp;
    AttentionGradients gradients{query, key, value};
    if (bias.size() != 0) gradients.bias = bias;
    if (sinks.size() != 0) gradients.sinks = sinks;
    visit(c.line(), [&](Engine& engine) {
      attention(engine, in.query, in.key, in.value, out, in.options);
      attention_backward(engine, in.query, in.key, in.value, out, log_sum_exp, out_gradient, gradients, in.options);
    });
  }
}

void visit_attention_backward_over_stored_types(const Visit& visit) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    HarshCase harsh(with_types(test::random_attention_case(seed, 100), seed));
    const AttentionCase& c = harsh.c;
    const AttentionInputs& in = harsh.in;
    test::TypedOperands operands(c, in);
    const NumberType type = c.types[0];
    const View<float, 4>::Shape shape = {c.batch, c.query_length, c.query_heads, c.value_dim};
    Stored out(c.types[3], shape), out_gradient(type, Random(seed).normal_tensor<4>(shape));
    Stored query(type, in.query.shape()), key(type, in.key.shape()), value(type, in.value.shape());
    Tensor<float, 3> log_sum_exp({c.batch, c.query_heads, c.query_length});
    harsh.in.options.log_sum_exp = log_sum_exp;
    visit(c.line(), [&](Engine& engine) {
      attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(), in.options);
      attention_backward(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(),
                         log_sum_exp, out_gradient.view(),
                         {.query = query.view(), .key = key.view(), .value = value.view()}, in.options);
    });
  }
}

void visit_attention_stream(const Visit& visit) {
  for (const std::int64_t piece : {1, 100, 700}) {
    Random random(7);
    const auto query = random.normal_tensor<4>({1, 9, 2, 24});
    const auto key = random.normal_tensor<4>({1, 700, 2, 24});
    Tensor<float, 4> out(query.shape());
    Tensor<float, 3> log_sum_exp({1, 2, 9});
    // Rows before the first key see nothing.
    const AttentionOptions options{.causal = Causal::top_left, .key_start = 5};
    visit("pieces of " + std::to_string(piece), [&](Engine& engine) {
      headlight::AttentionStream stream(engine, query, 2, 24, options);
      for (std::int64_t from = 0; from < 700; from += piece) {
        const View<const float, 4> part(key.data() + from * 2 * 24, {1, piece, 2, 24}, key.view().strides);
        stream.append(part, part);
      }
      stream.finish(out, log_sum_exp);
    });
  }
}

void visit_merge_attention(const Visit& visit) {
  for (const std::int64_t columns : {1, 7, 16, 33}) {
    Random random(3);
    std::vector<Tensor<float, 4>> outs;
    std::vector<Tensor<float, 3>> sums;
    for (int p = 0; p < 3; ++p) {
      outs.push_back(random.normal_tensor<4>({1, 4, 2, columns}));
      sums.push_back(random.normal_tensor<3>({1, 2, 4}, 30.0f));
      sums.back()(0, 0, 0) = -kInfinity;
      sums.back()(0, 0, 1) = p == 1 ? 1.0f : -kInfinity;
      sums.back()(0, 0, 2) = p == 1 ? -FLT_MAX : 1.0f;
      sums.back()(0, 0, 3) = p == 1 ? -FLT_MAX : FLT_MAX;
    }
    std::vector<AttentionPart> parts;
    for (int p = 0; p < 3; ++p) parts.push_back({outs[static_cast<std::size_t>(p)], sums[static_cast<std::size_t>(p)]});
    Tensor<float, 4> out(outs[0].shape());
    Tensor<float, 3> log_sum_exp(sums[0].shape());
    visit("merge of " + std::to_string(columns),
          [&](Engine& engine) { merge_attention(engine, parts, out, log_sum_exp); });
  }
}

}  // namespace headlight::soak
