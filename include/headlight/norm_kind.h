// Which normalisations there are: normalization.h applies them to rows, head_rows.h to the heads of rows.
#pragma once

#include <cstdint>

namespace headlight {

// What a row, or a head of one, is divided by, and more.
enum class NormKind : std::uint8_t {
  none,   // y = x: there is no normalisation
  layer,  // y = (x − mean(x)) / √(var(x) + epsilon) · w + b (Ba et al. 2016)
  rms,    // y = x / √(mean(x²) + epsilon) · w (Zhang & Sennrich 2019)
};

}  // namespace headlight
