#include "text/bpe.h"

#include <algorithm>
#include <functional>

#include "text/byte_characters.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

constexpr std::uint32_t kNone = TokenTable::kNone;
constexpr std::uint32_t kForeign = std::uint32_t{1} << 31;
// So many symbols are searched for the lowest rank one by one; beyond, a queue is faster.
constexpr std::size_t kFew = 40;
constexpr std::uint32_t kBelow = 0x10000;

// The bytes that a token of ByteLevel stands for; false where a character of it stands for none.
bool bytes_of(std::string_view token, std::string& bytes) {
  bytes.clear();
  for (std::size_t at = 0; at < token.size();) {
    const int byte = byte_of(next_code_point(token, at));
    if (byte < 0) return false;
    bytes += static_cast<char>(byte);
  }
  return true;
}

// Calls take(character) for each character of UTF-8.
template <class Take>
void for_each_character(std::string_view text, Take take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = std::min(size_of_code_point(text[at]), text.size() - at);
    take(text.substr(at, size));
    at += size;
  }
}

}  // namespace

std::uint32_t Bpe::key(std::string_view text) const noexcept {
  return takes_bytes_ ? byte_tokens_.find(text) : vocabulary_.find(text);
}

bool Bpe::take_bytes() {
  if (has_affixes()) return false;
  std::array<std::uint32_t, 256> bytes{};
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    std::string character;
    append_utf8(character, kByteCharacters[byte]);
    bytes[byte] = vocabulary_.find(character);
    if (bytes[byte] == kNone) return false;
  }
  bytes_ = bytes;
  std::string text;
  vocabulary_.for_each([&](const std::string& token, std::uint32_t id) {
    if (bytes_of(token, text)) byte_tokens_.add(text, id);
  });
  byte_tokens_.sort();
  return takes_bytes_ = true;
}

void Bpe::prepare() {
  if (!takes_bytes_) singles_.assign(kBelow, kNone);
  vocabulary_.for_each([&](const std::string& token, std::uint32_t id) {
    longest_ = std::max(longest_, token.size());
    std::size_t at = 0;
    const char32_t first = token.empty() ? kBelow : next_code_point(token, at);
    if (!takes_bytes_ && first < kBelow && at == token.size()) singles_[first] = id;
  });
  if (has_affixes()) return;
  Scratch scratch;
  std::string text;
  merges_.for_each_id([&](std::uint32_t id) {
    const std::string& token = *vocabulary_.token(id);
    if (takes_bytes_ && !bytes_of(token, text)) return;
    begin(takes_bytes_ ? text : token, scratch);
    for (std::size_t n = 1; n < scratch.symbols.size(); ++n) {
      neighbours_.add(scratch.symbols[n - 1], scratch.symbols[n]);
    }
  });
  std::vector<bool> whole(vocabulary_.size());
  std::vector<std::int64_t> ids;
  vocabulary_.for_each([&](const std::string& token, std::uint32_t id) {
    if (token.empty() || (takes_bytes_ && !bytes_of(token, text))) return;
    const std::string_view piece = takes_bytes_ ? text : token;
    ids.clear();
    begin(piece, scratch);
    append_part(piece, scratch.symbols.data(), scratch.symbols.size(), scratch, ids);
    whole[id] = ids.size() == 1 && ids[0] == id;
  });
  whole_ = std::move(whole);
}

void Bpe::append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const {
  if (piece.empty()) return;
  if (piece.size() <= longest_ && (ignores_merges_ || !has_affixes())) {
    const std::uint32_t id = key(piece);
    if (id != kNone && (ignores_merges_ || whole_[id])) return ids.push_back(id);
  }
  begin(piece, scratch);
  if (scratch.symbols.size() <= kFew || has_affixes()) {
    return append_part("", scratch.symbols.data(), scratch.symbols.size(), scratch, ids);
  }
  append_parts(piece, false, SIZE_MAX, scratch, ids);
}

