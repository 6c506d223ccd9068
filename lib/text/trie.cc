#include "text/trie.h"

#include <algorithm>

namespace headlight::text {
namespace {

std::size_t shared_bytes(std::string_view a, std::string_view b) noexcept {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

void Trie::make_room() {
  // Where the last token and those before it end or branch, from the root on: each such place is a node.
  std::vector<std::size_t> depths{0};
  std::size_t nodes = 1, bytes = 0;
  std::string_view before;
  for (const Entry& entry : entries_) {
    const std::string_view token = entry.token();
    const std::size_t shared = shared_bytes(before, token);
    while (depths.back() > shared) depths.pop_back();
    for (const std::size_t depth : {shared, token.size()}) {
      if (depth == depths.back()) continue;
      depths.push_back(depth);
      ++nodes;
    }
    bytes += token.size() - shared;
    before = token;
  }
  nodes_.reserve(nodes);
  labels_.reserve(nodes);
  edges_.reserve(bytes - (nodes - 1));
  wide_.reserve(std::min(kMostTables, nodes / kNodesOfTable + 1));
}

void Trie::build() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    const int order = a.token().compare(b.token());
    return order != 0 ? order < 0 : a.id < b.id;
  });
  make_room();
  nodes_.assign(1, {});
  labels_.assign(1, 0);
  add_children(kRoot, 0, static_cast<std::uint32_t>(entries_.size()), 0);
  for (std::uint32_t at = 1; at < nodes_.size(); ++at) {
    // Until a node's turn comes it keeps here which entries are behind it, and the bytes that they share.
    Node& node = nodes_[at];
    const std::uint32_t begin = node.first, end = node.id;
    const std::size_t chosen = node.edge_size;
    // What the first and the last share, all between them share, too: they are sorted.
    const std::string_view first = entries_[begin].token();
    const std::size_t depth = shared_bytes(first, entries_[end - 1].token());
    node = {};
    node.edge = static_cast<std::uint32_t>(edges_.size());
    node.edge_size = static_cast<std::uint16_t>(depth - chosen);
    edges_ += first.substr(chosen, depth - chosen);
    add_children(at, begin, end, depth);
  }
  entries_ = {};
  wide_.shrink_to_fit();
}

void Trie::add_children(std::uint32_t node, std::uint32_t begin, std::uint32_t end, std::size_t depth) {
  for (; begin < end && entries_[begin].size == depth; ++begin) {
    if (depth > 0) nodes_[node].id = entries_[begin].id;
  }
  nodes_[node].first = static_cast<std::uint32_t>(nodes_.size());
  while (begin < end) {
    const char label = entries_[begin].begin[depth];
    const auto last = std::partition_point(entries_.begin() + begin, entries_.begin() + end,
                                           [&](const Entry& entry) { return entry.begin[depth] == label; });
    Node& child = nodes_.emplace_back();
    labels_.push_back(static_cast<unsigned char>(label));
    child.first = begin;
    begin = child.id = static_cast<std::uint32_t>(last - entries_.begin());
    child.edge_size = static_cast<std::uint16_t>(depth + 1);
  }
  const std::size_t count = nodes_.size() - nodes_[node].first;
  nodes_[node].count = static_cast<std::uint16_t>(count);
  if (count > kFewChildren && count <= kMostInTable && wide_.size() < wide_.capacity()) add_table(nodes_[node]);
}

void Trie::add_table(Node& node) {
  Table& table = wide_.emplace_back();
  table.fill(0);
  for (std::uint32_t n = 0; n < node.count; ++n) table[labels_[node.first + n]] = static_cast<std::uint8_t>(n + 1);
  node.count = static_cast<std::uint16_t>(kWide | (wide_.size() - 1));
}

}  // namespace headlight::text
