// What training may keep between its passes: every checkpoint with the engine's attention, and the one written out.
#pragma once

#include <cstdint>
#include <ostream>

#include "baseline/attention_unfused.h"
#include "headlight/analysis/attention_cost.h"
#include "headlight/layers/training.h"

namespace headlight::test {

struct Keeping {
  Checkpoint checkpoint = Checkpoint::keep_linear;
  bool unfused = false;

  // That of a plan of headlight/analysis/training_cost.h, and the method that a plan names for it.
  [[nodiscard]] static Keeping of(const auto& plan) {
    return {plan.checkpoint, plan.attention == analysis::AttentionMethod::unfused};
  }
  [[nodiscard]] analysis::AttentionMethod method() const {
    return unfused ? analysis::AttentionMethod::unfused : analysis::AttentionMethod::recomputing;
  }
  [[nodiscard]] SavedState saved(std::int64_t k = 0) const {
    return SavedState(checkpoint, k, unfused ? baseline::unfused_attention() : fused_attention());
  }
  friend std::ostream& operator<<(std::ostream& out, const Keeping& keeping) {
    return out << "checkpoint " << static_cast<int>(keeping.checkpoint) << (keeping.unfused ? ", unfused" : "");
  }
};

inline constexpr Keeping kKeepings[] = {{Checkpoint::keep_linear},
                                        {Checkpoint::layer_input},
                                        {Checkpoint::every_k_layers},
                                        {Checkpoint::keep_linear, true}};

}  // namespace headlight::test