void Bpe::append_first(std::string_view piece, std::size_t most, Scratch& scratch,
                       std::vector<std::int64_t>& ids) const {
  const std::size_t before = ids.size();
  for (std::size_t size = first_bytes(most, longest_); !has_affixes() && size < piece.size() / 4; size *= 4) {
    std::size_t end = size;
    while ((static_cast<unsigned char>(piece[end]) & 0xC0) == 0x80) --end;
    begin(piece.substr(0, end), scratch);
    append_parts(piece.substr(0, end), true, most, scratch, ids);
    if (ids.size() - before >= most) return;
    ids.resize(before);
  }
  append(piece, scratch, ids);
}

void Bpe::append_parts(std::string_view piece, bool goes_on, std::size_t most, Scratch& scratch,
                       std::vector<std::int64_t>& ids) const {
  const std::vector<std::uint32_t>& symbols = scratch.symbols;
  const std::size_t before = ids.size(), last = symbols.size() - (goes_on && !symbols.empty() ? 1 : 0);
  std::size_t first = 0;
  for (std::size_t n = 1; n <= last && ids.size() - before < most; ++n) {
    const bool joined = n < symbols.size() &&
                        ((symbols[n - 1] | symbols[n]) >= kForeign || neighbours_.may_have(symbols[n - 1], symbols[n]));
    if (joined) continue;
    const std::size_t from = first == 0 ? 0 : scratch.ends[first - 1];
    append_part(piece.substr(from, scratch.ends[n - 1] - from), symbols.data() + first, n - first, scratch, ids);
    first = n;
  }
}

void Bpe::begin_bytes(std::string_view piece, Scratch& scratch) const {
  scratch.symbols.resize(piece.size());
  scratch.ends.resize(piece.size());
  for (std::size_t n = 0; n < piece.size(); ++n) {
    scratch.symbols[n] = bytes_[static_cast<unsigned char>(piece[n])];
    scratch.ends[n] = static_cast<std::uint32_t>(n + 1);
  }
}

std::uint32_t Bpe::single(std::string_view character, bool first, bool last, std::string& text) const {
  const bool bare = (first || prefix_.empty()) && (!last || suffix_.empty());
  if (!bare || character.size() > 3) {
    text.assign(first ? "" : prefix_).append(character).append(last ? suffix_ : "");
    return vocabulary_.find(text);
  }
  std::size_t at = 0;
  const std::uint32_t id = singles_[next_code_point(character, at)];
  if (id == kNone) text.assign(character);
  return id;
}

void Bpe::begin(std::string_view piece, Scratch& scratch) const {
  if (takes_bytes_) return begin_bytes(piece, scratch);
  scratch.symbols.clear();
  scratch.ends.clear();
  const auto add = [&](std::uint32_t symbol, std::size_t end) {
    scratch.symbols.push_back(symbol);
    scratch.ends.push_back(static_cast<std::uint32_t>(end));
  };
  bool pending = false;  // an unknown character that others may yet join
  std::size_t at = 0;
  for_each_character(piece, [&](std::string_view character) {
    const bool first = at == 0;
    const std::size_t begins = at;
    at += character.size();
    const std::uint32_t id = single(character, first, at == piece.size(), scratch.text);
    if (id != kNone) {
      if (pending) add(unknown_ | kForeign, begins);
      pending = false;
      return add(id, at);
    }
    const std::string_view spelt = has_affixes() ? std::string_view(scratch.text) : character;
    if (fallback_.take_bytes(spelt, [&](std::uint32_t token) { add(token | kForeign, at); })) return;
    if (unknown_ == kNone) return;
    if (pending && !fuses_unknown_) add(unknown_ | kForeign, begins);
    pending = true;
  });
  if (pending) add(unknown_ | kForeign, piece.size());
}

