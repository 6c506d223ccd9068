#include "text/trie.h"

#include <algorithm>

namespace headlight::text {
namespace {

std::size_t shared_bytes(std::string_view a, std::string_view b) noexcept {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// Places by their tokens, of which each is there once.
std::vector<std::uint32_t> sorted_places(const TokenList& tokens) {
  std::vector<std::uint32_t> places;
  places.reserve(tokens.size());
  for (std::uint32_t place = 0; place < tokens.size(); ++place) {
    if (tokens[place].size() <= kLongestToken) places.push_back(place);
  }
  std::sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int order = tokens[a].compare(tokens[b]);
    return order != 0 ? order < 0 : a > b;
  });
  const auto same = [&](std::uint32_t a, std::uint32_t b) { return tokens[a] == tokens[b]; };
  places.erase(std::unique(places.begin(), places.end(), same), places.end());
  return places;
}

}  // namespace

void Trie::make_room(const TokenList& tokens, const Places& places, TableLimit& limit) {
  // Where the last token and those before it end or branch, from the root on: each such place is a node.
  std::vector<std::size_t> depths{0};
  std::size_t nodes = nodes_.size();
  std::string_view before;
  for (const std::uint32_t place : places) {
    const std::string_view token = tokens[place];
    const std::size_t shared = shared_bytes(before, token);
    while (depths.back() > shared) depths.pop_back();
    for (const std::size_t depth : {shared, token.size()}) {
      if (depth == depths.back()) continue;
      depths.push_back(depth);
      ++nodes;
    }
    before = token;
  }
  limit.take((sizeof(Node) + 1) * nodes);
  nodes_.reserve(nodes);
  labels_.reserve(nodes);
}

void Trie::build(const TokenList& tokens, TableLimit& limit) {
  texts_ = tokens.texts();
  begins_ = tokens.begins();
  limit.take(sizeof(std::uint32_t) * tokens.size());
  const Places places = sorted_places(tokens);
  make_room(tokens, places, limit);
  add_children(kRoot, tokens, places, 0, static_cast<std::uint32_t>(places.size()), 0);
  for (std::uint32_t at = kNoChildren + 1; at < nodes_.size(); ++at) {
    // Until a node's turn comes it keeps here which tokens are behind it, and the bytes in front of the one that chose
    // it.
    Node& node = nodes_[at];
    const std::uint32_t begin = node.first, end = begin + node.token + 1;
    const std::size_t chosen = node.edge_size + std::size_t{1};
    // What the first and the last share, all between them share, too: they are sorted.
    const std::string_view first = tokens[places[begin]];
    const std::size_t depth = shared_bytes(first, tokens[places[end - 1]]);
    node = {};
    node.token = places[begin] & kTokenMask;
    node.edge_size = static_cast<std::uint32_t>(depth - chosen) & kEdgeMask;
    add_children(at, tokens, places, begin, end, depth);
  }
  add_tables(limit);
}

void Trie::add_children(std::uint32_t node, const TokenList& tokens, const Places& places, std::uint32_t begin,
                        std::uint32_t end, std::size_t depth) {
  if (begin < end && tokens[places[begin]].size() == depth) {
    nodes_[node].token = places[begin++] & kTokenMask;
    nodes_[node].ends = 1;
  }
  const auto first = static_cast<std::uint32_t>(nodes_.size());
  while (begin < end) {
    const char label = tokens[places[begin]][depth];
    const auto last = std::partition_point(places.begin() + begin, places.begin() + end,
                                           [&](std::uint32_t place) { return tokens[place][depth] == label; });
    const auto behind = static_cast<std::uint32_t>(last - places.begin());
    labels_.push_back(static_cast<unsigned char>(label));
    Node& child = nodes_.emplace_back();
    child.first = begin & kNodeMask;
    child.token = (behind - begin - 1) & kTokenMask;
    child.edge_size = static_cast<std::uint32_t>(depth) & kEdgeMask;
    begin = behind;
  }
  nodes_[node].first = first & kNodeMask;
  nodes_[node].count = static_cast<std::uint32_t>(nodes_.size() - first) & kCountMask;
}

void Trie::add_tables(TableLimit& limit) {
  const auto is_wide = [](const Node& node) { return node.count > kFewChildren && node.count <= kMostInTable; };
  const auto count = static_cast<std::size_t>(std::count_if(nodes_.begin(), nodes_.end(), is_wide));
  const std::size_t tables = std::min({count, kMostTables, nodes() / kNodesOfTable + 1});
  limit.take(sizeof(Table) * tables);
  wide_.reserve(tables);
  for (Node& node : nodes_) {
    if (wide_.size() == tables) break;
    if (!is_wide(node)) continue;
    const auto number = static_cast<std::uint32_t>(wide_.size());
    Table& table = wide_.emplace_back();
    table.first = node.first;
    for (std::uint32_t n = 0; n < node.count; ++n) {
      table.child[labels_[node.first + n]] = static_cast<std::uint8_t>(n + 1);
    }
    node.first = number & kNodeMask;
    node.count = kWide;
  }
}

std::uint32_t Trie::find(std::string_view token) const noexcept {
  Walk walk(*this);
  for (const char byte : token) {
    if (!walk.advance(byte)) return kNone;
  }
  return walk.token();
}

}  // namespace headlight::text
