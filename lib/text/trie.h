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
// tokens a file has: 25 bytes each, and while they are built, 16 for each token.
class Trie {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Room for so many tokens.
  void reserve(std::size_t tokens) { entries_.reserve(tokens); }
  // `token` must outlive build(), and has at most kLongestToken bytes. Of tokens that are the same the one of the
  // largest id counts; an empty one is on no path.
  void add(std::string_view token, std::uint32_t id) {
    entries_.push_back({token.data(), id, static_cast<std::uint16_t>(token.size())});
  }
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
    const char* begin;
    std::uint32_t id;
    std::uint16_t size;
    [[nodiscard]] std::string_view token() const noexcept { return {begin, size}; }
  };
  struct Node {
    std::uint32_t first = 0;  // of its children, which lie side by side
    std::uint32_t id = kNone;
    std::uint32_t edge = 0;  // in edges_: the bytes behind the one that chose it
    std::uint16_t edge_size = 0;
    std::uint16_t count = 0;  // of its children; or kWide and the number of its table
  };
  // A node of more children has a table of all bytes, as long as there are few tables: nodes near the root come first.
  static constexpr std::size_t kFewChildren = 8, kMostInTable = 255;
  static constexpr std::size_t kMostTables = 8192, kNodesOfTable = 32;
  static constexpr std::uint16_t kWide = 0x8000;
  // By byte: which of the node's children, from 1 on; 0: none.
  using Table = std::array<std::uint8_t, 256>;

  // The node behind `node` by a byte; kRoot where there is none.
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char label) const noexcept {
    const Node& parent = nodes_[node];
    if ((parent.count & kWide) != 0) {
      const std::uint32_t number = wide_[parent.count & ~kWide][label];
      return number == 0 ? kRoot : parent.first + number - 1;
    }
    for (std::uint32_t at = parent.first; at < parent.first + parent.count; ++at) {
      if (labels_[at] == label) return at;
    }
    return kRoot;
  }
  // Of entries that are sorted: room for their nodes and edges, to the byte.
  void make_room();
  // The children of a node whose entries, which share `depth` bytes, are those from `begin` to `end`.
  void add_children(std::uint32_t node, std::uint32_t begin, std::uint32_t end, std::size_t depth);
  void add_table(Node& node);

  std::vector<Entry> entries_;
  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_;  // by node: the byte that chooses it
  std::string edges_;
  std::vector<Table> wide_;
};

}  // namespace headlight::text
