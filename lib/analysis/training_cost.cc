// What a training step of an Encoder takes: that of the network which it is.
#include "headlight/analysis/training_cost.h"

#include <string_view>

#include "analysis/sizes.h"
#include "layers/network/encoder_graph.h"
#include "layers/sizes.h"
#include "ops/check.h"

namespace headlight::analysis {

namespace {

constexpr std::string_view kTrainingCostName = "training_cost";

// That a network can be made of it at all: in float64, for until here nobody knows that integers hold it.
void check_bytes(const TrainingPlan& plan) {
  const EncoderOptions& encoder = plan.encoder;
  const auto width = static_cast<double>(encoder.width), layers = static_cast<double>(encoder.layers);
  const double tables = static_cast<double>(encoder.vocabulary) + static_cast<double>(encoder.max_positions) +
                        static_cast<double>(encoder.token_types);
  const double numbers = width * (tables + layers * (4 * width + 2 * static_cast<double>(encoder.feed_forward_width)));
  double tokens = 0;
  for (const std::int64_t length : plan.lengths) tokens += static_cast<double>(length);
  // As many bytes as no machine has, and far below 2⁶³.
  if (4 * (numbers * (2 + static_cast<double>(plan.moments)) + tokens * width) > 1e14) {
    ops::fail(kTrainingCostName, "the step takes more than 10¹⁴ bytes");
  }
}

NetworkTrainingPlan network_plan(const TrainingPlan& plan) {
  TrainingPlan sized = plan;
  EncoderOptions& encoder = sized.encoder;
  layers::at_least(1, kTrainingCostName, "vocabulary", encoder.vocabulary);
  layers::at_least(1, kTrainingCostName, "max_positions", encoder.max_positions);
  layers::at_least(0, kTrainingCostName, "token_types", encoder.token_types);
  layers::at_least(0, kTrainingCostName, "layers", encoder.layers);
  check_width(kTrainingCostName, encoder.width, encoder.heads);
  check_size(kTrainingCostName, "feed_forward_width", encoder.feed_forward_width, 0, 4 * kWidest);
  layers::probability(kTrainingCostName, "dropout", encoder.dropout);
  layers::at_least(0, kTrainingCostName, "moments", plan.moments);
  for (const std::int64_t length : plan.lengths) layers::at_least(0, kTrainingCostName, "a length", length);
  encoder.feed_forward_width = layers::given_or(encoder.feed_forward_width, 4 * encoder.width);
  check_bytes(sized);
  return {.network = layers::specification_of(encoder),
          .lengths = plan.lengths,
          .checkpoint = plan.checkpoint,
          .k = plan.k,
          .moments = plan.moments,
          .attention = plan.attention};
}

}  // namespace

TrainingBytes training_bytes(const Engine& engine, const TrainingPlan& plan) {
  return training_bytes(engine, network_plan(plan));
}

TrainingFlops training_flops(const TrainingPlan& plan) { return training_flops(network_plan(plan)); }

}  // namespace headlight::analysis
