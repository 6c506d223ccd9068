#include "headlight/gradient_tree.h"

#include <algorithm>
#include <new>
#include <string>

#include "headlight/out_of_memory.h"
#include "layers/shard_nodes.h"
#include "ops/check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {

namespace {

constexpr std::string_view kGradientTree = "GradientTree";
// Elements that a task joins at a time: 8 KiB of gradients stay in the nearest cache while nodes are added.
constexpr std::size_t kRun = 2048;
using layers::kMostShards;
constexpr std::size_t kMostLevels = 21;

}  // namespace

GradientTree::GradientTree(std::vector<Parameter> parameters, std::int64_t first, std::int64_t count)
    : first_(first), count_(count) {
  if (first < 0 || count < 1 || count > kMostShards - first) {
    ops::fail(kGradientTree, "shards are ", count, " from number ", first,
              " on, expected at least 1, and numbers from 0 to ", kMostShards - 1);
  }
  std::size_t runs = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.gradient.size() != parameter.values.size()) {
      ops::fail(kGradientTree, "parameter ", parameter.name, " has no gradient, expected those of a layer in training");
    }
    elements_ += parameter.values.size();
    runs += divide_up(parameter.values.size(), kRun);
  }
  std::size_t most = 0;
  try {
    nodes_.reserve(2 * kMostLevels);
    for (std::int64_t shard = 0; shard < count; ++shard) {
      push_next({});
      most = std::max(most, nodes_.size());
    }
    nodes_.clear();
    runs_.reserve(runs);
    memory_.resize(most);
    for (std::vector<float>& node : memory_) node.resize(elements_);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(kGradientTree, most * elements_ * sizeof(float) + runs * sizeof(Run));
  }
  std::size_t before = 0;
  for (const Parameter& parameter : parameters) {
    for (std::size_t at = 0; at < parameter.gradient.size(); at += kRun) {
      runs_.push_back({parameter.gradient.subspan(at, std::min(kRun, parameter.gradient.size() - at)), before + at});
    }
    before += parameter.gradient.size();
  }
}

std::int64_t GradientTree::next() const noexcept {
  return nodes_.empty() ? first_ : nodes_.back().first + nodes_.back().count;
}

void GradientTree::push_next(std::span<const float> sum) { layers::push_shard(nodes_, next(), Node{0, 0, sum}); }

void GradientTree::join(Engine& engine, std::size_t joined, float* to) {
  const auto count = static_cast<std::int64_t>(runs_.size());
  const double nanoseconds = runtime::costs::kOptimizer * static_cast<double>(elements_);
  runtime::parallel_for(engine, count, runtime::workers_for(engine, count, nanoseconds), [&](std::int64_t task, int) {
    const Run& run = runs_[static_cast<std::size_t>(task)];
    float* const gradient = run.gradient.data();
    const std::size_t elements = run.gradient.size();
    for (std::size_t n = 1; n <= joined; ++n) {
      const float* const node = nodes_[nodes_.size() - n].sum.data() + run.first;
      for (std::size_t e = 0; e < elements; ++e) gradient[e] = node[e] + gradient[e];
    }
    if (to == nullptr) return;
    std::copy_n(gradient, elements, to + run.first);
    std::fill_n(gradient, elements, 0.0f);
  });
}

void GradientTree::take(Engine& engine) {
  if (next() - first_ >= count_) {
    ops::fail(kGradientTree, "a shard is taken behind the last of ", count_);
  }
  const std::size_t joined = layers::joined_by(nodes_, 1);
  std::vector<float>& memory = memory_[nodes_.size() - joined];
  join(engine, joined, memory.data());
  push_next(memory);
}

void GradientTree::finish(Engine& engine) {
  if (next() - first_ != count_ - 1) {
    ops::fail(kGradientTree, "finish() comes after ", next() - first_, " shards, expected it for the last of ", count_);
  }
  join(engine, nodes_.size(), nullptr);
  nodes_.clear();
}

}  // namespace headlight
