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
    std::uint32_t begin = ranges[at].begin;
    const std::uint32_t end = ranges[at].end, depth = ranges[at].depth;
    for (; begin < end && entries_[begin].token.size() == depth; ++begin) {
      if (depth > 0) nodes_[at].id = entries_[begin].id;
    }
    nodes_[at].first = static_cast<std::uint32_t>(nodes_.size());
    while (begin < end) {
      const char label = entries_[begin].token[depth];
      const auto last = std::partition_point(entries_.begin() + begin, entries_.begin() + end,
                                             [&](const Entry& entry) { return entry.token[depth] == label; });
      const auto next = static_cast<std::uint32_t>(last - entries_.begin());
      nodes_.emplace_back();
      labels_.push_back(static_cast<unsigned char>(label));
      ranges.push_back({begin, next, depth + 1});
      begin = next;
    }
    nodes_[at].count = static_cast<std::uint32_t>(nodes_.size()) - nodes_[at].first;
    if (nodes_[at].count <= kFewChildren || wide_.size() == kMostTables) continue;
    nodes_[at].wide = static_cast<std::uint32_t>(wide_.size());
    auto& table = wide_.emplace_back();
    table.fill(kRoot);
    for (std::uint32_t n = nodes_[at].first; n < nodes_.size(); ++n) table[labels_[n]] = n;
  }
  entries_ = {};
}

}  // namespace headlight::text
