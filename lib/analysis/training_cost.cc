#include "headlight/analysis/training_cost.h"

#include <algorithm>
#include <cmath>

#include "headlight/analysis/presets.h"
#include "layers/rows.h"
#include "layers/segments.h"
#include "layers/sizes.h"
#include "ops/check.h"
#include "runtime/parallel.h"

namespace headlight::analysis {

namespace {

constexpr std::string_view kName = "training_cost";

struct Sizes {
  std::int64_t tokens = 0;
  double pairs = 0;
  std::int64_t width = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t segment = 0;  // layers computed again at a time; 0: all is kept
  MergeCost merge{};         // of one layer, a token
};

Sizes sizes_of(const TrainingPlan& plan) {
  const EncoderOptions& encoder = plan.encoder;
  layers::at_least(1, kName, "width", encoder.width);
  layers::at_least(1, kName, "heads", encoder.heads);
  layers::at_least(1, kName, "vocabulary", encoder.vocabulary);
  layers::at_least(1, kName, "max_positions", encoder.max_positions);
  layers::at_least(0, kName, "token_types", encoder.token_types);
  layers::at_least(0, kName, "feed_forward_width", encoder.feed_forward_width);
  layers::at_least(0, kName, "layers", encoder.layers);
  layers::at_least(0, kName, "k", plan.k);
  layers::at_least(0, kName, "moments", plan.moments);
  Sizes sizes = {.width = encoder.width,
                 .hidden = layers::given_or(encoder.feed_forward_width, 4 * encoder.width),
                 .layers = encoder.layers,
                 .segment = layers::segment_length(plan.checkpoint, plan.k, encoder.layers),
                 .merge = merge_costs(encoder.width, encoder.heads, 1)[static_cast<std::size_t>(encoder.merge)]};
  for (const std::int64_t length : plan.lengths) {
    layers::at_least(0, kName, "a length", length);
    sizes.tokens += length;
    sizes.pairs += static_cast<double>(length) * static_cast<double>(length);
  }
  return sizes;
}

std::int64_t in_bytes(const runtime::ScratchLayout& layout) noexcept {
  return static_cast<std::int64_t>(layout.bytes());
}

std::int64_t row_bytes(std::int64_t tokens, std::int64_t columns) noexcept {
  runtime::ScratchLayout layout;
  layout.add<float>(tokens, layers::row_distance(columns));
  return in_bytes(layout);
}

// What lies between the heads and the last product: what weighs or gates them, and the heads after it.
std::int64_t merge_bytes(const Sizes& sizes, std::int64_t heads) noexcept {
  switch (sizes.merge.merge) {
    case Merge::concatenate:
      return 0;
    case Merge::average:
    case Merge::weighted:
      return row_bytes(1, heads) + row_bytes(sizes.tokens, sizes.width / heads);
    case Merge::weighted_by_input:
      return row_bytes(sizes.tokens, heads) + row_bytes(sizes.tokens, sizes.width / heads);
    case Merge::gated_by_head:
      return row_bytes(sizes.tokens, heads) + row_bytes(sizes.tokens, sizes.width);
    case Merge::gated_by_element:
      return 2 * row_bytes(sizes.tokens, sizes.width);
  }
  return 0;
}

// What one layer keeps: query, key and value; the heads' outputs; log-sum-exp; before and after the first
// normalisation; before the activation; before (Pre-LN: after) the second normalisation.
std::int64_t layer_bytes(const Sizes& sizes, std::int64_t heads) noexcept {
  runtime::ScratchLayout layout;
  layout.add<float>(sizes.tokens, heads);
  return merge_bytes(sizes, heads) + row_bytes(sizes.tokens, 3 * sizes.width) + row_bytes(sizes.tokens, sizes.width) +
         in_bytes(layout) + 3 * row_bytes(sizes.tokens, sizes.width) + row_bytes(sizes.tokens, sizes.hidden);
}

}  // namespace

TrainingBytes training_bytes(const TrainingPlan& plan) {
  const Sizes sizes = sizes_of(plan);
  const EncoderOptions& encoder = plan.encoder;
  const std::int64_t width = sizes.width;
  const std::int64_t tables = (encoder.vocabulary + encoder.max_positions + encoder.token_types) * width;
  const std::int64_t of_a_layer =
      3 * width * width + sizes.merge.weights + 4 * width + 2 * width * sizes.hidden + sizes.hidden + width + 4 * width;
  TrainingBytes bytes;
  bytes.parameters = 4 * (tables + 2 * width + sizes.layers * of_a_layer);
  bytes.gradients = bytes.parameters;
  bytes.optimizer = plan.moments * bytes.parameters;
  const std::int64_t row = row_bytes(sizes.tokens, width);
  const std::int64_t state = layer_bytes(sizes, encoder.heads);
  const std::int64_t every = std::max<std::int64_t>(sizes.segment, 1);
  bytes.saved = row * ((sizes.layers + every - 1) / every + 1 + (encoder.norm == Norm::post ? 1 : 0));
  if (sizes.segment == 0) {
    bytes.saved += sizes.layers * state;
  } else {
    bytes.computed_again = sizes.segment * state + (sizes.segment - 1) * row;
  }
  return bytes;
}

TrainingFlops training_flops(const TrainingPlan& plan) {
  const Sizes sizes = sizes_of(plan);
  const auto width = static_cast<double>(sizes.width);
  const auto hidden = static_cast<double>(sizes.hidden);
  const auto tokens = static_cast<double>(sizes.tokens);
  const auto layers = static_cast<double>(sizes.layers);
  const double products = tokens * (6 * width * width + sizes.merge.flops + 4 * width * hidden);
  TrainingFlops flops;
  flops.forward = layers * (products + 4 * sizes.pairs * width);
  flops.backward = layers * (2 * products + 10 * sizes.pairs * width);
  if (sizes.segment > 0) flops.again = flops.forward;
  // Where nobody asks for a layer's output its last product (Pre-LN: the one behind the activation) is not made again.
  if (sizes.segment > 0 && plan.encoder.norm == Norm::pre) {
    const double segments = std::ceil(layers / static_cast<double>(sizes.segment));
    flops.again -= segments * tokens * 2 * width * hidden;
  }
  return flops;
}

}  // namespace headlight::analysis
