#include "headlight/analysis/training_cost.h"

#include <algorithm>
#include <cmath>

#include "analysis/sizes.h"
#include "analysis/training_scratch.h"
#include "headlight/analysis/presets.h"
#include "layers/network/encoder_graph.h"
#include "layers/segments.h"
#include "layers/sizes.h"
#include "ops/check.h"

namespace headlight::analysis {

namespace {

constexpr std::string_view kTrainingCostName = "training_cost";
// As many bytes as no machine has, and far below 2⁶³.
constexpr double kMost = 1e14;

// A stack of layers of one kind, and the sequences that go through it.
struct Sizes {
  TrainedLayer layer{};
  std::int64_t layers = 1;
  std::int64_t segment = 0;  // layers computed again at a time; 0: all is kept
  double tables = 0;         // rows of embeddings
  std::int64_t moments = 0;
  MergeCost merge{};  // of one layer, a token
  double tokens = 0;
  double pairs = 0;
};

TrainedLayer layer_of(const TransformerLayerOptions& options) {
  check_width(kTrainingCostName, options.width, options.heads);
  check_size(kTrainingCostName, "feed_forward_width", options.feed_forward_width, 0, 4 * kWidest);
  layers::probability(kTrainingCostName, "dropout", options.dropout);
  return {.width = options.width,
          .heads = options.heads,
          .hidden = layers::given_or(options.feed_forward_width, 4 * options.width),
          .norm = options.norm,
          .merge = options.merge,
          .bias = options.bias,
          .dropout = options.dropout};
}

MergeCost merge_of(const TrainedLayer& layer) {
  return merge_costs(layer.width, layer.heads, 1)[static_cast<std::size_t>(layer.merge)];
}

void add_sequence(std::int64_t length, Sizes& sizes) {
  layers::at_least(0, kTrainingCostName, "a length", length);
  sizes.tokens += static_cast<double>(length);
  sizes.pairs += static_cast<double>(length) * static_cast<double>(length);
}

// Weights of one layer.
std::int64_t weights_of(const Sizes& sizes) noexcept {
  const std::int64_t width = sizes.layer.width, hidden = sizes.layer.hidden;
  const std::int64_t products = 3 * width * width + sizes.merge.weights + 2 * width * hidden;
  const std::int64_t norms = 2 * width;
  const std::int64_t biases = 3 * width + width + hidden + width + 2 * width;
  return products + norms + (sizes.layer.bias ? biases : 0);
}

// In float64, for until here nobody knows that integers hold it.
void check_bytes(const Sizes& sizes) {
  const auto width = static_cast<double>(sizes.layer.width), hidden = static_cast<double>(sizes.layer.hidden);
  const auto heads = static_cast<double>(sizes.layer.heads), layers = static_cast<double>(sizes.layers);
  const double weights = sizes.tables * width + layers * width * (4 * width + 2 * hidden + 20);
  // Sequences without tokens have what is one row for each; no layers, the rows that go in and come out.
  const double most_rows = std::max(sizes.tokens, static_cast<double>(sizes.layer.batch));
  const double rows = most_rows * (layers * (12 * width + hidden + heads + 32) + 4 * width);
  const double pairs = sizes.layer.unfused ? layers * heads * sizes.pairs : 0;
  const double bytes = 4 * (weights * (2 + static_cast<double>(sizes.moments)) + rows + pairs);
  if (bytes > kMost) ops::fail(kTrainingCostName, "the step takes more than 10¹⁴ bytes");
}

Sizes sizes_of(const TrainingPlan& plan) {
  const EncoderOptions& encoder = plan.encoder;
  layers::at_least(1, kTrainingCostName, "vocabulary", encoder.vocabulary);
  layers::at_least(1, kTrainingCostName, "max_positions", encoder.max_positions);
  layers::at_least(0, kTrainingCostName, "token_types", encoder.token_types);
  layers::at_least(0, kTrainingCostName, "layers", encoder.layers);
  layers::at_least(0, kTrainingCostName, "k", plan.k);
  Sizes sizes;
  sizes.layer = layer_of({.width = encoder.width,
                          .heads = encoder.heads,
                          .feed_forward_width = encoder.feed_forward_width,
                          .norm = encoder.norm,
                          .dropout = encoder.dropout,
                          .merge = encoder.merge});
  sizes.layers = encoder.layers;
  sizes.segment = layers::segment_length(plan.checkpoint, plan.k, encoder.layers);
  sizes.tables = static_cast<double>(encoder.vocabulary) + static_cast<double>(encoder.max_positions) +
                 static_cast<double>(encoder.token_types);
  sizes.moments = layers::at_least(0, kTrainingCostName, "moments", plan.moments);
  sizes.merge = merge_of(sizes.layer);
  sizes.layer.unfused = plan.attention == AttentionMethod::unfused;
  for (const std::int64_t length : plan.lengths) add_sequence(length, sizes);
  check_bytes(sizes);
  return sizes;
}

Sizes sizes_of(const LayerTrainingPlan& plan) {
  Sizes sizes;
  sizes.layer = layer_of(plan.layer);
  sizes.segment = layers::keeps_linear(plan.checkpoint) ? 0 : 1;
  sizes.moments = layers::at_least(0, kTrainingCostName, "moments", plan.moments);
  sizes.merge = merge_of(sizes.layer);
  sizes.layer.unfused = plan.attention == AttentionMethod::unfused;
  sizes.layer.batch = layers::at_least(0, kTrainingCostName, "batch", plan.batch);
  sizes.layer.length = plan.length;
  add_sequence(plan.length, sizes);
  sizes.tokens *= static_cast<double>(plan.batch);
  sizes.pairs *= static_cast<double>(plan.batch);
  check_bytes(sizes);
  if (sizes.layer.unfused) sizes.layer.kept_columns = plan.length;
  return sizes;
}

TrainingBytes parameter_bytes(const Sizes& sizes, std::int64_t others) noexcept {
  TrainingBytes bytes;
  bytes.parameters = 4 * (others + sizes.layers * weights_of(sizes));
  bytes.gradients = bytes.parameters;
  bytes.optimizer = sizes.moments * bytes.parameters;
  return bytes;
}

// TransformerEncoderLayer::forward() and backward().
void walk_layer(const Engine& engine, const Sizes& sizes, ScratchAccount& account) {
  {
    const ScratchAccount::Loan kept(account, sizes.segment == 0 ? 0 : layer_saved_bytes(sizes.layer));
    walk_forward(engine, sizes.layer, true, account);
  }
  const ScratchAccount::Loan kept(account, sizes.segment == 0 ? 0 : layer_saved_bytes(sizes.layer));
  if (sizes.segment != 0) walk_forward(engine, sizes.layer, false, account);
  walk_backward(engine, sizes.layer, account);
}

template <class Walk>
std::int64_t scratch_bytes(const Sizes& sizes, Walk walk) {
  if (sizes.layer.rows() == 0) return 0;
  ScratchAccount account;
  for (int step = 0; step < 2; ++step) walk(account);
  return static_cast<std::int64_t>(account.bytes());
}

TrainingFlops flops_of(const Sizes& sizes) {
  const auto width = static_cast<double>(sizes.layer.width);
  const auto hidden = static_cast<double>(sizes.layer.hidden);
  const auto layers = static_cast<double>(sizes.layers);
  const double products = sizes.tokens * (6 * width * width + sizes.merge.flops + 4 * width * hidden);
  TrainingFlops flops;
  flops.forward = layers * (products + 4 * sizes.pairs * width);
  flops.backward = layers * (2 * products + (sizes.layer.unfused ? 8 : 10) * sizes.pairs * width);
  if (sizes.segment > 0) flops.again = flops.forward;
  // Where nobody asks for a layer's output its last product (Pre-LN: the one behind the activation) is not made again.
  if (sizes.segment > 0 && sizes.layer.norm == Norm::pre) {
    const double segments = std::ceil(layers / static_cast<double>(sizes.segment));
    flops.again -= segments * sizes.tokens * 2 * width * hidden;
  }
  return flops;
}

}  // namespace

TrainingBytes training_bytes(const Engine& engine, const TrainingPlan& plan) {
  EncoderOptions encoder = plan.encoder;
  encoder.feed_forward_width = sizes_of(plan).layer.hidden;
  return training_bytes(engine, NetworkTrainingPlan{.network = layers::specification_of(encoder),
                                                    .lengths = plan.lengths,
                                                    .checkpoint = plan.checkpoint,
                                                    .k = plan.k,
                                                    .moments = plan.moments,
                                                    .attention = plan.attention});
}

TrainingBytes training_bytes(const Engine& engine, const LayerTrainingPlan& plan) {
  const Sizes sizes = sizes_of(plan);
  TrainingBytes bytes = parameter_bytes(sizes, 0);
  const auto state = static_cast<std::int64_t>(layer_saved_bytes(sizes.layer));
  (sizes.segment == 0 ? bytes.saved : bytes.computed_again) = state;
  bytes.scratch = scratch_bytes(sizes, [&](ScratchAccount& account) { walk_layer(engine, sizes, account); });
  return bytes;
}

TrainingFlops training_flops(const TrainingPlan& plan) { return flops_of(sizes_of(plan)); }

TrainingFlops training_flops(const LayerTrainingPlan& plan) { return flops_of(sizes_of(plan)); }

}  // namespace headlight::analysis
