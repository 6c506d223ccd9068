// The gradient of a bias that tells distances alone, of rows that are spread over ranks: what a layer in training asks
// SequenceAttention for.
#pragma once

#include "headlight/mpi.h"
#include "headlight/row_shards.h"
#include "ops/attention_backward/operands.h"

namespace headlight::mpi {

// As TrainingAttention::differentiate_distances(): the rank's rows, those of its shards, while keys are broadcast. Each
// rank works on all heads of its rows. Throws Error, on all ranks.
Statistics differentiate_distances(Group& group, Engine& engine, const AttentionShape& whole,
                                   const ops::AttentionBackwardOperands& shares, const RowShards& shards,
                                   const View<float, 3>& distances, const AttentionOptions& options, Spread spread);

}  // namespace headlight::mpi
