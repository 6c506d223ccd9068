// Nodes of the tree in which the gradients of shards are added: see headlight/gradient_tree.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headlight::layers {

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

}  // namespace headlight::layers
