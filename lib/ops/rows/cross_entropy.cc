#include <array>

#include "headlight/loss.h"
#include "kernels/kernels.h"
#include "ops/check.h"
#include "ops/rows/blocks.h"
#include "ops/rows/in_place.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"

namespace headlight {

namespace {

constexpr std::string_view kCrossEntropyName = "cross_entropy";

// How many labels count.
std::int64_t checked_labels(std::span<const std::int64_t> labels, const View<const float, 2>& logits,
                            std::int64_t ignore_label) {
  if (labels.size() != static_cast<std::size_t>(logits.extent(0))) {
    ops::fail(kCrossEntropyName, "labels has ", labels.size(), " entries, expected ", logits.extent(0),
              " (one for each row of logits)");
  }
  std::int64_t count = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] == ignore_label) continue;
    ++count;
    if (labels[n] < 0 || labels[n] >= logits.extent(1)) {
      ops::fail(kCrossEntropyName, "label ", n, " is ", labels[n], ", expected 0 to ", logits.extent(1) - 1, ", or ",
                ignore_label, " for none");
    }
  }
  return count;
}

}  // namespace

CrossEntropy cross_entropy(Engine& engine, View<const float, 2> logits, std::span<const std::int64_t> labels,
                           const CrossEntropyOptions& options) {
  const ops::Extent extent = ops::check_view(kCrossEntropyName, "logits", logits);
  const View<float, 2>& gradient = options.logits_gradient;
  if (gradient) {
    const ops::Extent gradient_extent =
        ops::check_output(kCrossEntropyName, "logits_gradient", gradient, logits.shape, "the shape of logits");
    ops::check_same_or_disjoint(kCrossEntropyName, "logits_gradient", gradient, gradient_extent, "logits", logits,
                                extent);
    ops::check_disjoint(kCrossEntropyName, "logits_gradient", gradient_extent, "labels", ops::extent_of(labels));
  }
  const std::int64_t count = checked_labels(labels, logits, options.ignore_label);
  if (logits.size() == 0) return {};

  const std::int64_t rows = logits.extent(0);
  runtime::ScratchLayout layout;
  const auto losses_part = layout.add<float>(rows);
  const runtime::Scratch scratch(engine, layout.bytes(), kCrossEntropyName);
  float* const losses = losses_part.in(scratch.data());
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).cross_entropy;
  ops::for_row_blocks(engine, rows, logits.extent(1), runtime::costs::kCrossEntropy,
                      [&](std::int64_t first, std::int64_t block) {
                        kernel({.logits = ops::rows_from(logits, first),
                                .gradient = ops::rows_from(gradient, first),
                                .labels = labels.data() + first,
                                .ignore_label = options.ignore_label,
                                .rows = block,
                                .columns = logits.extent(1),
                                .scale = count == 0 ? 0.0f : 1.0f / static_cast<float>(count),
                                .losses = losses + first});
                      });
  double sum = 0;
  for (std::int64_t n = 0; n < rows; ++n) sum += static_cast<double>(losses[n]);
  return {count == 0 ? 0 : sum / static_cast<double>(count), count};
}

}  // namespace headlight
