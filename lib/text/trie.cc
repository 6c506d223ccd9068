#include "text/trie.h"

#include <algorithm>

namespace headlight::text {

void Trie::build() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.token < b.token; });
  struct Range {
    std::uint32_t begin, end, depth;  // entries that share a beginning of so many bytes
  };
  std::vector<Range> ranges{{0, static_cast<std::uint32_t>(entries_.size()), 0}};
  nodes_.assign(1, {});
  labels_.assign(1, 0);
  for (std::uint32_t at = 0; at < nodes_.size(); ++at) {
    auto [begin, end, depth] = ranges[at];
    if (at != kRoot) {
      // What the first and the last share, all between them share, too: they are sorted.
      const std::string_view first = entries_[begin].token, last = entries_[end - 1].token;
      const std::uint32_t chosen = depth;
      while (depth < first.size() && depth < last.size() && first[depth] == last[depth]) ++depth;
      nodes_[at].edge = static_cast<std::uint32_t>(edges_.size());
      nodes_[at].edge_size = static_cast<std::uint16_t>(depth - chosen);
      edges_ += first.substr(chosen, depth - chosen);
    }
    for (; begin < end && entries_[begin].token.size() == depth; ++begin) {
      if (depth > 0) nodes_[at].id = entries_[begin].id;
    }
    nodes_[at].first = static_cast<std::uint32_t>(nodes_.size());
    while (begin < end) {
      const char label = entries_[begin].token[depth];
      const auto last =
          std::partition_point(entries_.begin() + begin, entries_.begin() + end,
                               [label, depth = depth](const Entry& entry) { return entry.token[depth] == label; });
      const auto next = static_cast<std::uint32_t>(last - entries_.begin());
      nodes_.emplace_back();
      labels_.push_back(static_cast<unsigned char>(label));
      ranges.push_back({begin, next, depth + 1});
      begin = next;
    }
    nodes_[at].count = static_cast<std::uint16_t>(nodes_.size() - nodes_[at].first);
    if (nodes_[at].count > kFewChildren && wide_.size() < kMostTables) add_table(at);
  }
  entries_ = {};
}

void Trie::add_table(std::uint32_t node) {
  nodes_[node].wide = static_cast<std::uint32_t>(wide_.size());
  auto& table = wide_.emplace_back();
  table.fill(kRoot);
  for (std::uint32_t n = 0; n < nodes_[node].count; ++n) {
    table[labels_[nodes_[node].first + n]] = nodes_[node].first + n;
  }
}

}  // namespace headlight::text
