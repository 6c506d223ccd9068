// A host that traps floating-point exceptions is not killed by calls whose numbers are finite, or −∞ where that means
// "not this key": rows that see nothing, biases of −FLT_MAX, scratch memory that holds anything.
#include <gtest/gtest.h>

#include <cfenv>
#include <cfloat>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "headlight/attention_backward.h"
#include "headlight/attention_merge.h"
#include "headlight/attention_stream.h"
#include "headlight/gemm.h"
#include "headlight/layers.h"
#include "headlight/loss.h"
#include "headlight/normalization.h"
#include "headlight/optimizer.h"
#include "runtime/parallel.h"
#include "support/attention_case.h"
#include "support/isas.h"
#include "support/stored.h"
#include "support/typed_operands.h"

namespace headlight::soak::trapping_host_test {

using test::AttentionCase;
using test::AttentionInputs;
using test::Random;
using test::Stored;

constexpr int kTrapped = FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kMemory = std::size_t{4} << 20;

// What a call before may have left: NaN that signals when it is read, and numbers whose sum overflows.
void spoil(void* memory, std::size_t bytes) {
  const float largest = FLT_MAX;
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    const std::uint32_t signalling = 0x7FA00000u;
    std::memcpy(static_cast<std::byte*>(memory) + at, &signalling, 4);
    std::memcpy(static_cast<std::byte*>(memory) + at + 4, &largest, 4);
  }
}
[[gnu::noinline]] void spoil_stack() {
  alignas(64) std::byte memory[48 << 10];
  spoil(memory, sizeof memory);
  asm volatile("" : : "r"(memory) : "memory");
}

std::string names_of(int exceptions) {
  std::string names;
  if (exceptions & FE_DIVBYZERO) names += " division by zero";
  if (exceptions & FE_OVERFLOW) names += " overflow";
  if (exceptions & FE_INVALID) names += " invalid operation";
  return names;
}

class TrappingHost : public test::EachIsaAndFeature {
 protected:
  // Flags of one thread say which exception it was. What raises none runs again on two threads, with traps.
  void expect_quiet(const std::string& name, const std::function<void(Engine&)>& call) {
    {
      const runtime::Scratch memory(engine_, kMemory, "test");
      spoil(memory.data(), kMemory);
    }
    spoil_stack();
    std::feclearexcept(FE_ALL_EXCEPT);
    call(engine_);
    const int raised = std::fetestexcept(kTrapped);
    EXPECT_EQ(raised, 0) << name << ":" << names_of(raised);
#if defined(__GLIBC__)
    if (raised != 0) return;  // the next line would end the test
    ::feenableexcept(kTrapped);
    call(workers_);
    ::fedisableexcept(kTrapped);
#endif
  }

 private:
  Engine engine_{options()}, workers_{options(2)};
};

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

constexpr std::uint64_t kCases = 150;

TEST_P(TrappingHost, Attention) {
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
    expect_quiet(c.line(), [&](Engine& engine) {
      attention(engine, harsh.in.query, harsh.in.key, harsh.in.value, out, options);
    });
  }
}

TEST_P(TrappingHost, AttentionOfSeveralBlocks) {
  const auto block = [](std::int64_t head_dim, std::int64_t value_dim) {
    return head_dim + value_dim > 192 ? std::int64_t{256} : std::int64_t{512};
  };
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    HarshCase harsh(test::random_case_of_several_blocks(seed, block));
    const AttentionCase& c = harsh.c;
    Tensor<float, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
    Tensor<float, 3> log_sum_exp({c.batch, c.query_heads, c.query_length});
    harsh.in.options.log_sum_exp = log_sum_exp;
    expect_quiet(c.line(), [&](Engine& engine) {
      attention(engine, harsh.in.query, harsh.in.key, harsh.in.value, out, harsh.in.options);
    });
  }
}

TEST_P(TrappingHost, AttentionOverStoredTypes) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    HarshCase harsh(with_types(test::random_attention_case(seed, 150), seed));
    const AttentionCase& c = harsh.c;
    test::TypedOperands operands(c, harsh.in);
    Stored out(c.types[3], View<float, 4>::Shape{c.batch, c.query_length, c.query_heads, c.value_dim});
    expect_quiet(c.line(), [&](Engine& engine) {
      attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(),
                harsh.in.options);
    });
  }
}

