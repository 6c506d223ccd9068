#include <array>
#include <cstdio>

#include "mpi/call.h"
#include "mpi/estimate.h"

namespace headlight::mpi {

Plan plan(const AttentionShape& whole, const AttentionOptions& options, int rank, int size, const Spread& spread) {
  const Call call = make_call("mpi::plan", whole, options, rank, size, spread);
  const Cost forward = forward_cost(call.whole, options, call.grid.ring, call.grid.head_ranks, spread);
  const Cost backward = backward_cost(call.whole, options, call.grid.ring, call.grid.head_ranks, spread);
  return {.ring = call.grid.ring,
          .head_ranks = call.grid.head_ranks,
          .block = call.block,
          .queries = call.queries.share,
          .keys = call.keys.share,
          .query_rows = rows_of(call.queries.share),
          .key_rows = rows_of(call.keys.share),
          .hidden_bytes = forward.hidden_bytes,
          .exchanged_bytes = forward.exchanged_bytes,
          .backward_hidden_bytes = backward.hidden_bytes,
          .backward_exchanged_bytes = backward.exchanged_bytes,
          .product_seconds = forward.flops / spread.flops_per_second,
          .hidden_seconds = forward.sent_bytes / spread.bytes_per_second,
          .exchanged_seconds = forward.exchanged_bytes / spread.bytes_per_second};
}

std::string Plan::text() const {
  std::array<char, 256> line{};
  const char* const way = head_ranks == 1 ? "by sequence" : ring == 1 ? "by heads" : "by sequence and heads";
  std::snprintf(line.data(), line.size(),
                "%s: a ring of %d, heads over %d, blocks of %lld rows; %.3g MB come while products take %.3g s "
                "(%.3g s), %.3g MB are waited for (%.3g s)",
                way, ring, head_ranks, static_cast<long long>(block), hidden_bytes / 1e6, product_seconds,
                hidden_seconds, exchanged_bytes / 1e6, exchanged_seconds);
  return line.data();
}

}  // namespace headlight::mpi
