// Cases of attention as ranks share them out.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/mpi.h"
#include "support/attention_case.h"

namespace headlight::test {

[[nodiscard]] inline AttentionShape shape_of(const AttentionCase& c) {
  return {c.batch, c.query_length, c.key_length, c.query_heads, c.key_value_heads, c.head_dim, c.value_dim};
}

// A random case with any options that attention over ranks takes.
[[nodiscard]] inline AttentionCase random_spread_case(std::uint64_t seed, std::int64_t longest) {
  AttentionCase c = random_attention_case(seed, longest);
  c.mask.reset();
  c.bias.reset();
  c.make_valid();
  return c;
}

// The runs of a number for each head and row, [B, H, L].
[[nodiscard]] inline Tensor<float, 3> share_of_heads(const std::vector<mpi::Run>& runs, std::int64_t rows,
                                                     const Tensor<float, 3>& whole) {
  Tensor<float, 3> share({whole.shape()[0], whole.shape()[1], rows});
  for (std::int64_t b = 0; b < share.shape()[0]; ++b) {
    for (std::int64_t h = 0; h < share.shape()[1]; ++h) {
      std::int64_t at = 0;
      for (const mpi::Run& run : runs) {
        for (std::int64_t i = run.first; i < run.first + run.count; ++i) share(b, h, at++) = whole(b, h, i);
      }
    }
  }
  return share;
}

}  // namespace headlight::test