TEST_P(TrappingHost, AttentionOverInt8) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    HarshCase harsh(seed);
    const AttentionCase& c = harsh.c;
    Tensor<std::int8_t, 4> key(harsh.in.key.shape()), value(harsh.in.value.shape());
    Tensor<float, 3> key_scales({c.batch, c.key_length, c.key_value_heads}), value_scales(key_scales.shape());
    Tensor<float, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
    expect_quiet(c.line(), [&](Engine& engine) {
      quantize_rows(engine, harsh.in.key, key, key_scales);
      quantize_rows(engine, harsh.in.value, value, value_scales);
      AttentionOptions options = harsh.in.options;
      options.key_scales = key_scales;
      options.value_scales = value_scales;
      attention(engine, harsh.in.query, key, value, out, options);
    });
  }
}

// The one case that the engine's header leaves open: sinks of −FLT_MAX beside a mask and a negative scale.
bool may_be_invalid(const AttentionCase& c, const AttentionOptions& options) {
  return options.mask && c.sinks && c.scale && *c.scale < 0;
}

TEST_P(TrappingHost, AttentionBackward) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    HarshCase harsh(seed, 100);
    const AttentionCase& c = harsh.c;
    const AttentionInputs& in = harsh.in;
    if (may_be_invalid(c, in.options)) continue;
    Tensor<float, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
    Tensor<float, 4> query(in.query.shape()), key(in.key.shape()), value(in.value.shape()), bias(in.bias.shape());
    Tensor<float, 1> sinks({static_cast<std::int64_t>(in.sinks.size())});
    Tensor<float, 3> log_sum_exp({c.batch, c.query_heads, c.query_length});
    const Tensor<float, 4> out_gradient = Random(seed).normal_tensor<4>(out.shape());
    harsh.in.options.log_sum_exp = log_sum_exp;
    AttentionGradients gradients{query, key, value};
    if (bias.size() != 0) gradients.bias = bias;
    if (sinks.size() != 0) gradients.sinks = sinks;
    expect_quiet(c.line(), [&](Engine& engine) {
      attention(engine, in.query, in.key, in.value, out, in.options);
      attention_backward(engine, in.query, in.key, in.value, out, log_sum_exp, out_gradient, gradients, in.options);
    });
  }
}

TEST_P(TrappingHost, AttentionBackwardOverStoredTypes) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    HarshCase harsh(with_types(test::random_attention_case(seed, 100), seed));
    const AttentionCase& c = harsh.c;
    const AttentionInputs& in = harsh.in;
    if (may_be_invalid(c, in.options)) continue;
    test::TypedOperands operands(c, in);
    const NumberType type = c.types[0];
    const View<float, 4>::Shape shape = {c.batch, c.query_length, c.query_heads, c.value_dim};
    Stored out(c.types[3], shape), out_gradient(type, Random(seed).normal_tensor<4>(shape));
    Stored query(type, in.query.shape()), key(type, in.key.shape()), value(type, in.value.shape());
    Tensor<float, 3> log_sum_exp({c.batch, c.query_heads, c.query_length});
    harsh.in.options.log_sum_exp = log_sum_exp;
    expect_quiet(c.line(), [&](Engine& engine) {
      attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(), in.options);
      attention_backward(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(),
                         log_sum_exp, out_gradient.view(),
                         {.query = query.view(), .key = key.view(), .value = value.view()}, in.options);
    });
  }
}

TEST_P(TrappingHost, AttentionStream) {
  for (const std::int64_t piece : {1, 100, 700}) {
    Random random(7);
    const auto query = random.normal_tensor<4>({1, 9, 2, 24});
    const auto key = random.normal_tensor<4>({1, 700, 2, 24});
    Tensor<float, 4> out(query.shape());
    Tensor<float, 3> log_sum_exp({1, 2, 9});
    // Rows before the first key see nothing.
    const AttentionOptions options{.causal = Causal::top_left, .key_start = 5};
    expect_quiet("pieces of " + std::to_string(piece), [&](Engine& engine) {
      headlight::AttentionStream stream(engine, query, 2, 24, options);
      for (std::int64_t from = 0; from < 700; from += piece) {
        const View<const float, 4> part(key.data() + from * 2 * 24, {1, piece, 2, 24}, key.view().strides);
        stream.append(part, part);
      }
      stream.finish(out, log_sum_exp);
    });
  }
}

