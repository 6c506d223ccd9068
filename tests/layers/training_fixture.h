// Layers in training against their float64 twins.
#pragma once

#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "layers/twins.h"
#include "support/gradient_check.h"

namespace headlight::test {

// Gradients in float32 of sums of a few hundred products.
inline constexpr GradientCheck kLayerCheck = {.tolerance = 2e-5, .places = 60};

// The dropouts of a transformer layer in that step, as headlight/layers/training.h numbers them.
inline reference::LayerDropouts dropouts_of(const TrainingStep& step, float probability) {
  return {step.dropout(probability, 0), step.dropout(probability, 1), step.dropout(probability, 2),
          step.dropout(probability, 3), step.dropout(probability, 4), step.dropout(probability, 5)};
}

// Every parameter's gradient against the differences of `loss`, which reads the twin's weights.
inline void expect_parameter_gradients(Layer& layer, TwinWeights<double>& twin, const std::function<double()>& loss,
                                       const GradientCheck& check = kLayerCheck) {
  for (const Parameter& parameter : layer.parameters()) {
    ASSERT_EQ(parameter.gradient.size(), parameter.values.size()) << parameter.name;
    std::vector<double>& values = twin.values(parameter.name);
    EXPECT_TRUE(gradient_agrees(values.data(), parameter.gradient.data(), static_cast<std::int64_t>(values.size()),
                                loss, check))
        << parameter.name;
  }
}

}  // namespace headlight::test
