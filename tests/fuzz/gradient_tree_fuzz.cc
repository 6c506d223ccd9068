// GradientTree: parameters of any sizes, any shards of a batch, taken, finished and forgotten in any order, by one
// worker and by three. It refuses and changes nothing; or its nodes are those of the tree that its header tells of, to
// the bit, and so is the sum of a batch.
#include <cstring>
#include <stdexcept>
#include <vector>

#include "c/handles.h"
#include "fuzz/c_tensor.h"
#include "headlight/gradient_tree.h"

namespace headlight::fuzz::gradient_tree_fuzz {
namespace {

using Numbers32 = std::vector<float>;

// Node `size` shards wide from `first` on, of those of which `of` has the gradients: one and the other half, or one.
Numbers32 node(const std::vector<Numbers32>& of, std::size_t first, std::size_t size) {
  if (size == 1) return of[first];
  Numbers32 sum = node(of, first, size / 2);
  if (first + size / 2 >= of.size()) return sum;
  const Numbers32 right = node(of, first + size / 2, size / 2);
  for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += right[e];
  return sum;
}

bool same_bits(std::span<const float> found, const Numbers32& expected) {
  return found.size() == expected.size() &&
         (found.empty() || std::memcmp(found.data(), expected.data(), found.size_bytes()) == 0);
}

class Batches {
 public:
  explicit Batches(Bytes& bytes) : bytes_(bytes), random_(bytes.byte()) {
    for (std::int64_t n = bytes.integer(0, 3); n > 0; --n) {
      const auto size = static_cast<std::size_t>(bytes.integer(0, bytes.once_in(6) ? 5000 : 9));
      values_.emplace_back(size);
      gradients_.emplace_back(size);
    }
    for (std::size_t p = 0; p < values_.size(); ++p) {
      parameters_.push_back({"p", {static_cast<std::int64_t>(values_[p].size())}, values_[p], gradients_[p]});
    }
    if (bytes.byte() == 255 && !parameters_.empty()) parameters_.back().gradient = {};
    first_ = bytes.wild(bytes.integer(0, 12));
    count_ = bytes.wild(bytes.integer(0, 9));
  }

  void run() {
    static const CEngine one(HEADLIGHT_ISA_SCALAR, 1);
    static const CEngine three(HEADLIGHT_ISA_SCALAR, 3);
    std::unique_ptr<GradientTree> tree;
    // More than are taken here would only cost memory.
    if (count_ > 64 && count_ <= std::int64_t{1} << 20) count_ = 64;
    if (!accepted([&] { tree = std::make_unique<GradientTree>(parameters_, first_, count_); })) return;
    for (int step = 0; step < 24; ++step) {
      Engine& engine = (bytes_.once_in(2) ? three : one).get()->engine;
      switch (bytes_.integer(0, 7)) {
        case 6:
          finish(*tree, engine);
          break;
        case 7:
          if (!bytes_.once_in(4)) break;
          tree->clear();
          shards_.clear();
          break;
        default:
          take(*tree, engine);
      }
      check(*tree);
    }
  }

 private:
  template <class Function>
  static bool accepted(Function f) {
    try {
      f();
    } catch (const std::invalid_argument&) {
      return false;
    }
    return true;
  }

  // A backward pass adds, here to zeros.
  void differentiate() {
    for (Numbers32& gradient : gradients_) {
      for (float& each : gradient) each = 2 * random_.uniform();
    }
  }
  [[nodiscard]] Numbers32 gradient() const {
    Numbers32 all;
    for (const Numbers32& each : gradients_) all.insert(all.end(), each.begin(), each.end());
    return all;
  }

  void take(GradientTree& tree, Engine& engine) {
    differentiate();
    const Numbers32 given = gradient();
    const bool fits = static_cast<std::int64_t>(shards_.size()) < count_;
    must(accepted([&] { tree.take(engine); }) == fits, "as many shards as were told of are taken");
    must(same_bits(gradient(), fits ? Numbers32(given.size()) : given), "taken, or left as they were");
    if (fits) shards_.push_back(given);
  }

  void finish(GradientTree& tree, Engine& engine) {
    differentiate();
    const Numbers32 given = gradient();
    const bool is_last = static_cast<std::int64_t>(shards_.size()) + 1 == count_;
    must(accepted([&] { tree.finish(engine); }) == is_last, "the last shard ends a batch, no other");
    if (!is_last) return must(same_bits(gradient(), given), "refused gradients are as they were");
    shards_.push_back(given);
    // Of shards from another number on, the sum is that of some nodes of the tree.
    if (first_ == 0) must(same_bits(gradient(), node(shards_, 0, 64)), "the sum of a batch is the tree's");
    shards_.clear();
  }

  void check(const GradientTree& tree) const {
    std::int64_t next = first_;
    for (const GradientTree::Node& each : tree.nodes()) {
      must(each.first == next && each.count > 0 && each.first % each.count == 0, "nodes are the tree's, ascending");
      next += each.count;
      const auto at = static_cast<std::size_t>(each.first - first_);
      must(next - first_ <= static_cast<std::int64_t>(shards_.size()), "nodes are of what was taken");
      must(same_bits(each.sum, node(shards_, at, static_cast<std::size_t>(each.count))),
           "a node is the sum of its two");
    }
    must(next - first_ == static_cast<std::int64_t>(shards_.size()), "all that was taken is in a node");
  }

  Bytes& bytes_;
  test::Random random_;
  std::vector<Numbers32> values_, gradients_;
  std::vector<Parameter> parameters_;
  std::int64_t first_ = 0, count_ = 1;
  std::vector<Numbers32> shards_;  // the gradients of those that were taken
};

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Batches(bytes).run();
}

}  // namespace headlight::fuzz::gradient_tree_fuzz
