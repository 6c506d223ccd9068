// The rotations of tests/golden/rotary.py, in its order.
#pragma once

#include <vector>

#include "headlight/rotary.h"

namespace headlight::test {

struct RotaryCase {
  std::int64_t head_dim;
  std::int64_t length;  // of the sequence
  RotarySpec spec;
};

[[nodiscard]] inline std::vector<RotaryCase> rotary_cases() {
  using Kind = RotaryScalingKind;
  std::vector<double> short_factors, long_factors;
  for (int i = 0; i < 8; ++i) {
    short_factors.push_back(1 + i / 8.0);
    long_factors.push_back(1 + 2 * i);
  }
  const auto longrope = [&](double factor, double attention_factor) {
    return RotaryScaling{.kind = Kind::longrope,
                         .factor = factor,
                         .original_length = 64,
                         .attention_factor = attention_factor,
                         .short_factors = short_factors,
                         .long_factors = long_factors};
  };
  const auto dynamic = [](double factor) {
    return RotaryScaling{.kind = Kind::dynamic, .factor = factor, .original_length = 64};
  };
  const auto llama3 = [](double factor, std::int64_t original, double low, double high) {
    return RotaryScaling{.kind = Kind::llama3,
                         .factor = factor,
                         .original_length = original,
                         .low_frequency_factor = low,
                         .high_frequency_factor = high};
  };
  const auto yarn = [](double factor, std::int64_t original) {
    return RotaryScaling{.kind = Kind::yarn, .factor = factor, .original_length = original};
  };
  RotaryScaling turns = yarn(4, 300), weaker = yarn(16, 4096);
  turns.fast_turns = 8;
  turns.slow_turns = 2;
  turns.whole_pairs = false;
  weaker.attention_factor = 0.75;
  const auto of = [](std::int64_t head_dim, double base, std::int64_t length, const RotaryScaling& scaling) {
    return RotaryCase{head_dim, length, {.dims = 16, .base = base, .scaling = scaling}};
  };
  return {of(16, 10000, 7, {}),
          of(32, 10000, 7, {}),
          of(16, 500, 7, {.kind = Kind::linear, .factor = 2.5}),
          of(16, 10000, 40, dynamic(4)),
          of(16, 10000, 65, dynamic(4)),
          of(16, 10000, 500, dynamic(1.5)),
          of(16, 500000, 7, llama3(8, 8192, 1, 4)),
          of(16, 10000, 7, llama3(32, 100, 0.5, 3)),
          of(16, 10000, 7, yarn(16, 4096)),
          of(16, 1000, 7, turns),
          of(16, 10000, 7, yarn(0.5, 2)),
          of(16, 10000, 7, weaker),
          of(16, 10000, 64, longrope(8, 0)),
          of(16, 10000, 65, longrope(8, 0)),
          of(16, 10000, 65, longrope(1, 1.25)),
          of(32, 10000, 7, {.kind = Kind::proportional, .factor = 2})};
}

}  // namespace headlight::test
