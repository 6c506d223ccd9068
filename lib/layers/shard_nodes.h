// Nodes of the tree in which the gradients of shards are added: see headlight/gradient_tree.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headlight::layers {

inline constexpr std::int64_t kMostShards = std::int64_t{1} << 20;

// How many of the last nodes are added to one of `size` shards that comes behind them: it and the one before it are
// siblings, their sum and the one before that again. A node has a first shard and a count of them.
template <class Nodes>
[[nodiscard]] std::size_t joined_by(const Nodes& nodes, std::int64_t size) noexcept {
  std::size_t joined = 0;
  for (; joined < nodes.size(); ++joined, size *= 2) {
    const auto& last = nodes[nodes.size() - 1 - joined];
    if (last.count != size || last.first % (2 * size) != 0) break;
  }
  return joined;
}

// Takes that shard in behind the others: `node` is it and what of them is added to it.
template <class Nodes, class Node>
void push_shard(Nodes& nodes, std::int64_t shard, Node node) {
  const std::size_t place = nodes.size() - joined_by(nodes, 1);
  node.first = place == nodes.size() ? shard : nodes[place].first;
  node.count = shard + 1 - node.first;
  nodes.resize(place);
  nodes.push_back(node);
}

}  // namespace headlight::layers
