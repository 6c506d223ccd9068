#include "ops/attention_backward/row_sums.h"

#include "ops/attention_backward/kernels.h"
#include "ops/attention_backward/run.h"

namespace headlight::ops {

void differentiate_rows(Engine& engine, std::string_view operation, const AttentionBackwardOperands& operands,
                        const AttentionOptions& options, const RowSums& sums) {
  const TypedView<4>&query = operands.query, &key = operands.key, &value = operands.value;
  const AttentionSizes sizes = {.batch = query.extent(0),
                                .query_length = query.extent(1),
                                .key_length = key.extent(1),
                                .query_heads = query.extent(2),
                                .key_value_heads = key.extent(2),
                                .group = query.extent(2) / key.extent(2),
                                .head_dim = query.extent(3),
                                .value_dim = value.extent(3)};
  const TypedAttentionGradients nothing;
  const BackwardKernels kernels = backward_kernels_of_types(engine, operands, nothing);
  differentiate(engine, operation, operands, nothing, options, sizes, kernels.attention, kernels.backward, sums);
}

}  // namespace headlight::ops