void Bpe::append_part(std::string_view text, const std::uint32_t* symbols, std::size_t count, Scratch& scratch,
                      std::vector<std::int64_t>& ids) const {
  if (count == 0) return;
  if (count == 1) return ids.push_back(symbols[0] & ~kForeign);
  if (!text.empty() && text.size() <= longest_ && !whole_.empty()) {
    const std::uint32_t id = key(text);
    if (id != kNone && whole_[id]) return ids.push_back(id);
  }
  if (count <= kFew) return merge_few(symbols, count, ids);
  merge_many(symbols, count, scratch, ids);
}

void Bpe::merge_few(const std::uint32_t* symbols, std::size_t count, std::vector<std::int64_t>& ids) const {
  std::array<std::uint32_t, kFew> parts;
  std::array<PairTable::Merge, kFew> merges;  // of each part with the next one
  for (std::size_t n = 0; n < count; ++n) parts[n] = symbols[n] & ~kForeign;
  for (std::size_t n = 0; n + 1 < count; ++n) merges[n] = merges_.find(parts[n], parts[n + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t n = 1; n + 1 < count; ++n) {
      if (merges[n].rank < merges[best].rank) best = n;
    }
    if (merges[best].rank == PairTable::kNone) break;
    parts[best] = merges[best].id;
    for (std::size_t n = best + 1; n + 1 < count; ++n) parts[n] = parts[n + 1];
    for (std::size_t n = best + 1; n + 2 < count; ++n) merges[n] = merges[n + 1];
    --count;
    if (best + 1 < count) merges[best] = merges_.find(parts[best], parts[best + 1]);
    if (best > 0) merges[best - 1] = merges_.find(parts[best - 1], parts[best]);
  }
  ids.insert(ids.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
}

// A queue of ranks and places. A place whose pair has changed since it was put in is passed over: the pair's new rank
// is in the queue, too.
void Bpe::merge_many(const std::uint32_t* symbols, std::size_t count, Scratch& scratch,
                     std::vector<std::int64_t>& ids) const {
  constexpr auto kLowestFirst = std::greater<>();
  std::vector<std::uint32_t>&next = scratch.next, &previous = scratch.previous;
  std::vector<std::uint64_t>& heap = scratch.heap;
  const auto end = static_cast<std::uint32_t>(count);
  // Parts lie behind the links.
  next.resize(2 * count);
  previous.resize(count);
  std::uint32_t* const parts = next.data() + count;
  heap.clear();
  for (std::uint32_t n = 0; n < end; ++n) {
    parts[n] = symbols[n] & ~kForeign;
    next[n] = n + 1;
    previous[n] = n - 1;
  }
  const auto offer = [&](std::uint32_t place) {
    const PairTable::Merge merge = merges_.find(parts[place], parts[next[place]]);
    if (merge.rank != PairTable::kNone) heap.push_back(std::uint64_t{merge.rank} << 32 | place);
    return merge.rank != PairTable::kNone;
  };
  for (std::uint32_t n = 0; n + 1 < end; ++n) offer(n);
  std::make_heap(heap.begin(), heap.end(), kLowestFirst);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), kLowestFirst);
    const auto rank = static_cast<std::uint32_t>(heap.back() >> 32);
    const auto place = static_cast<std::uint32_t>(heap.back());
    heap.pop_back();
    if (parts[place] == kNone || next[place] == end) continue;
    const std::uint32_t right = next[place];
    const PairTable::Merge merge = merges_.find(parts[place], parts[right]);
    if (merge.rank != rank) continue;
    parts[place] = merge.id;
    parts[right] = kNone;
    next[place] = next[right];
    if (next[place] != end) {
      previous[next[place]] = place;
      if (offer(place)) std::push_heap(heap.begin(), heap.end(), kLowestFirst);
    }
    if (place > 0 && offer(previous[place])) std::push_heap(heap.begin(), heap.end(), kLowestFirst);
  }
  for (std::uint32_t n = 0; n != end; n = next[n]) ids.push_back(parts[n]);
}

}  // namespace headlight::text
