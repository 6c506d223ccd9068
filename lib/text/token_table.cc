#include "text/token_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headlight::text {
namespace {

constexpr std::uint64_t kMixer = 0x9E3779B97F4A7C15;
constexpr std::size_t kFewEntries = 8;

std::uint64_t load(const char* bytes, std::size_t count) noexcept {
  std::uint64_t word = 0;
  if (count > 0) std::memcpy(&word, bytes, count);
  return word;
}

std::uint32_t tag_of(std::string_view token) noexcept {
  std::uint64_t mixed = token.size();
  const char* at = token.data();
  std::size_t left = token.size();
  for (; left > 8; at += 8, left -= 8) {
    mixed = (mixed ^ load(at, 8)) * kMixer;
    mixed ^= mixed >> 32;
  }
  mixed = (mixed ^ load(at, left)) * kMixer;
  return static_cast<std::uint32_t>(mixed >> 32);
}

int bits_of(std::size_t entries) noexcept {
  int bits = 4;
  while (std::size_t{1} << bits < entries) ++bits;
  return bits;
}

// Where each bucket begins, of entries that are sorted by it.
template <class Entry, class Bucket>
std::vector<std::uint32_t> beginnings(const std::vector<Entry>& entries, int bits, Bucket bucket_of) {
  std::vector<std::uint32_t> first((std::size_t{1} << bits) + 1);
  for (const Entry& entry : entries) ++first[bucket_of(entry) + 1];
  for (std::size_t bucket = 1; bucket < first.size(); ++bucket) first[bucket] += first[bucket - 1];
  return first;
}

// Keeps the last of those that are the same, of entries that are sorted.
template <class Entry, class Same>
void keep_last(std::vector<Entry>& entries, Same same) {
  std::size_t kept = 0;
  for (const Entry& entry : entries) {
    if (kept > 0 && same(entries[kept - 1], entry)) --kept;
    entries[kept++] = entry;
  }
  entries.resize(kept);
}

}  // namespace

void TokenTable::reserve(std::size_t tokens, std::size_t bytes) {
  entries_.reserve(tokens);
  texts_.reserve(bytes);
}

void TokenTable::add(std::string_view token, std::uint32_t id) {
  const auto begin = static_cast<std::uint32_t>(texts_.size());
  texts_ += token;
  entries_.push_back({tag_of(token), begin, static_cast<std::uint32_t>(token.size()), id});
}

void TokenTable::sort() {
  std::sort(entries_.begin(), entries_.end(), [this](const Entry& a, const Entry& b) {
    if (a.tag != b.tag) return a.tag < b.tag;
    const int order = text(a).compare(text(b));
    return order != 0 ? order < 0 : std::pair(a.begin, a.id) < std::pair(b.begin, b.id);
  });
  keep_last(entries_, [this](const Entry& a, const Entry& b) { return a.tag == b.tag && text(a) == text(b); });
  const int bits = bits_of(entries_.size());
  shift_ = 32 - bits;
  first_ = beginnings(entries_, bits, [this](const Entry& entry) { return entry.tag >> shift_; });
}

std::uint32_t TokenTable::find(std::string_view token) const noexcept {
  const std::uint32_t tag = tag_of(token);
  const std::size_t bucket = tag >> shift_;
  const Entry* at = entries_.data() + first_[bucket];
  const Entry* const end = entries_.data() + first_[bucket + 1];
  if (static_cast<std::size_t>(end - at) > kFewEntries) {
    at = std::lower_bound(at, end, token, [&](const Entry& entry, std::string_view wanted) {
      return entry.tag != tag ? entry.tag < tag : text(entry) < wanted;
    });
    return at != end && at->tag == tag && text(*at) == token ? at->id : kNone;
  }
  for (; at != end; ++at) {
    if (at->tag == tag && text(*at) == token) return at->id;
  }
  return kNone;
}

}  // namespace headlight::text
