// One transformer encoder layer: width 512 on (32, 100, 512), and that of BERT-base.
#include <memory>

#include "harness/case_name.h"
#include "harness/inputs.h"
#include "harness/layer_check.h"
#include "harness/spans.h"
#include "harness/suite.h"
#include "headlight/layers/transformer.h"
#include "layers/twins.h"

namespace headlight::bench {
namespace {

struct Shape {
  const char* name;
  std::int64_t batch, length;
  TransformerLayerOptions options;
};

struct Operands {
  explicit Operands(const Shape& shape)
      : layer(shape.options),
        x(filled<3>({shape.batch, shape.length, shape.options.width}, 1)),
        y({shape.batch, shape.length, shape.options.width}) {
    layer.initialize(1);
  }
  TransformerEncoderLayer layer;
  Tensor<float, 3> x, y;
};

std::string name_of(const Shape& shape) { return case_name(shape.name, "/B", shape.batch, "/L", shape.length); }

Work layer_work(const Shape& shape, const CaseContext& context) {
  const auto operands = std::make_shared<Operands>(shape);
  Engine* engine = &context.engine;
  Work work;
  work.run = [operands, engine] { operands->layer.forward(*engine, operands->x, operands->y); };
  work.is_right = [operands, shape] {
    return first_sequence_is_right("encoder_layer/" + name_of(shape), operands->x, operands->y,
                                   [&](Tensor<double, 3>& x) {
                                     test::TwinWeights<double> weights(operands->layer.weights());
                                     reference::encoder_layer<double>(weights.encoder_layer("", shape.options), x);
                                     return std::move(x);
                                   });
  };
  const auto tokens = static_cast<double>(shape.batch * shape.length);
  const auto width = static_cast<double>(shape.options.width);
  const auto hidden = static_cast<double>(shape.options.feed_forward_width);
  work.operations = tokens * (2 * width * (4 * width + 2 * hidden) + 4 * static_cast<double>(shape.length) * width);
  work.reads = reads_of(operands->x);
  add_weights(operands->layer.weights(), work.reads);
  work.writes = writes_of(operands->y);
  return work;
}

std::vector<Case> cases() {
  const TransformerLayerOptions width512 = {.width = 512, .heads = 8, .feed_forward_width = 2048};
  const TransformerLayerOptions bert_base = {.width = 768, .heads = 12, .feed_forward_width = 3072};
  const TransformerLayerOptions small = {.width = 64, .heads = 4, .feed_forward_width = 256};
  std::vector<Case> all;
  const auto add = [&](const Shape& shape, bool quick, bool smoke = false) {
    all.push_back(
        {name_of(shape), [shape](const CaseContext& context) { return layer_work(shape, context); }, quick, smoke});
  };
  add({"width512", 32, 100, width512}, true);
  add({"bert_base", 1, 128, bert_base}, true);
  add({"bert_base", 1, 512, bert_base}, false);
  add({"width64", 2, 10, small}, false, true);
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  return headlight::bench::run_suite("encoder_layer", headlight::bench::cases(), argc, argv);
}
