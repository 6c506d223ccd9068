#include "mpi/sharded_state.h"

#include <algorithm>
#include <string>

#include "layers/optimizer_runs.h"
#include "layers/shard_nodes.h"
#include "ops/check.h"

namespace headlight::mpi {

// Ranks' parts are as large as whole slices allow.
void ShardedAdamW::State::cut() {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::size_t count = parameters[p].values.size();
    for (std::size_t at = 0; at < count; at += layers::kOptimizerRun) {
      slices.push_back({p, at, elements + at, std::min(layers::kOptimizerRun, count - at)});
    }
    elements += count;
  }
  const auto ranks = static_cast<std::size_t>(transport.size());
  for (std::size_t rank = 0, slice = 0; rank <= ranks; ++rank) {
    while (slice < slices.size() && (rank == ranks || slices[slice].first < elements / ranks * rank)) ++slice;
    first_slices.push_back(slice);
  }
  sums.resize(slices.size());
}

void ShardedAdamW::State::lay_out_nodes() {
  for (int rank = 0; rank < transport.size(); ++rank) {
    const Run run = shards_of(shards, rank, transport.size());
    std::vector<Node> of_rank;
    for (std::int64_t shard = run.first; shard < run.first + run.count; ++shard) {
      layers::push_shard(of_rank, shard, Node{0, 0, rank, nullptr});
    }
    nodes.insert(nodes.end(), of_rank.begin(), of_rank.end());
  }
  joined.reserve(nodes.size());
  const std::size_t own = own_elements().size();
  communication_buffer.resize(std::max(nodes.size() * own, elements));
  for (std::size_t n = 0; n < nodes.size(); ++n) nodes[n].sum = communication_buffer.data() + n * own;
}

void ShardedAdamW::State::make_optimizer(const AdamWOptions& options) {
  if (own_shards().count > 0) tree.emplace(parameters, own_shards().first, own_shards().count);
  std::vector<Parameter> own;
  for (std::size_t n = own_slices().begin; n < own_slices().end; ++n) {
    own.push_back({parameters[slices[n].parameter].name,
                   {static_cast<std::int64_t>(slices[n].count)},
                   values(slices[n]),
                   gradient(slices[n])});
  }
  adamw.emplace(std::move(own), options);
}

// Each rank gets, of every node, the elements that it updates.
void ShardedAdamW::State::add_up() {
  Requests requests;
  const std::size_t own_bytes = own_elements().size() * sizeof(float);
  for (const Node& node : nodes) {
    if (node.rank != transport.rank()) transport.receive(node.rank, node.sum, own_bytes, requests);
  }
  const std::span<const GradientTree::Node> own = tree ? tree->nodes() : std::span<const GradientTree::Node>();
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == transport.rank()) continue;
    const Range range = elements_of(rank);
    for (const GradientTree::Node& node : own) {
      transport.send(rank, node.sum.data() + range.begin, range.size() * sizeof(float), requests);
    }
  }
  std::size_t at = 0;
  for (const Node& node : nodes) {
    if (node.rank != transport.rank()) continue;
    std::copy_n(own[at++].sum.data() + own_elements().begin, own_elements().size(), node.sum);
  }
  transport.wait(requests);
  if (tree) tree->clear();
  add_nodes();
}

// As GradientTree adds them.
void ShardedAdamW::State::add_nodes() {
  const std::size_t own = own_elements().size();
  const auto add_last_two = [&] {
    const Node right = joined.back();
    joined.pop_back();
    float* const left = joined.back().sum;
    for (std::size_t e = 0; e < own; ++e) left[e] = left[e] + right.sum[e];
    joined.back().count += right.count;
    transport.progress();
  };
  joined.clear();
  for (const Node& node : nodes) {
    const std::size_t joins = layers::joined_by(joined, node.count);
    joined.push_back(node);
    for (std::size_t n = 0; n < joins; ++n) add_last_two();
  }
  while (joined.size() > 1) add_last_two();
  const float* from = joined.front().sum;
  for (std::size_t n = own_slices().begin; n < own_slices().end; ++n) {
    std::copy_n(from, slices[n].count, gradient(slices[n]).data());
    from += slices[n].count;
  }
}

void ShardedAdamW::State::exchange_sums(Engine& engine) {
  const std::span<const double> own = adamw->sums_of_squares(engine);
  std::copy(own.begin(), own.end(), sums.begin() + static_cast<std::ptrdiff_t>(own_slices().begin));
  Requests requests;
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == transport.rank()) continue;
    const Range theirs = slices_of(rank);
    transport.receive(rank, sums.data() + theirs.begin, theirs.size() * sizeof(double), requests);
    transport.send(rank, sums.data() + own_slices().begin, own_slices().size() * sizeof(double), requests);
  }
  transport.wait(requests);
}

void ShardedAdamW::State::give_round() {
  for (std::size_t n = own_slices().begin; n < own_slices().end; ++n) {
    const std::span<const float> from = values(slices[n]);
    std::copy(from.begin(), from.end(), communication_buffer.begin() + static_cast<std::ptrdiff_t>(slices[n].first));
  }
  Requests requests;
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == transport.rank()) continue;
    const Range theirs = elements_of(rank), own = own_elements();
    transport.receive(rank, communication_buffer.data() + theirs.begin, theirs.size() * sizeof(float), requests);
    transport.send(rank, communication_buffer.data() + own.begin, own.size() * sizeof(float), requests);
  }
  transport.wait(requests);
  give_slices(parameters);
}

void ShardedAdamW::State::check_whole(std::span<const Parameter> whole) const {
  if (whole.size() != kMoments * parameters.size()) {
    ops::fail(kShardedAdamW, "whole has " + std::to_string(whole.size()) + " tensors, expected the " +
                                 std::to_string(kMoments * parameters.size()) + " moments of all parameters");
  }
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const Parameter& like = parameters[n % parameters.size()];
    if (whole[n].values.size() == like.values.size()) continue;
    ops::fail(kShardedAdamW, "whole has " + std::to_string(whole[n].values.size()) + " numbers for a moment of " +
                                 like.name + ", expected " + std::to_string(like.values.size()));
  }
}

// A moment of the slices of each rank, in `communication_buffer` on the root.
void ShardedAdamW::State::bring_together(int root, std::span<const Parameter> own) {
  std::size_t at = own_elements().begin;
  for (const Parameter& slice : own) {
    std::copy(slice.values.begin(), slice.values.end(), communication_buffer.begin() + static_cast<std::ptrdiff_t>(at));
    at += slice.values.size();
  }
  Requests requests;
  if (transport.rank() != root) {
    transport.send(root, communication_buffer.data() + own_elements().begin, own_elements().size() * sizeof(float),
                   requests);
  } else {
    for (int rank = 0; rank < transport.size(); ++rank) {
      const Range theirs = elements_of(rank);
      if (rank != root) {
        transport.receive(rank, communication_buffer.data() + theirs.begin, theirs.size() * sizeof(float), requests);
      }
    }
  }
  transport.wait(requests);
}

// From `communication_buffer` to tensors like the parameters.
void ShardedAdamW::State::give_slices(std::span<const Parameter> to) const {
  for (const Slice& slice : slices) {
    std::copy_n(communication_buffer.begin() + static_cast<std::ptrdiff_t>(slice.first), slice.count,
                to[slice.parameter].values.begin() + static_cast<std::ptrdiff_t>(slice.begin));
  }
}

}  // namespace headlight::mpi
