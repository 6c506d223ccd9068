// What training makes small.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/view.h"

namespace headlight {

// What does not count, and where the gradient goes.
struct CrossEntropyOptions {
  // Rows with this label count for nothing.
  std::int64_t ignore_label = -100;
  // [N, V], written where given; may be logits itself.
  View<float, 2> logits_gradient{};
};

// What cross_entropy() finds.
struct CrossEntropy {
  // The mean over the rows that count; 0 where there are none.
  double loss = 0;
  // How many count.
  std::int64_t rows = 0;
};

// loss = 1/R Σ_i (log Σ_j exp(logits_ij) − logits_i,labels[i]) over the R rows whose label is not ignore_label, and its
// gradient (softmax(logits)_ij − [j = labels_i]) / R, zeros in rows that do not count; logits [N, V], labels [N] in
// [0, V). Losses of rows are added in ascending order, in float64. Throws std::invalid_argument for another label.
HEADLIGHT_API CrossEntropy cross_entropy(Engine& engine, View<const float, 2> logits,
                                         std::span<const std::int64_t> labels, const CrossEntropyOptions& options = {});

}  // namespace headlight
