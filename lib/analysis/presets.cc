#include "headlight/analysis/presets.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "analysis/sizes.h"
#include "headlight/storage_format.h"

namespace headlight::analysis {
namespace {

constexpr std::int64_t kBertVocabulary = 30522;
constexpr std::int64_t kGptVocabulary = 50257;

constexpr ModelShape bert(std::int64_t width, std::int64_t heads, std::int64_t layers) {
  return {.width = width,
          .heads = heads,
          .feed_forward_width = 4 * width,
          .layers = layers,
          .vocabulary = kBertVocabulary,
          .positions = 512,
          .token_types = 2,
          .pooler = true};
}

constexpr ModelShape gpt2(std::int64_t width, std::int64_t heads, std::int64_t layers) {
  return {.width = width,
          .heads = heads,
          .feed_forward_width = 4 * width,
          .layers = layers,
          .vocabulary = kGptVocabulary,
          .positions = 1024,
          .causal = true};
}

constexpr std::array<Preset, 5> kPresets{{{"BERT-base", bert(768, 12, 12), 109'482'240},
                                          {"BERT-large", bert(1024, 16, 24), 335'141'888},
                                          {"GPT-2 small", gpt2(768, 12, 12), 124'439'808},
                                          {"GPT-2 medium", gpt2(1024, 16, 24), 354'823'168},
                                          {"MiniLM-L6", bert(384, 12, 6), 22'713'216}}};

constexpr std::string_view kPresetsName = "presets";

void check(const ModelShape& shape) {
  check_width(kPresetsName, shape.width, shape.heads);
  check_size(kPresetsName, "feed_forward_width", shape.feed_forward_width, 1, 4 * kWidest);
  check_size(kPresetsName, "layers", shape.layers, 0, 1 << 16);
  for (const auto& [name, rows] : {std::pair{"vocabulary", shape.vocabulary},
                                   {"positions", shape.positions},
                                   {"token_types", shape.token_types}}) {
    check_size(kPresetsName, name, rows, 0, std::int64_t{1} << 40);
  }
}

void check(const ModelShape& shape, std::int64_t length) {
  check(shape);
  check_size(kPresetsName, "length", length, 1, std::numeric_limits<std::int64_t>::max());
}

}  // namespace

std::span<const Preset> presets() noexcept { return kPresets; }

AttentionParameters attention_parameters(std::int64_t width, std::int64_t heads) {
  check_width(kPresetsName, width, heads);
  AttentionParameters parameters;
  parameters.head_dim = width / heads;
  parameters.one_projection = width * parameters.head_dim;
  parameters.projections_per_head = 3 * parameters.one_projection;
  parameters.projections = heads * parameters.projections_per_head;
  parameters.output = width * width;
  parameters.weights = parameters.projections + parameters.output;
  parameters.biases = 4 * width;
  return parameters;
}

std::vector<ParameterPart> parameters_by_part(const ModelShape& shape) {
  check(shape);
  const std::int64_t width = shape.width;
  const AttentionParameters attention = attention_parameters(width, shape.heads);
  const std::int64_t norm = 2 * width;  // weight and bias
  std::vector<ParameterPart> parts;
  const auto add = [&](const char* name, std::int64_t count) {
    if (count > 0) parts.push_back({name, count});
  };
  add("word embeddings", shape.vocabulary * width);
  add("position embeddings", shape.positions * width);
  add("token-type embeddings", shape.token_types * width);
  // BERT normalises its embeddings, GPT-2 what leaves the last layer.
  add(shape.causal ? "last normalisation" : "embedding normalisation", norm);
  add("attention W_Q, W_K, W_V", shape.layers * attention.projections);
  add("attention W_O", shape.layers * attention.output);
  add("attention biases", shape.layers * attention.biases);
  add("feed-forward", shape.layers * (2 * width * shape.feed_forward_width + shape.feed_forward_width + width));
  add("normalisations of layers", shape.layers * 2 * norm);
  add("pooler", shape.pooler ? width * width + width : 0);
  return parts;
}

std::int64_t parameter_count(const ModelShape& shape) {
  std::int64_t sum = 0;
  for (const ParameterPart& part : parameters_by_part(shape)) sum += part.count;
  return sum;
}

namespace {

// Of so many weights of one output in panels, which are as many as in a file, and of int8 also have their sum.
double column_bytes(std::int64_t inputs, NumberType type) {
  const StorageFormat format = format_of(type);
  const std::int64_t sum = type == NumberType::int8 ? sizeof(std::int32_t) : 0;
  return static_cast<double>(row_bytes(format, inputs) + row_scale_bytes(format, inputs) + sum);
}

}  // namespace

double weight_bytes(const ModelShape& shape, NumberType type) {
  const std::int64_t width = shape.width, inner = shape.feed_forward_width;
  double bytes = static_cast<double>(parameter_count(shape)) * sizeof(float);
  const auto narrow = [&](std::int64_t matrices, std::int64_t outputs, std::int64_t inputs) {
    const auto count = static_cast<double>(matrices), columns = static_cast<double>(outputs);
    bytes -= count * columns * static_cast<double>(inputs) * sizeof(float);
    bytes += count * columns * column_bytes(inputs, type);
  };
  narrow(shape.layers, 4 * width, width);
  narrow(shape.layers, inner, width);
  narrow(shape.layers, width, inner);
  if (shape.pooler) narrow(1, width, width);
  return bytes;
}

ForwardFlops forward_flops(const ModelShape& shape, std::int64_t length) {
  check(shape, length);
  const auto rows = static_cast<double>(length);
  const auto width = static_cast<double>(shape.width);
  const auto layers = static_cast<double>(shape.layers);
  const double pairs = shape.causal ? rows * (rows + 1) / 2 : rows * rows;
  return {.projections = layers * 8 * rows * width * width,
          .attention = layers * 4 * pairs * width,
          .feed_forward = layers * 4 * rows * width * static_cast<double>(shape.feed_forward_width)};
}

AttentionBytes attention_bytes(const ModelShape& shape, std::int64_t length) {
  check(shape, length);
  constexpr double kFloat = 4;
  const auto rows = static_cast<double>(length);
  const auto heads = static_cast<double>(shape.heads);
  const double scores = kFloat * heads * rows * rows;
  const double tensors = kFloat * 4 * rows * static_cast<double>(shape.width);
  return {.scores = scores, .kept_plain = tensors + scores, .kept_rebuilt = tensors + kFloat * rows * heads};
}

std::vector<MergeCost> merge_costs(std::int64_t width, std::int64_t heads, std::int64_t length) {
  const std::int64_t head_dim = attention_parameters(width, heads).head_dim;
  check_size(kPresetsName, "length", length, 1, std::numeric_limits<std::int64_t>::max());
  const auto cost = [length](Merge merge, std::int64_t matrices, std::int64_t vectors, std::int64_t of_row) {
    const auto rows = static_cast<double>(length);
    return MergeCost{merge, matrices + vectors, 2 * rows * static_cast<double>(matrices),
                     rows * static_cast<double>(of_row)};
  };
  // A head's D numbers are added to those of the others and the sum divided, or each times its weight before; a softmax
  // over heads and a logistic gate are three operations a number.
  const std::int64_t mean = width, weighted = 2 * width - head_dim, softmax = 3 * heads;
  std::vector<MergeCost> costs = {
      cost(Merge::concatenate, width * width, 0, 0),
      cost(Merge::average, width * head_dim, 0, mean),
      cost(Merge::weighted, width * head_dim, heads, weighted),
      cost(Merge::weighted_by_input, width * (head_dim + heads), 0, weighted + softmax),
      cost(Merge::gated_by_head, width * (width + heads), 0, 3 * heads + width),
      cost(Merge::gated_by_element, 2 * width * width, 0, 3 * width + width),
  };
  costs[static_cast<std::size_t>(Merge::weighted)].row_flops += static_cast<double>(softmax);  // once, not a token
  return costs;
}

}  // namespace headlight::analysis
