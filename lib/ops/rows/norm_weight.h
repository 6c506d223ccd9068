// The weight of a norm as its gradient takes it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ops/rows/blocks.h"
#include "runtime/parallel.h"

namespace headlight::ops {

// weight, or 1 + weight in scratch memory: adding it in every row would take longer than all else that a row wants.
// Throws OutOfMemory in the name of `operation`.
class NormWeight {
 public:
  NormWeight(Engine& engine, std::string_view operation, std::span<const float> weight, bool one_plus_weight)
      : weight_(given(weight)) {
    if (!one_plus_weight || weight.empty()) return;
    memory_.emplace(engine, weight.size_bytes(), operation);
    auto* const sums = reinterpret_cast<float*>(memory_->data());
    for (std::size_t e = 0; e < weight.size(); ++e) sums[e] = 1.0f + weight[e];
    weight_ = sums;
  }

  // Null: 1.
  [[nodiscard]] const float* data() const noexcept { return weight_; }

 private:
  const float* weight_;
  std::optional<runtime::Scratch> memory_;
};

}  // namespace headlight::ops
