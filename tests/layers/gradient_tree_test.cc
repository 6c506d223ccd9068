// Gradients of shards are added as the tree says, whoever takes which of them.
#include "headlight/gradient_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "support/allocation_counter.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::test::gradient_tree_test {

// A parameter with a gradient for each shard; sizes are no multiple of what a task adds.
struct Shards {
  explicit Shards(std::int64_t count) {
    Random random(7);
    for (const std::size_t size : {std::size_t{5}, std::size_t{2049}, std::size_t{6000}}) {
      values.emplace_back(size);
      gradients.emplace_back(size);
    }
    for (std::int64_t shard = 0; shard < count; ++shard) {
      std::vector<float> numbers;
      for (const std::vector<float>& one : values) {
        const Tensor<float, 1> drawn = random.normal_tensor<1>({static_cast<std::int64_t>(one.size())});
        numbers.insert(numbers.end(), drawn.begin(), drawn.end());
      }
      of_shard.push_back(std::move(numbers));
    }
  }

  [[nodiscard]] std::vector<Parameter> parameters() {
    std::vector<Parameter> list;
    for (std::size_t p = 0; p < values.size(); ++p) {
      list.push_back({"p", {static_cast<std::int64_t>(values[p].size())}, values[p], gradients[p]});
    }
    return list;
  }
  // As a backward pass does.
  void add(std::int64_t shard) {
    auto from = of_shard[static_cast<std::size_t>(shard)].begin();
    for (std::vector<float>& gradient : gradients) {
      for (float& g : gradient) g += *from++;
    }
  }
  [[nodiscard]] std::vector<float> gradient() const {
    std::vector<float> all;
    for (const std::vector<float>& one : gradients) all.insert(all.end(), one.begin(), one.end());
    return all;
  }
  void clear() {
    for (std::vector<float>& gradient : gradients) std::fill(gradient.begin(), gradient.end(), 0.0f);
  }

  std::vector<std::vector<float>> values, gradients, of_shard;
};

std::vector<float> sum(const std::vector<float>& left, const std::vector<float>& right) {
  std::vector<float> both(left.size());
  for (std::size_t e = 0; e < left.size(); ++e) both[e] = left[e] + right[e];
  return both;
}

// What the header says, level by level.
std::vector<float> tree_sum(std::vector<std::vector<float>> level) {
  while (level.size() > 1) {
    std::vector<std::vector<float>> above;
    for (std::size_t n = 0; n < level.size(); n += 2) {
      above.push_back(n + 1 < level.size() ? sum(level[n], level[n + 1]) : level[n]);
    }
    level = std::move(above);
  }
  return level.front();
}

void take_all(Engine& engine, GradientTree& tree, Shards& shards, std::int64_t count) {
  for (std::int64_t shard = 0; shard < count; ++shard) {
    shards.add(shard);
    if (shard + 1 < count) {
      tree.take(engine);
    } else {
      tree.finish(engine);
    }
  }
}

TEST(GradientTree, AddsAsTheTreeSays) {
  for (const int threads : {1, 3}) {
    Engine engine({.threads = threads});
    for (const std::int64_t count : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16}) {
      Shards shards(count);
      GradientTree tree(shards.parameters(), 0, count);
      // And once more: nothing is left of the batch before.
      for (int batch = 0; batch < 2; ++batch) {
        shards.clear();
        take_all(engine, tree, shards, count);
        EXPECT_EQ(shards.gradient(), tree_sum(shards.of_shard)) << count << " shards, " << threads << " threads";
      }
    }
  }
}

// Nodes of neighbouring ranges are those of the whole: added by the same rule they come to the same.
TEST(GradientTree, NodesOfAnyCutAreThoseOfTheWhole) {
  Engine engine({.threads = 1});
  constexpr std::int64_t kCount = 7;
  Shards shards(kCount);
  const auto leaf = [&](std::int64_t n) { return shards.of_shard[static_cast<std::size_t>(n)]; };
  for (std::int64_t first = 0; first < kCount; ++first) {
    for (std::int64_t end = first + 1; end <= kCount; ++end) {
      GradientTree tree(shards.parameters(), first, end - first);
      shards.clear();
      for (std::int64_t shard = first; shard < end; ++shard) {
        shards.add(shard);
        tree.take(engine);
      }
      EXPECT_EQ(shards.gradient(), std::vector<float>(8054));
      std::int64_t next = first;
      for (const GradientTree::Node& node : tree.nodes()) {
        ASSERT_EQ(node.first, next);
        ASSERT_EQ(node.first % node.count, 0) << "a node of the tree";
        std::vector<std::vector<float>> leaves;
        for (std::int64_t shard = node.first; shard < node.first + node.count; ++shard) leaves.push_back(leaf(shard));
        EXPECT_EQ(std::vector<float>(node.sum.begin(), node.sum.end()), tree_sum(leaves));
        next += node.count;
      }
      EXPECT_EQ(next, end);
    }
  }
}

// What nodes() shows lies in the tree's own memory.
static_assert(!std::is_copy_constructible_v<GradientTree> && !std::is_copy_assignable_v<GradientTree>);

TEST(GradientTree, AllocatesOnceAndForAll) {
  Engine engine({.threads = 1});
  Shards shards(8);
  GradientTree tree(shards.parameters(), 0, 8);
  const AllocationCounter counter;
  take_all(engine, tree, shards, 8);
  const std::int64_t count = counter.count();
  EXPECT_EQ(count, 0);
}

TEST(GradientTree, RefusesWhatItCannotAdd) {
  Engine engine({.threads = 1});
  Shards shards(2);
  EXPECT_NE(refusal([&] { GradientTree(shards.parameters(), 0, 0); }).find("GradientTree: shards are 0"),
            std::string::npos);
  EXPECT_NE(refusal([&] { GradientTree(shards.parameters(), -1, 2); }).find("from number -1 on"), std::string::npos);
  EXPECT_NE(refusal([&] { GradientTree(shards.parameters(), 1, std::int64_t{1} << 20); }).find("expected"),
            std::string::npos);
  std::vector<Parameter> no_gradient = shards.parameters();
  no_gradient[1].gradient = {};
  EXPECT_NE(refusal([&] { GradientTree(no_gradient, 0, 2); }).find("parameter p has no gradient"), std::string::npos);
  GradientTree tree(shards.parameters(), 0, 2);
  EXPECT_NE(refusal([&] { tree.finish(engine); }).find("finish() comes after 0 shards"), std::string::npos);
  tree.take(engine);
  tree.take(engine);
  EXPECT_NE(refusal([&] { tree.take(engine); }).find("behind the last of 2"), std::string::npos);
  EXPECT_NE(refusal([&] { tree.finish(engine); }).find("finish() comes after 2 shards"), std::string::npos);
  tree.clear();
  tree.take(engine);
  tree.finish(engine);
}

}  // namespace headlight::test::gradient_tree_test
