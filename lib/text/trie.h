// Tokens as a tree of bytes: all tokens that a text begins with are on one path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/parts.h"
#include "text/table_limit.h"
#include "text/token_list.h"

namespace headlight::text {

// Bytes that no token branches at or ends in lie on one edge, which is a part of a token in the list: a tree has no
// text of its own. So there are at most two nodes for each token, whatever tokens a file has: 9 bytes each, and while
// they are built, 4 for each token.
class Trie {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The tokens of a list, which must outlive this and takes no more of them; those of more than kLongestToken bytes
  // are left out. Of tokens that are the same the last place counts.
  void build(const TokenList& tokens, TableLimit& limit);

  // Without that of no children.
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size() - 1; }

  // A place in the tree: at a node, or within the edge in front of it.
  struct Position {
    std::uint32_t node = kRoot;
    std::uint32_t depth = 0;      // bytes from the root to the node
    std::uint32_t edge_left = 0;  // bytes from here to the node
    const char* edge = nullptr;
  };
  // From which no token goes on.
  [[nodiscard]] static Position nowhere() noexcept { return {.node = kNoChildren}; }

  // From the root, or another place, along the bytes of a text.
  class Walk {
   public:
    explicit Walk(const Trie& trie) noexcept : trie_(trie) {}
    Walk(const Trie& trie, const Position& from) noexcept : trie_(trie), at_(from) {}
    // Takes the next byte; false where no token goes on with it, which ends the walk.
    [[nodiscard]] bool advance(char byte) noexcept {
      if (at_.edge_left != 0) {
        --at_.edge_left;
        return *at_.edge++ == byte;
      }
      at_.node = trie_.child(at_.node, static_cast<unsigned char>(byte));
      if (at_.node == kRoot) return false;
      const Node& node = trie_.nodes_[at_.node];
      ++at_.depth;
      at_.edge_left = node.edge_size;
      if (at_.edge_left != 0) {
        at_.edge = trie_.texts_ + trie_.begins_[node.token] + at_.depth;
        at_.depth += at_.edge_left;
      }
      return true;
    }
    // The place in the list of the token of the bytes so far; kNone where there is none.
    [[nodiscard]] std::uint32_t token() const noexcept { return at_.edge_left == 0 ? trie_.token_at(at_.node) : kNone; }
    [[nodiscard]] const Position& position() const noexcept { return at_; }

   private:
    const Trie& trie_;
    Position at_;
  };

  // The place of a token.
  [[nodiscard]] std::uint32_t find(std::string_view token) const noexcept;

 private:
  static constexpr std::uint32_t kRoot = 0, kNoChildren = 1;
  static constexpr int kNodeBits = 23, kCountBits = 9, kTokenBits = 21, kEdgeBits = 10;
  static constexpr std::uint32_t kNodeMask = (std::uint32_t{1} << kNodeBits) - 1,
                                 kCountMask = (std::uint32_t{1} << kCountBits) - 1,
                                 kTokenMask = (std::uint32_t{1} << kTokenBits) - 1,
                                 kEdgeMask = (std::uint32_t{1} << kEdgeBits) - 1;
  struct Node {
    std::uint32_t first : kNodeBits = 0;      // of its children, which lie side by side; or the number of its table
    std::uint32_t count : kCountBits = 0;     // of its children; or kWide
    std::uint32_t token : kTokenBits = 0;     // one whose path passes the node, or ends here
    std::uint32_t ends : 1 = 0;               // whether it ends here
    std::uint32_t edge_size : kEdgeBits = 0;  // of that token's bytes, behind the one that chose the node
  };
  static_assert(sizeof(Node) == 8 && kMostIds <= std::int64_t{1} << kTokenBits);
  static_assert(2 * kMostIds + 2 <= std::int64_t{1} << kNodeBits && kLongestToken <= std::size_t{1} << kEdgeBits);
  // A node of more children has a table of all bytes, as long as there are few tables: nodes near the root come first.
  static constexpr std::size_t kFewChildren = 8, kMostInTable = 255;
  static constexpr std::size_t kMostTables = 8192, kNodesOfTable = 32;
  static constexpr std::uint32_t kWide = kCountMask;
  struct Table {
    std::uint32_t first;                  // of the node's children
    std::array<std::uint8_t, 256> child;  // by byte: which of them, from 1 on; 0: none
  };

  // The node behind `node` by a byte; kRoot where there is none.
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char label) const noexcept {
    const Node& parent = nodes_[node];
    const std::uint32_t first = parent.first, count = parent.count;
    if (count == kWide) {
      const Table& table = wide_[first];
      const std::uint32_t number = table.child[label];
      return number == 0 ? kRoot : table.first + number - 1;
    }
    for (std::uint32_t at = first; at < first + count; ++at) {
      if (labels_[at] == label) return at;
    }
    return kRoot;
  }
  [[nodiscard]] std::uint32_t token_at(std::uint32_t node) const noexcept {
    const Node& found = nodes_[node];
    return found.ends != 0 ? found.token : kNone;
  }

  using Places = std::vector<std::uint32_t>;
  // Of places in the order of their tokens: room for their nodes, to the byte.
  void make_room(const TokenList& tokens, const Places& places, TableLimit& limit);
  // The children of a node whose tokens, which share `depth` bytes, are those from `begin` to `end`.
  void add_children(std::uint32_t node, const TokenList& tokens, const Places& places, std::uint32_t begin,
                    std::uint32_t end, std::size_t depth);
  void add_tables(TableLimit& limit);

  // Of the list.
  const char* texts_ = nullptr;
  const std::uint32_t* begins_ = nullptr;
  std::vector<Node> nodes_ = std::vector<Node>(2);
  std::vector<unsigned char> labels_ = std::vector<unsigned char>(2);  // by node: the byte that chooses it
  std::vector<Table> wide_;
};

}  // namespace headlight::text
