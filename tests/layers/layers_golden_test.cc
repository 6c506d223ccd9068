// Attention and transformer layers against PyTorch's numbers, without PyTorch: see tests/golden. The twins are held to
// rounding of float64, the layers to 1e-5.
#include <map>
#include <sstream>
#include <string>

#include "layers/twins.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/isas.h"

namespace headlight::layers_golden_test {

// Outputs are of size 1 and a little more; what a layer may be off by.
constexpr double kTolerance = 1e-5;
// Sums of at most 2048 terms of size 1, each rounded at 2⁻⁵³, through three parts one after another, and normalised.
constexpr double kTwinTolerance = 3 * 2048 * 0x1p-53;

// A line of layers_cases.txt, word by word.
class Case {
 public:
  explicit Case(const std::string& line) {
    std::stringstream words(line);
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      words_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto found = words_.find(name);
    return found == words_.end() ? "" : found->second;
  }
  [[nodiscard]] std::int64_t number(const std::string& name, std::int64_t otherwise = 0) const {
    return text(name).empty() ? otherwise : std::stoll(text(name));
  }
  [[nodiscard]] std::vector<std::int64_t> numbers(const std::string& name) const {
    std::vector<std::int64_t> list;
    std::stringstream stream(text(name));
    for (std::string one; std::getline(stream, one, ',');) list.push_back(std::stoll(one));
    return list;
  }

 private:
  std::map<std::string, std::string> words_;
};

// By ascending name, as layers.py does.
void fill(Layer& layer, test::Random& random) {
  std::map<std::string, Parameter> by_name;
  for (const Parameter& parameter : layer.parameters()) by_name[parameter.name] = parameter;
  for (const auto& [name, parameter] : by_name) {
    const bool is_matrix = parameter.shape.size() == 2;
    const auto scale = is_matrix ? static_cast<float>(1 / std::sqrt(static_cast<double>(parameter.shape[1]))) : 0.1f;
    const bool about_one = name.find("norm") != std::string::npos && name.ends_with("weight");
    for (float& value : parameter.values) value = (about_one ? 1.0f : 0.0f) + scale * random.normal();
  }
  layer.freeze();
}

// The masks of a case. `options` looks into it.
struct Masks {
  Masks(const Case& c, std::int64_t rows, std::int64_t keys, test::Random& random)
      : key_lengths(c.numbers("key_lengths")),
        memory_lengths(c.numbers("memory_lengths")),
        entries({1, 1, rows, keys}) {
    options.causal = c.number("causal") != 0 ? Causal::top_left : Causal::none;
    options.key_lengths = key_lengths;
    memory_options.key_lengths = memory_lengths;
    if (c.number("mask") == 0) return;
    for (std::uint8_t& entry : entries) entry = random.next() >> 62 != 0;
    for (std::int64_t i = 0; i < rows; ++i) entries(0, 0, i, 0) = 1;
    options.mask = BooleanMask{entries.view(), MaskMeans::attend};
  }
  Masks(const Masks&) = delete;
  Masks& operator=(const Masks&) = delete;

