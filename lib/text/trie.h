// Tokens as a tree of bytes: all tokens that a text begins with are on one path.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace headlight::text {

class Trie {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kRoot = 0;

  // `token` must outlive build(). Of tokens that are the same the last one counts; an empty one is on no path.
  void add(std::string_view token, std::uint32_t id) { entries_.push_back({token, id}); }
  // After the last add().
  void build();

  // The node behind `node` by a byte; kRoot where there is none.
  [[nodiscard]] std::uint32_t child(std::uint32_t node, char byte) const noexcept {
    const auto label = static_cast<unsigned char>(byte);
    const Node& parent = nodes_[node];
    if (parent.wide != kNone) return wide_[parent.wide][label];
    for (std::uint32_t at = parent.first; at < parent.first + parent.count; ++at) {
      if (labels_[at] == label) return at;
    }
    return kRoot;
  }
  // The token that ends at a node; kNone where none does.
  [[nodiscard]] std::uint32_t id(std::uint32_t node) const noexcept { return nodes_[node].id; }

 private:
  struct Entry {
    std::string_view token;
    std::uint32_t id;
  };
  struct Node {
    std::uint32_t first = 0, count = 0;  // its children, which lie side by side
    std::uint32_t id = kNone;
    std::uint32_t wide = kNone;  // where it has many: its place in wide_
  };
  // A node of more children has a table of all bytes, as long as there are few tables: nodes near the root come first.
  static constexpr std::uint32_t kFewChildren = 8;
  static constexpr std::size_t kMostTables = 8192;

  std::vector<Entry> entries_;
  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_;  // by node: the byte that leads to it
  std::vector<std::array<std::uint32_t, 256>> wide_;
};

}  // namespace headlight::text
