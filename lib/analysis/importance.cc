#include <array>
#include <cmath>
#include <string>

#include "headlight/analysis/diversity.h"
#include "ops/check.h"
#include "ops/offsets_check.h"

namespace headlight::analysis {
namespace {

constexpr std::string_view kImportanceName = "HeadImportance";

}  // namespace

HeadImportance::HeadImportance(std::int64_t heads) {
  if (heads < 1) ops::fail(kImportanceName, "heads is " + std::to_string(heads) + ", expected at least 1");
  sums_.resize(static_cast<std::size_t>(heads));
}

void HeadImportance::add(View<const float, 3> outputs, View<const float, 3> gradients,
                         std::span<const std::int64_t> offsets) {
  ops::check_view(kImportanceName, "outputs", outputs);
  ops::check_view(kImportanceName, "gradients", gradients);
  const std::array<std::int64_t, 3> expected = {-1, static_cast<std::int64_t>(sums_.size()), -1};
  ops::check_shape(kImportanceName, "outputs", outputs.shape, expected, "[N, H, D]");
  ops::check_shape(kImportanceName, "gradients", gradients.shape, outputs.shape, "the shape of outputs");
  const std::array<std::int64_t, 2> whole = {0, outputs.extent(0)};
  if (offsets.empty()) offsets = whole;
  ops::check_offsets(kImportanceName, "offsets", offsets, outputs.extent(0), "N");
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    for (std::size_t head = 0; head < sums_.size(); ++head) {
      double product = 0;
      for (std::int64_t n = offsets[s]; n < offsets[s + 1]; ++n) {
        for (std::int64_t d = 0; d < outputs.extent(2); ++d) {
          product += static_cast<double>(outputs(n, head, d)) * static_cast<double>(gradients(n, head, d));
        }
      }
      sums_[head] += std::abs(product);
    }
    ++samples_;
  }
}

Measure HeadImportance::importance(std::int64_t head) const {
  if (head < 0 || head >= static_cast<std::int64_t>(sums_.size())) {
    ops::fail(kImportanceName,
              "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(sums_.size() - 1));
  }
  if (samples_ == 0) return Undefined::no_rows;
  return sums_[static_cast<std::size_t>(head)] / static_cast<double>(samples_);
}

}  // namespace headlight::analysis
