#include <cfloat>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "headlight/gate.h"
#include "headlight/gemm.h"
#include "headlight/head_rows.h"
#include "headlight/layers.h"
#include "headlight/loss.h"
#include "headlight/normalization.h"
#include "headlight/optimizer.h"
#include "soak/harsh_calls.h"
#include "support/random.h"

namespace headlight::soak {
namespace {

using test::Random;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kColumns[] = {1, 5, 16, 37, 128, 300};

}  // namespace

void visit_rows(const Visit& visit) {
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
    visit("softmax of " + name, [&](Engine& engine) { softmax(engine, x, y); });
    visit("softmax_backward of " + name, [&](Engine& engine) { softmax_backward(engine, y, y_gradient, x_gradient); });
    for (const Activation activation :
         {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
      visit("activate " + std::to_string(static_cast<int>(activation)) + " of " + name,
            [&](Engine& engine) { activate(engine, activation, x, y); });
      const View<const float, 2> finite(x.data() + 4 * columns, {5, columns}), upper(y_gradient.data(), {5, columns});
      const View<float, 2> lower(x_gradient.data(), {5, columns});
      visit("activate_backward " + std::to_string(static_cast<int>(activation)) + " of " + name,
            [&](Engine& engine) { activate_backward(engine, activation, finite, upper, lower); });
    }
    const std::vector<std::int64_t> labels(9, columns - 1);
    visit("cross_entropy of " + name, [&](Engine& engine) {
      const View<const float, 2> logits(x.data() + 2 * columns, {3, columns});
      const std::vector<std::int64_t> some = {0, columns - 1, -100};
      Tensor<float, 2> gradient({3, columns});
      (void)cross_entropy(engine, logits, some, {.logits_gradient = gradient});
      (void)cross_entropy(engine, logits, std::vector<std::int64_t>(3, -100), {.logits_gradient = gradient});
    });
    // No numbers whose sum overflows.
    for (std::int64_t j = 0; j < columns; ++j) x(1, j) = x(2, j) = x(3, j) = x(5, j) = 2.0f;
    std::vector<float> weight(static_cast<std::size_t>(columns), 1.5f), sums(weight), more_sums(weight);
    visit("layer_norm of " + name, [&](Engine& engine) {
      layer_norm(engine, x, y, {.weight = weight, .bias = weight, .epsilon = 1e-12f});
      layer_norm_backward(engine, x, y_gradient, {.x = x_gradient, .weight = sums, .bias = more_sums},
                          {.epsilon = 1e-12f});
    });
    visit("rms_norm of " + name, [&](Engine& engine) {
      rms_norm(engine, x, y, {.weight = weight, .epsilon = 1e-12f});
      rms_norm_backward(engine, x, y_gradient, {.x = x_gradient, .weight = sums}, {.epsilon = 1e-12f});
    });
    visit("gate of " + name, [&](Engine& engine) {
      gate(engine, Activation::silu, x, y_gradient, y);
      Tensor<float, 2> other_gradient(x.shape());
      gate_backward(engine, Activation::silu, x, y_gradient, y, x_gradient, other_gradient);
    });
    for (const NormKind norm : {NormKind::none, NormKind::layer, NormKind::rms}) {
      visit("head_rows of " + name, [&](Engine& engine) {
        const auto heads = [&](Tensor<float, 2>& rows) { return View<float, 3>(rows.data(), {9, 1, columns}); };
        const View<const float, 3> dy(y_gradient.data(), {9, 1, columns});
        const View<const float, 2> angles(y_gradient.data(), {9, columns / 2 * 2}, {columns, 1});
        const HeadRowsOptions options = {.norm = norm, .epsilon = 1e-12f, .rotation = {angles}};
        head_rows(engine, heads(x), heads(y), options);
        head_rows_backward(engine, heads(x), dy, {.x = heads(x_gradient)}, options);
      });
    }
    const std::vector<std::int64_t> offsets = {0, 3, 3, 9};
    Tensor<float, 2> pooled({3, columns});
    visit("mean_pool of " + name, [&](Engine& engine) {
      mean_pool(engine, x, offsets, pooled, true);
      mean_pool_backward(engine, x, offsets, pooled, x_gradient, true);
    });
    visit("dropout of " + name, [&](Engine& engine) { dropout(engine, x, y, {.probability = 0.5f}, x); });
    const std::vector<std::int64_t> ids = {0, 8, 0};
    const Embedding table{x, ids};
    const EmbeddingGradient table_gradient{x_gradient, ids};
    visit("embed of " + name, [&](Engine& engine) {
      embed(engine, {&table, 1}, pooled);
      embed_backward(engine, pooled, {&table_gradient, 1});
      bias_backward(engine, x, sums);
    });
  }
}

void visit_stored_rows(const Visit& visit) {
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
    visit("rows of " + std::to_string(columns) + " stored columns", [&](Engine& engine) {
      softmax(engine, x, y);
      activate(engine, Activation::gelu_tanh, x, y);
      const TypedView<2> finite = View<const Float16, 2>(x.data() + 2 * columns, {3, columns});
      const MutableTypedView<2> normal = View<BFloat16, 2>(y.data(), {3, columns});
      layer_norm(engine, finite, normal);
    });
  }
}

void visit_products(const Visit& visit) {
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
          for (const Activation activation :
               {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
            visit(name, [&](Engine& engine) {
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

void visit_layers_and_their_training(const Visit& visit) {
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
      visit("forward in " + std::string(name(type)),
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
      visit("a step in " + std::string(name(type)), [&](Engine& engine) {
        const auto state =
            std::make_unique<SavedState>(type);  // not on the stack, of which tests look how much is taken
        SavedState& saved = *state;
        layer.forward(engine, x, y, saved, {.seed = 6, .step = 7}, {.key_lengths = lengths});
        layer.backward(engine, x, saved, y, x_gradient);
        (void)optimizer.step(engine, {.max_norm = 1.0});
      });
    }
  }
}

}  // namespace headlight::soak
