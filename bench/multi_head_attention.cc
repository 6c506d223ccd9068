// The layer MultiHeadAttention: four products with weights and attention between them.
#include "headlight/layers/multi_head_attention.h"

#include <memory>

#include "harness/case_name.h"
#include "harness/inputs.h"
#include "harness/layer_check.h"
#include "harness/spans.h"
#include "harness/suite.h"
#include "layers/twins.h"

namespace headlight::bench {
namespace {

struct Self {
  std::int64_t batch, length, width, heads;
};

struct Operands {
  explicit Operands(const Self& shape)
      : layer({.width = shape.width, .heads = shape.heads}),
        x(filled<3>({shape.batch, shape.length, shape.width}, 1)),
        y({shape.batch, shape.length, shape.width}) {
    layer.initialize(1);
  }
  MultiHeadAttention layer;
  Tensor<float, 3> x, y;
};

std::string name_of(const Self& shape) {
  return case_name("self/B", shape.batch, "/L", shape.length, "/W", shape.width, "/H", shape.heads);
}

Work layer_work(const Self& shape, const CaseContext& context) {
  const auto operands = std::make_shared<Operands>(shape);
  Engine* engine = &context.engine;
  Work work;
  work.run = [operands, engine] {
    operands->layer.forward(*engine, operands->x, operands->x, operands->x, operands->y);
  };
  work.is_right = [operands, shape] {
    return first_sequence_is_right(
        "multi_head_attention/" + name_of(shape), operands->x, operands->y, [&](Tensor<double, 3>& x) {
          test::TwinWeights<double> weights(operands->layer.weights());
          Tensor<double, 3> y(x.shape());
          reference::multi_head_attention<double>(weights.attention("", shape.heads, shape.heads), x, x, x, y);
          return y;
        });
  };
  const auto tokens = static_cast<double>(shape.batch * shape.length);
  const auto width = static_cast<double>(shape.width);
  work.operations = tokens * (2 * width * 4 * width + 4 * static_cast<double>(shape.length) * width);
  work.reads = reads_of(operands->x);
  add_weights(operands->layer.weights(), work.reads);
  work.writes = writes_of(operands->y);
  return work;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [shape, quick] :
       {std::pair{Self{1, 128, 768, 12}, true}, {Self{32, 100, 512, 8}, false}, {Self{1, 16, 384, 12}, false}}) {
    all.push_back({name_of(shape), [shape = shape](const CaseContext& context) { return layer_work(shape, context); },
                   quick, shape.length == 16});
  }
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  return headlight::bench::run_suite("multi_head_attention", headlight::bench::cases(), argc, argv);
}
