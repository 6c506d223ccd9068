#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "headlight/layers/linear.h"
#include "headlight/models/errors.h"
#include "headlight/models/text_encoder.h"
#include "tools/headlight/studies/chunk.h"
#include "tools/headlight/support/number_text.h"

namespace headlight::program {
namespace {

constexpr const char* kText =
    "The lighthouse stood where the river met the sea, on a rock that the tide left twice a day. Anna had kept it for "
    "eleven years, and her father before her. Every evening she climbed the hundred and twelve steps, cleaned the "
    "glass, and lit the lamp. The lamp itself was small; it was the lens that made the light, a ring of prisms taller "
    "than a man, which gathered what the flame gave to all sides and sent it out in one white beam. Ships saw it from "
    "twenty miles away. The captain of the mail boat, who came on Fridays, said that he set his watch by it, because "
    "it never once failed to turn in thirty seconds. In the winter of the great storm the road to the village was "
    "gone for six weeks. Nobody could bring oil, and the barrels in the cellar were nearly empty. Anna counted them "
    "and wrote the number in the book. Then she took a pencil and worked out how long they would last if the flame "
    "was turned down by a third, and whether the beam would still reach the reef where the currents pulled boats to "
    "the north. It would, on a clear night. On the ninth day a fog came in, and she heard a horn, far out and in the "
    "wrong place. She did not think about the oil then. She opened the valve as far as it went, and the light filled "
    "the fog like milk in a glass. For two hours she rang the bell with her own hands. When the fog lifted, a "
    "fishing boat lay at anchor behind the rock, and three men were waving to her from its deck. They had lost their "
    "compass, they said later in her kitchen, and had steered by the sound until they saw that the fog was brighter on "
    "one side. The oldest of them knew her father. He told her that in his time there had been two keepers, and that "
    "one of them always slept while the other watched, and he asked who watched when she slept. Nobody, she said, the "
    "light does. He shook his head, and in the spring he came back with his daughter, who wanted to learn how the lens "
    "was cleaned. They divided the night between them. The daughter, whose name was Ruth, was better with numbers than "
    "Anna, and it was she who found that the reef could be seen from the second window if the lamp was moved by the "
    "width of a hand. After that the captain of the mail boat complained that his watch was wrong, since the beam now "
    "came a little earlier than it used to. Anna wrote it all in the book, the fog, the horn, the three men, the "
    "hand's "
    "width, and the complaint, and under it the number of barrels that were left, which was four.";

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf())) throw models::FileError(path, "cannot be read, or is empty");
  return content.str();
}

// Columns [first, first + H · D) of rows, as heads.
Tensor<float, 4> heads_of(const Tensor<float, 2>& rows, std::int64_t first, std::int64_t heads, std::int64_t width) {
  Tensor<float, 4> tensor({1, rows.shape()[0], heads, width / heads});
  for (std::int64_t i = 0; i < rows.shape()[0]; ++i) {
    std::copy_n(rows.data() + i * rows.shape()[1] + first, width, tensor.data() + i * width);
  }
  return tensor;
}

// The input of layer `layer` goes through its projections.
ChunkInputs inputs_of_layer(Engine& engine, const headlight::Encoder& network, const Weights& weights,
                            const EncoderInput& input, std::int64_t layer) {
  EncoderOptions before = network.options();
  const std::int64_t width = before.width, tokens = static_cast<std::int64_t>(input.ids.size());
  before.layers = layer;
  headlight::Encoder below(before);
  below.load(weights, {.ignore_extra = true});
  Tensor<float, 2> hidden({tokens, width}), projected({tokens, 3 * width});
  below.forward(engine, input, hidden);
  Linear projection(width, 3 * width);
  const std::string name = "layers." + std::to_string(layer) + ".self_attn.in_proj_";
  projection.load({{"weight", weights.at(name + "weight")}, {"bias", weights.at(name + "bias")}});
  projection.forward(engine, hidden, projected);
  return {heads_of(projected, 0, before.heads, width), heads_of(projected, width, before.heads, width),
          heads_of(projected, 2 * width, before.heads, width)};
}

}  // namespace

ChunkSource inputs_of_model(Engine& engine, const std::string& folder, const std::string& file) {
  const models::TextEncoder model = models::load(folder);
  const EncoderOptions& options = model.options().encoder;
  if (!model.has_network()) {
    throw models::FileError(folder, "has the model_type " + models::in_quotes(model.options().model_type) +
                                        ", expected one whose layers are BERT's (bert, distilbert, roberta, "
                                        "xlm-roberta, camembert)");
  }
  const std::vector<std::int64_t> ids = model.tokenize(file.empty() ? kText : content_of(file));
  const auto tokens = static_cast<std::int64_t>(ids.size());
  const std::vector<std::int64_t> offsets = {0, tokens};
  const std::vector<std::int64_t> positions = model.positions(ids, offsets);
  const std::vector<std::int64_t> types(model.network().options().token_types > 0 ? ids.size() : 0);
  const EncoderInput input = {.ids = ids, .positions = positions, .token_types = types, .offsets = offsets};
  const Weights weights = model.network().weights();
  ChunkSource source{.words = folder + ", " + grouped(options.layers) + " layers of " + grouped(options.heads) +
                              " heads, " + grouped(tokens) + " tokens of " +
                              (file.empty() ? "a text about a lighthouse" : models::printable(file)),
                     .layers = {}};
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    source.layers.push_back(inputs_of_layer(engine, model.network(), weights, input, layer));
  }
  return source;
}

ChunkSource seeded_inputs(std::int64_t length, std::int64_t heads, std::int64_t head_dim, std::uint64_t seed) {
  // x_i = a x_{i−1} + √(1 − a²) noise: variance 1, and likeness a^|i − j|.
  constexpr float kKept = 0.99f;
  const float fresh = std::sqrt(1 - kKept * kKept);
  std::mt19937_64 engine(seed);
  const auto noise = [&] {
    float sum = 0;  // of twelve uniform numbers: mean 6, variance 1, the same everywhere
    for (int n = 0; n < 12; ++n) sum += static_cast<float>(engine() >> 40) * 0x1p-24f;
    return sum - 6;
  };
  const std::array<std::int64_t, 4> shape = {1, length, heads, head_dim};
  ChunkInputs inputs{Tensor<float, 4>(shape), Tensor<float, 4>(shape), Tensor<float, 4>(shape)};
  const std::int64_t width = heads * head_dim;
  for (std::int64_t n = 0; n < length * width; ++n) {
    const float before = n < width ? noise() : inputs.key.data()[n - width];
    inputs.key.data()[n] = n < width ? before : kKept * before + fresh * noise();
    inputs.query.data()[n] = 2 * inputs.key.data()[n];
    inputs.value.data()[n] = noise();
  }
  ChunkSource source{.words = "seeded numbers, " + grouped(heads) + " heads of " + grouped(head_dim) + ", " +
                              grouped(length) + " positions of which neighbours are alike",
                     .layers = {}};
  source.layers.push_back(std::move(inputs));
  return source;
}

}  // namespace headlight::program
