// Plain twin of merge_attention().
#pragma once

#include <cmath>
#include <span>

#include "headlight/view.h"

namespace headlight::reference {

// As headlight::AttentionPart, of numbers that are floats.
struct AttentionPart {
  View<const float, 4> out;
  View<const float, 3> log_sum_exp;
};

// out = Σ_p exp(log_sum_exp_p − log_sum_exp) · out_p, log_sum_exp = log Σ_p exp(log_sum_exp_p).
template <class Scalar>
void merge_attention(std::span<const AttentionPart> parts, View<Scalar, 4> out, View<Scalar, 3> log_sum_exp) {
  for (std::int64_t b = 0; b < out.extent(0); ++b) {
    for (std::int64_t h = 0; h < out.extent(2); ++h) {
      for (std::int64_t i = 0; i < out.extent(1); ++i) {
        Scalar largest = -INFINITY, sum = 0;
        for (const AttentionPart& part : parts) largest = std::fmax(largest, Scalar{part.log_sum_exp(b, h, i)});
        if (largest != -INFINITY) {
          for (const AttentionPart& part : parts) sum += std::exp(Scalar{part.log_sum_exp(b, h, i)} - largest);
        }
        log_sum_exp(b, h, i) = largest + std::log(sum);
        for (std::int64_t d = 0; d < out.extent(3); ++d) {
          out(b, i, h, d) = 0;
          for (const AttentionPart& part : parts) {
            if (part.log_sum_exp(b, h, i) == -INFINITY) continue;
            const Scalar weight = std::exp(Scalar{part.log_sum_exp(b, h, i)} - log_sum_exp(b, h, i));
            out(b, i, h, d) += weight * Scalar{part.out(b, i, h, d)};
          }
        }
      }
    }
  }
}

}  // namespace headlight::reference
