// Attention as a case: shapes, masks, inputs, the check against float64 and what to compare with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/case.h"
#include "headlight/attention.h"
#include "native_peers/unfused_attention.h"

namespace headlight::bench {

struct AttentionCase {
  enum class Memory : std::uint8_t {
    by_position,  // [B, L, H, D]
    by_head       // [B, H, L, D]
  };

  std::int64_t batch = 1;
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  std::int64_t query_heads = 1;
  std::int64_t key_value_heads = 1;
  std::int64_t head_dim = 0;
  Memory memory = Memory::by_position;
  Causal causal = Causal::none;
  Window window{};
  std::vector<std::int64_t> key_lengths{};
  std::vector<std::int64_t> offsets{};  // of packed sequences
  bool boolean_mask = false;            // hides every eighth entry, here and there
  bool bias = false;                    // falls with the distance between query and key
  bool slopes = false;                  // the same from a slope a head (ALiBi); peers add a bias
  // Bound by reading keys and values rather than by arithmetic.
  bool bound_by_reading = false;
};

// What each row of each sample sees, [B · Lq], by the structural masks.
[[nodiscard]] std::vector<Interval> intervals_of(const AttentionCase& shape);

// Peers: unfused attention over the fastest BLAS, and headlight's own unfused route.
[[nodiscard]] Work attention_work(const AttentionCase& shape, const CaseContext& context);

}  // namespace headlight::bench