TEST_P(TrappingHost, MergeAttention) {
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
    expect_quiet("merge of " + std::to_string(columns),
                 [&](Engine& engine) { merge_attention(engine, parts, out, log_sum_exp); });
  }
}

constexpr std::int64_t kColumns[] = {1, 5, 16, 37, 128, 300};

TEST_P(TrappingHost, Rows) {
  for (const std::int64_t columns : kColumns) {
    Random random(static_cast<std::uint64_t>(columns));
    auto x = random.normal_tensor<2>({9, columns}, 3.0f);
    const auto y_gradient = random.normal_tensor<2>({9, columns});
    for (std::int64_t j = 0; j < columns; ++j) {
      x(1, j) = -kInfinity;
      x(2, j) = j % 2 == 0 ? -FLT_MAX : 0.0f;
      x(3, j) = j % 3 == 0 ? -kInfinity : -FLT_MAX;
      x(4, j) = 1.0f;
      x(5, j) = j % 2 == 0 ? 1e38f : -1e38f;
      x(6, j) = 0.0f;
      x(7, j) *= 100.0f;
    }
    x(3, columns - 1) = -FLT_MAX;  // a label's
    Tensor<float, 2> y(x.shape()), x_gradient(x.shape());
    const std::string name = std::to_string(columns) + " columns";
    expect_quiet("softmax of " + name, [&](Engine& engine) { softmax(engine, x, y); });
    expect_quiet("softmax_backward of " + name,
                 [&](Engine& engine) { softmax_backward(engine, y, y_gradient, x_gradient); });
    for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh}) {
      expect_quiet("activate " + std::to_string(static_cast<int>(activation)) + " of " + name,
                   [&](Engine& engine) { activate(engine, activation, x, y); });
      const View<const float, 2> finite(x.data() + 4 * columns, {5, columns}), upper(y_gradient.data(), {5, columns});
      const View<float, 2> lower(x_gradient.data(), {5, columns});
      expect_quiet("activate_backward " + std::to_string(static_cast<int>(activation)) + " of " + name,
                   [&](Engine& engine) { activate_backward(engine, activation, finite, upper, lower); });
    }
    const std::vector<std::int64_t> labels(9, columns - 1);
    expect_quiet("cross_entropy of " + name, [&](Engine& engine) {
      const View<const float, 2> logits(x.data() + 2 * columns, {3, columns});
      const std::vector<std::int64_t> some = {0, columns - 1, -100};
      Tensor<float, 2> gradient({3, columns});
      (void)cross_entropy(engine, logits, some, {.logits_gradient = gradient});
      (void)cross_entropy(engine, logits, std::vector<std::int64_t>(3, -100), {.logits_gradient = gradient});
    });
    // No numbers whose sum overflows.
    for (std::int64_t j = 0; j < columns; ++j) x(1, j) = x(2, j) = x(3, j) = x(5, j) = 2.0f;
    std::vector<float> weight(static_cast<std::size_t>(columns), 1.5f), sums(weight), more_sums(weight);
    expect_quiet("layer_norm of " + name, [&](Engine& engine) {
      layer_norm(engine, x, y, {.weight = weight, .bias = weight, .epsilon = 1e-12f});
      layer_norm_backward(engine, x, y_gradient, {.x = x_gradient, .weight = sums, .bias = more_sums},
                          {.epsilon = 1e-12f});
    });
    const std::vector<std::int64_t> offsets = {0, 3, 3, 9};
    Tensor<float, 2> pooled({3, columns});
    expect_quiet("mean_pool of " + name, [&](Engine& engine) {
      mean_pool(engine, x, offsets, pooled, true);
      mean_pool_backward(engine, x, offsets, pooled, x_gradient, true);
    });
    expect_quiet("dropout of " + name, [&](Engine& engine) { dropout(engine, x, y, {.probability = 0.5f}, x); });
    const std::vector<std::int64_t> ids = {0, 8, 0};
    const Embedding table{x, ids};
    const EmbeddingGradient table_gradient{x_gradient, ids};
    expect_quiet("embed of " + name, [&](Engine& engine) {
      embed(engine, {&table, 1}, pooled);
      embed_backward(engine, pooled, {&table_gradient, 1});
      bias_backward(engine, x, sums);
    });
  }
}

