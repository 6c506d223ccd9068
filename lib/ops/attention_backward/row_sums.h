// Gradients that are sums over rows of queries, for layers, which may want them of some rows by themselves.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "headlight/attention_backward.h"
#include "ops/attention_backward/operands.h"

namespace headlight::ops {

// Rows of queries, the same of every sample, and to which of several sums they belong.
struct RowsOfSum {
  std::int64_t sum;
  std::int64_t first;
  std::int64_t count;
};

// What is summed over rows beside the gradients of attention_backward(), where it is asked for; overwritten.
struct RowSums {
  std::span<const RowsOfSum> rows{};  // of each sum ascending
  View<float, 2> sinks{};             // [sums, Hq]: of attention_backward(), of those rows
  // Of a bias that tells distances alone: dS of all pairs of a distance, to distances(sum, h, j − i + Lq − 1) [sums,
  // Hq, Lq + Lk − 1].
  View<float, 3> distances{};
};

// Of a call of attention_backward() with these operands, which is not checked again. For distances it works out the
// scores once more. `operation` is who asks for the scratch memory.
void differentiate_rows(Engine& engine, std::string_view operation, const AttentionBackwardOperands& operands,
                        const AttentionOptions& options, const RowSums& sums);

}  // namespace headlight::ops
