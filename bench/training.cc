// A training step of one transformer encoder layer, forward and backward: width 512 on (32, 100, 512), and BERT-base's.
#include <cmath>
#include <memory>
#include <utility>

#include "baseline/attention_unfused.h"
#include "harness/case_name.h"
#include "harness/element_operations.h"
#include "harness/inputs.h"
#include "harness/spans.h"
#include "harness/suite.h"
#include "headlight/layers/transformer.h"
#include "headlight/optimizer.h"

namespace headlight::bench {
namespace {

struct Shape {
  const char* name;
  std::int64_t batch, length;
  TransformerLayerOptions options;
  Checkpoint checkpoint = Checkpoint::keep_linear;
  NumberType activations = NumberType::float32;
};

struct Step {
  Step(const Shape& shape, SavedState state)
      : layer(shape.options),
        saved(std::move(state)),
        x(filled<3>({shape.batch, shape.length, shape.options.width}, 1)),
        y_gradient(filled<3>(x.shape(), 2)),
        y(x.shape()),
        x_gradient(x.shape()) {
    layer.initialize(1);
    layer.set_training(true);
    parameters = layer.parameters();
  }
  void run(Engine& engine) {
    zero_gradients(parameters);
    layer.forward(engine, x, y, saved, {.seed = 1});
    layer.backward(engine, x, saved, y_gradient, x_gradient);
  }

  TransformerEncoderLayer layer;
  SavedState saved;
  Tensor<float, 3> x, y_gradient, y, x_gradient;
  std::vector<Parameter> parameters;
};

// Against the plain route, which shares neither attention's kernels nor its order. With activations of bfloat16 the
// gradient goes through some ten products, each of whose operands is off by 2⁻⁹ of itself at most.
bool agrees_with_unfused(Engine& engine, const Shape& shape, const Step& step) {
  Step unfused(shape, SavedState(Checkpoint::keep_linear, 0, baseline::unfused_attention()));
  unfused.run(engine);
  double difference = 0, size = 0;
  for (std::int64_t n = 0; n < step.x_gradient.size(); ++n) {
    const double truth = unfused.x_gradient.data()[n];
    difference += std::pow(step.x_gradient.data()[n] - truth, 2);
    size += truth * truth;
  }
  return difference <= (shape.activations == NumberType::float32 ? 1e-10 : std::pow(20 * 0x1p-9, 2)) * size;
}

Work step_work(const Shape& shape, const CaseContext& context) {
  const auto step = std::make_shared<Step>(shape, SavedState(shape.activations, shape.checkpoint));
  Engine* engine = &context.engine;
  Work work;
  work.run = [step, engine] { step->run(*engine); };
  work.is_right = [step, engine, shape] { return agrees_with_unfused(*engine, shape, *step); };
  const auto tokens = static_cast<double>(shape.batch * shape.length);
  const auto width = static_cast<double>(shape.options.width);
  const auto hidden = static_cast<double>(shape.options.feed_forward_width);
  // Three products for each of the forward pass, seven for attention's two; what is computed again does not count.
  work.operations = tokens * (6 * width * (4 * width + 2 * hidden) + 14 * static_cast<double>(shape.length) * width);
  work.reads = reads_of(step->x, step->y_gradient);
  work.writes = writes_of(step->y, step->x_gradient);
  for (const Parameter& parameter : step->parameters) {
    work.reads.emplace_back(parameter.values);
    work.writes.emplace_back(parameter.gradient);
  }
  if (shape.checkpoint == Checkpoint::keep_linear) {
    step->run(*engine);
    work.facts.emplace_back("saved_bytes", static_cast<double>(step->saved.bytes()));
  }
  return work;
}

std::string name_of(const Shape& shape) {
  return case_name(shape.name, shape.options.dropout > 0 ? "_dropout" : "",
                   shape.checkpoint == Checkpoint::layer_input ? "_again" : "",
                   shape.activations == NumberType::bfloat16 ? "_bfloat16" : "", "/B", shape.batch, "/L", shape.length);
}

// A step of AdamW over `count` numbers, two moments beside each.
Work adamw_work(std::int64_t count, const CaseContext& context) {
  struct Learner {
    explicit Learner(std::int64_t n)
        : values(filled<1>({n}, 1)), gradient(filled<1>({n}, 2)), before(filled<1>({n}, 1)), optimizer(parameters(n)) {}
    std::vector<Parameter> parameters(std::int64_t n) {
      return {{"weight", {n}, {values.data(), values.end()}, {gradient.data(), gradient.end()}}};
    }
    Tensor<float, 1> values, gradient, before;
    AdamW optimizer;
  };
  constexpr double kRate = 1e-3, kDecay = 1e-2;
  const auto learner = std::make_shared<Learner>(count);
  Engine* engine = &context.engine;
  Work work;
  work.run = [learner, engine] { learner->optimizer.step(*engine, {.learning_rate = kRate}); };
  // After the first step every moment is its gradient, so each number goes by γ against its gradient's sign, and
  // decays.
  work.is_right = [learner, count] {
    for (std::int64_t n = 0; n < count; n += 997) {
      const double value = learner->before(n), gradient = learner->gradient(n);
      const double expected = value * (1 - kRate * kDecay) - kRate * gradient / (std::abs(gradient) + 1e-8);
      if (!(std::abs(learner->values(n) - expected) < 1e-6)) return false;
    }
    return true;
  };
  work.elements = static_cast<double>(count);
  work.element_operations = kAdamWOperations;
  work.reads = reads_of(learner->values, learner->gradient);
  work.bound_by_reading = true;
  work.writes = writes_of(learner->values);
  // Both moments, read and written, lie in the optimizer.
  work.other_bytes = 4 * sizeof(float) * work.elements;
  return work;
}

std::vector<Case> cases() {
  const TransformerLayerOptions width512 = {.width = 512, .heads = 8, .feed_forward_width = 2048, .dropout = 0};
  TransformerLayerOptions bert_base = {.width = 768, .heads = 12, .feed_forward_width = 3072, .dropout = 0};
  const TransformerLayerOptions small = {.width = 64, .heads = 4, .feed_forward_width = 256, .dropout = 0.1f};
  std::vector<Case> all;
  const auto add = [&](const Shape& shape, bool quick, bool smoke = false) {
    all.push_back(
        {name_of(shape), [shape](const CaseContext& context) { return step_work(shape, context); }, quick, smoke});
  };
  add({"width512", 32, 100, width512}, false);
  add({"bert_base", 8, 128, bert_base}, true);
  add({"bert_base", 1, 2048, bert_base}, false);
  add({"bert_base", 8, 128, bert_base, Checkpoint::layer_input}, false);
  for (const Shape& shape :
       {Shape{"width512", 32, 100, width512}, {"bert_base", 8, 128, bert_base}, {"bert_base", 1, 2048, bert_base}}) {
    Shape narrow = shape;
    narrow.activations = NumberType::bfloat16;
    add(narrow, false);
  }
  bert_base.dropout = 0.1f;
  add({"bert_base", 8, 128, bert_base}, true);
  add({"width64", 2, 10, small}, false, true);
  add({"width64", 2, 10, small, Checkpoint::keep_linear, NumberType::bfloat16}, false, true);
  all.push_back({"adamw/7M", [](const CaseContext& context) { return adamw_work(7 << 20, context); }, false});
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  return headlight::bench::run_suite("training", headlight::bench::cases(), argc, argv);
}
