// Tokens as a tree of bytes: all tokens that a text begins with are on one path.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace headlight::text {

// Bytes that no token branches at or ends in lie on one edge. So there are at most two nodes for each token, whatever
// tokens a file has.
class Trie {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // `token` must outlive build(), and has at most kLongestToken bytes. Of tokens that are the same the last one counts;
  // an empty one is on no path.
  void add(std::string_view token, std::uint32_t id) { entries_.push_back({token, id}); }
  // After the last add().
  void build();

  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }

  // From the root along the bytes of a text.
  class Walk {
   public:
    explicit Walk(const Trie& trie) noexcept : trie_(trie) {}
    // Takes the next byte; false where no token goes on with it, which ends the walk.
    [[nodiscard]] bool step(char byte) noexcept {
      if (edge_ != edge_end_) return trie_.edges_[edge_++] == byte;
      node_ = trie_.child(node_, static_cast<unsigned char>(byte));
      const Node& node = trie_.nodes_[node_];
      edge_ = node.edge;
      edge_end_ = edge_ + node.edge_size;
      return node_ != kRoot;
    }
    // The token of the bytes so far; kNone where there is none.
    [[nodiscard]] std::uint32_t id() const noexcept { return edge_ == edge_end_ ? trie_.nodes_[node_].id : kNone; }

   private:
    const Trie& trie_;
    std::uint32_t node_ = kRoot, edge_ = 0, edge_end_ = 0;
  };

 private:
  static constexpr std::uint32_t kRoot = 0;

  struct Entry {
    std::string_view token;
    std::uint32_t id;
  };
  struct Node {
    std::uint32_t first = 0;  // of its children, which lie side by side
    std::uint32_t id = kNone;
    std::uint32_t wide = kNone;  // where it has many: its place in wide_
    std::uint32_t edge = 0;      // in edges_: the bytes behind the one that chose it
    std::uint16_t edge_size = 0;
    std::uint16_t count = 0;
  };
  // A node of more children has a table of all bytes, as long as there are few tables: nodes near the root come first.
  static constexpr std::uint32_t kFewChildren = 8;
  static constexpr std::size_t kMostTables = 8192;

  // The node behind `node` by a byte; kRoot where there is none.
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char label) const noexcept {
    const Node& parent = nodes_[node];
    if (parent.wide != kNone) return wide_[parent.wide][label];
    for (std::uint32_t at = parent.first; at < parent.first + parent.count; ++at) {
      if (labels_[at] == label) return at;
    }
    return kRoot;
  }
  void add_table(std::uint32_t node);

  std::vector<Entry> entries_;
  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_;  // by node: the byte that chooses it
  std::string edges_;
  std::vector<std::array<std::uint32_t, 256>> wide_;
};

}  // namespace headlight::text
