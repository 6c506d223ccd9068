// What a rotation asks of its specification.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "headlight/rotary.h"
#include "ops/check.h"

namespace headlight::ops {

inline void check_above(std::string_view operation, std::string_view field, double value, double bound) {
  if (value > bound && std::isfinite(value)) return;
  fail(operation, field, " is ", value, ", expected a finite number above ", bound);
}

inline void check_rotary_factors(std::string_view operation, std::string_view field, std::span<const double> factors,
                                 std::int64_t pairs) {
  const auto count = static_cast<std::int64_t>(factors.size());
  check_shape(operation, field, {&count, 1}, {&pairs, 1}, "[dims / 2]");
  for (const double factor : factors) check_above(operation, field, factor, 0);
}

inline void check_rotary_scaling(std::string_view operation, const RotaryScaling& scaling, std::int64_t dims) {
  using Kind = RotaryScalingKind;
  if (scaling.kind > Kind::proportional) {
    fail(operation, "scaling.kind is ", static_cast<int>(scaling.kind), ", expected one of the enum");
  }
  if (scaling.kind == Kind::none) return;
  check_above(operation, "scaling.factor", scaling.factor, 0);
  if (scaling.kind == Kind::linear || scaling.kind == Kind::proportional) return;
  // The logarithm of 1 would divide that of longrope's factor.
  const std::int64_t least = scaling.kind == Kind::longrope ? 2 : 1;
  if (scaling.original_length < least) {
    fail(operation, "scaling.original_length is ", scaling.original_length, ", expected at least ", least);
  }
  if (scaling.kind == Kind::dynamic && scaling.factor < 1) {
    fail(operation, "scaling.factor is ", scaling.factor, ", expected at least 1 of a dynamic one");
  }
  if (scaling.kind == Kind::llama3) {
    check_above(operation, "scaling.low_frequency_factor", scaling.low_frequency_factor, 0);
    check_above(operation, "scaling.high_frequency_factor", scaling.high_frequency_factor,
                scaling.low_frequency_factor);
  }
  if (scaling.kind == Kind::yarn) {
    check_above(operation, "scaling.slow_turns", scaling.slow_turns, 0);
    check_above(operation, "scaling.fast_turns", scaling.fast_turns, 0);
  }
  if (scaling.kind == Kind::longrope) {
    check_rotary_factors(operation, "scaling.short_factors", scaling.short_factors, dims / 2);
    check_rotary_factors(operation, "scaling.long_factors", scaling.long_factors, dims / 2);
  }
  if (!(scaling.attention_factor >= 0 && std::isfinite(scaling.attention_factor))) {
    fail(operation, "scaling.attention_factor is ", scaling.attention_factor, ", expected a finite number ≥ 0");
  }
}

inline void check_rotary_spec(std::string_view operation, const RotarySpec& spec, std::int64_t head_dim) {
  if (head_dim < 0) fail(operation, "head_dim is ", head_dim, ", expected at least 0");
  if (spec.dims < 0 || spec.dims > head_dim || spec.dims % 2 != 0) {
    fail(operation, "dims is ", spec.dims, ", expected an even number from 0 to ", head_dim, " (head_dim)");
  }
  if (spec.scaling.kind == RotaryScalingKind::proportional && head_dim % 2 != 0) {
    fail(operation, "head_dim is ", head_dim, ", expected an even number where angles are proportional");
  }
  if (spec.pairing > RotaryPairing::interleaved) {
    fail(operation, "pairing is ", static_cast<int>(spec.pairing), ", expected one of the enum");
  }
  check_above(operation, "base", spec.base, 1);
  check_rotary_scaling(operation, spec.scaling, spec.dims);
}

}  // namespace headlight::ops
