// Gradients of a batch that is computed in shards: their sum, in an order of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/parameters.h"

namespace headlight {

// Adds the gradients of shards 0 … S − 1 of a batch in a fixed tree, ((0 + 1) + (2 + 3)) + ((4 + 5) + 6) for seven:
// node i of a level is node 2i of the level below plus node 2i + 1, or node 2i alone where that is the last. So the sum
// has the same bits whoever computes which shards, at any number of threads: one process all of them, or several some
// each, of which this is one (headlight/mpi.h). Gradients that layers add up by themselves, from one backward pass to
// the next, have bits that depend on all that was added before.
//
// Memory: ⌊log₂(S + 1)⌋ copies of the gradients for all S shards of a batch, twice that at most for some of them.
class HEADLIGHT_API GradientTree {
 public:
  // For `count` shards from `first` on of every batch. Parameters come from layer.parameters() after
  // set_training(true), and stay where they are while the tree lives. Throws std::invalid_argument for a parameter
  // without a gradient and for shards that are none, or have numbers outside 0 … 2²⁰ − 1; OutOfMemory.
  explicit GradientTree(std::vector<Parameter> parameters, std::int64_t first, std::int64_t count);
  GradientTree(const GradientTree&) = delete;
  GradientTree& operator=(const GradientTree&) = delete;

  // Takes the gradients for those of the next shard, and sets them to 0 for the one after it. Throws
  // std::invalid_argument behind the last of them.
  void take(Engine& engine);
  // The same for the last shard: then the gradients are the sum over all, and the next batch may begin. Throws
  // std::invalid_argument where shards are missing.
  void finish(Engine& engine);
  // Forgets the shards taken so far.
  void clear() noexcept { nodes_.clear(); }

  // The sum over some shards, first … first + count − 1, which is a node of the tree.
  struct Node {
    std::int64_t first;
    std::int64_t count;
    std::span<const float> sum;  // of all parameters, one behind the other
  };
  // What the shards taken so far have come to, ascending: the largest nodes that they are all of.
  [[nodiscard]] std::span<const Node> nodes() const noexcept { return nodes_; }

 private:
  struct Run {
    std::span<float> gradient;
    std::size_t first;  // its place among all gradients
  };
  [[nodiscard]] std::int64_t next() const noexcept;
  void push_next(std::span<const float> sum);
  // Adds the last `joined` nodes to the gradients, which go to `to` and leave zeros behind, or stay for null.
  void join(Engine& engine, std::size_t joined, float* to);

  std::int64_t first_;
  std::int64_t count_;
  std::size_t elements_ = 0;
  std::vector<Run> runs_;
  std::vector<std::vector<float>> memory_;  // of node n
  std::vector<Node> nodes_;
};

}  // namespace headlight