TEST_P(TrappingHost, StoredRows) {
  for (const std::int64_t columns : kColumns) {
    Random random(static_cast<std::uint64_t>(columns));
    Tensor<Float16, 2> x({5, columns});
    Tensor<BFloat16, 2> y(x.shape());
    for (Float16& element : x) element = Float16(random.normal());
    for (std::int64_t j = 0; j < columns; ++j) {
      x(1, j) = Float16(-kInfinity);
      x(2, j) = Float16(j % 2 == 0 ? -65504.0f : 1.0f);
      x(3, j) = Float16(0.0f);
    }
    expect_quiet("rows of " + std::to_string(columns) + " stored columns", [&](Engine& engine) {
      softmax(engine, x, y);
      activate(engine, Activation::gelu_tanh, x, y);
      const TypedView<2> finite = View<const Float16, 2>(x.data() + 2 * columns, {3, columns});
      const MutableTypedView<2> normal = View<BFloat16, 2>(y.data(), {3, columns});
      layer_norm(engine, finite, normal);
    });
  }
}

TEST_P(TrappingHost, Products) {
  for (const NumberType type : kNumberTypes) {
    for (const std::int64_t rows : {1, 2, 3, 7, 13, 40}) {
      for (const std::int64_t columns : {1, 5, 33, 130}) {
        for (const std::int64_t depth : {1, 3, 32, 77}) {
          Random random(static_cast<std::uint64_t>(rows * columns * depth));
          auto a = random.normal_tensor<2>({rows, depth});
          auto b = random.normal_tensor<2>({depth, columns});
          for (std::int64_t k = 0; k < depth; ++k) a(rows - 1, k) = b(k, columns - 1) = 0.0f;
          // What beta = 0 does not read.
          Tensor<float, 2> c({rows, columns});
          for (float& element : c) element = std::numeric_limits<float>::signaling_NaN();
          std::vector<float> bias(static_cast<std::size_t>(columns), -20.0f);
          const std::string name = std::string(headlight::name(type)) + " " + std::to_string(rows) + " x " +
                                   std::to_string(columns) + " x " + std::to_string(depth);
          for (const Activation activation : {Activation::none, Activation::gelu, Activation::gelu_tanh}) {
            expect_quiet(name, [&](Engine& engine) {
              const PackedMatrix packed(engine, b, Transpose::no, type);
              gemm(engine, a, packed, c, {.bias = bias, .activation = activation});
              if (type == NumberType::float32) gemm(engine, a, b, c, {.alpha = 0.5f, .beta = 0.0f});
            });
          }
        }
      }
    }
  }
}

TEST_P(TrappingHost, LayersAndTheirTraining) {
  for (const Merge merge : {Merge::concatenate, Merge::gated_by_head}) {
    const TransformerLayerOptions made = {.width = 24, .heads = 3, .feed_forward_width = 40, .merge = merge};
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8}) {
      TransformerEncoderLayer layer(made);
      layer.initialize(1);
      layer.set_precision(type);
      Random random(5);
      const auto x = random.normal_tensor<3>({3, 13, 24});
      Tensor<float, 3> y(x.shape());
      const std::vector<std::int64_t> lengths = {0, 13, 1};
      expect_quiet("forward in " + std::string(name(type)),
                   [&](Engine& engine) { layer.forward(engine, x, y, {.key_lengths = lengths}); });
    }
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16}) {
      TransformerEncoderLayer layer(made);
      layer.initialize(1);
      layer.set_training(true);
      Random random(5);
      const auto x = random.normal_tensor<3>({3, 13, 24});
      Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
      AdamW optimizer(layer.parameters());
      const std::vector<std::int64_t> lengths = {0, 13, 1};
      expect_quiet("a step in " + std::string(name(type)), [&](Engine& engine) {
        SavedState saved(type);
        layer.forward(engine, x, y, saved, {.seed = 6, .step = 7}, {.key_lengths = lengths});
        layer.backward(engine, x, saved, y, x_gradient);
        (void)optimizer.step(engine, {.max_norm = 1.0});
      });
    }
  }
}

HEADLIGHT_ON_EVERY_FEATURE(TrappingHost);

}  // namespace headlight::soak::trapping_host_test