  std::vector<std::int64_t> key_lengths;
  std::vector<std::int64_t> memory_lengths;
  Tensor<std::uint8_t, 4> entries;
  AttentionOptions options;
  AttentionOptions memory_options;
};

TransformerLayerOptions transformer_options(const Case& c) {
  TransformerLayerOptions options;
  options.width = c.number("width");
  options.heads = c.number("heads");
  options.feed_forward_width = c.number("feed_forward");
  options.norm = c.text("norm") == "pre" ? Norm::pre : Norm::post;
  options.activation = c.text("activation") == "relu"   ? Activation::relu
                       : c.text("activation") == "gelu" ? Activation::gelu
                                                        : Activation::gelu_tanh;
  options.bias = c.number("bias", 1) != 0;
  return options;
}

// What the layer gives and what its twin gives.
struct Outputs {
  Tensor<float, 3> layer;
  Tensor<double, 3> twin;
};

Outputs attention_outputs(Engine& engine, const Case& c, test::Random& random) {
  const std::int64_t batch = c.number("B");
  MultiHeadAttentionOptions options;
  options.width = c.number("width");
  options.heads = c.number("heads");
  options.key_width = c.number("key_width");
  options.value_width = c.number("value_width");
  options.bias = c.number("bias", 1) != 0;
  options.packed_projection = options.key_width == 0 && options.value_width == 0;
  MultiHeadAttention layer(options);
  fill(layer, random);
  const auto query = random.normal_tensor<3>({batch, c.number("Lq"), options.width});
  const auto key = random.normal_tensor<3>({batch, c.number("Lk"), c.number("key_width", options.width)});
  const auto value = random.normal_tensor<3>({batch, c.number("Lk"), c.number("value_width", options.width)});
  const Masks masks(c, c.number("Lq"), c.number("Lk"), random);

  Outputs outputs{Tensor<float, 3>(query.shape()), Tensor<double, 3>(query.shape())};
  layer.forward(engine, query, key, value, outputs.layer, masks.options);
  test::TwinWeights<double> weights(layer.weights());
  reference::multi_head_attention<double>(weights.attention("", options.heads, options.heads),
                                          test::converted<double>(query), test::converted<double>(key),
                                          test::converted<double>(value), outputs.twin, masks.options);
  return outputs;
}

Outputs encoder_outputs(Engine& engine, const Case& c, test::Random& random) {
  TransformerEncoderLayer layer(transformer_options(c));
  fill(layer, random);
  const auto x = random.normal_tensor<3>({c.number("B"), c.number("Lq"), c.number("width")});
  const Masks masks(c, c.number("Lq"), c.number("Lq"), random);

  Outputs outputs{Tensor<float, 3>(x.shape()), test::converted<double>(x)};
  layer.forward(engine, x, outputs.layer, masks.options);
  test::TwinWeights<double> weights(layer.weights());
  reference::encoder_layer(weights.encoder_layer("", transformer_options(c)), outputs.twin, masks.options);
  return outputs;
}

Outputs decoder_outputs(Engine& engine, const Case& c, test::Random& random) {
  TransformerDecoderLayer layer(transformer_options(c));
  fill(layer, random);
  const auto x = random.normal_tensor<3>({c.number("B"), c.number("Lq"), c.number("width")});
  const auto memory = random.normal_tensor<3>({c.number("B"), c.number("Lk"), c.number("width")});
  const Masks masks(c, c.number("Lq"), c.number("Lq"), random);

  Outputs outputs{Tensor<float, 3>(x.shape()), test::converted<double>(x)};
  layer.forward(engine, x, memory, outputs.layer, masks.options, masks.memory_options);
  test::TwinWeights<double> weights(layer.weights());
  reference::decoder_layer<double>(weights.decoder_layer(transformer_options(c)), outputs.twin,
                                   test::converted<double>(memory), masks.options, masks.memory_options);
  return outputs;
}

using LayersGoldenTest = test::EachIsa;

TEST_P(LayersGoldenTest, AgreeWithPyTorch) {
  Engine engine(options(2));
  test::GoldenNumbers golden("layers.npy");
  for (const std::string& line : test::golden_lines("layers_cases.txt")) {
    SCOPED_TRACE(line);
    const Case c(line);
    test::Random random(static_cast<std::uint64_t>(c.number("seed")));
    const auto expected = golden.next<3>({c.number("B"), c.number("Lq"), c.number("width")});
    const auto compute = c.text("layer") == "attention" ? attention_outputs
                         : c.text("layer") == "encoder" ? encoder_outputs
                                                        : decoder_outputs;
    const Outputs outputs = compute(engine, c, random);
    EXPECT_TRUE(test::within(outputs.twin.view(), expected.view(), kTwinTolerance));
    double worst = 0;
    for (std::int64_t n = 0; n < expected.size(); ++n) {
      const double error = std::abs(static_cast<double>(outputs.layer.data()[n]) - expected.data()[n]);
      worst = error <= worst ? worst : error;  // a NaN is worse than anything
    }
    EXPECT_LE(worst, kTolerance);
  }
  EXPECT_TRUE(golden.at_end());
}

HEADLIGHT_ON_EVERY_ISA(LayersGoldenTest);

}  // namespace headlight::layers_golden_test
