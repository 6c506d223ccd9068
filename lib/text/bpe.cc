#include "text/bpe.h"

#include <algorithm>
#include <functional>

#include "text/byte_characters.h"
#include "text/cut.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

constexpr std::uint32_t kForeign = std::uint32_t{1} << 31;
// So many symbols are searched for the lowest rank one by one; beyond, a queue is faster.
constexpr std::size_t kFew = 40;
constexpr std::uint32_t kBelow = 0x10000;
constexpr char32_t kMetaspaceCharacter = U'\u2581';

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

// The text from `begin` on, without the U+2581 at its beginning.
std::string_view behind_spaces(std::string_view text, std::size_t begin) {
  text.remove_prefix(begin);
  while (text.starts_with(kMetaspace)) text.remove_prefix(kMetaspace.size());
  return text;
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

std::uint32_t Bpe::key(std::string_view piece) const noexcept {
  if (takes_bytes_) return index_.find_bytes(piece);
  return suffix_.empty() ? index_.find(piece) : index_.find_joined(piece, suffix_);
}

bool Bpe::piece_of(std::string_view token, std::string& piece) const {
  if (takes_bytes_) return bytes_of(token, piece);
  piece = token;
  if (!token.ends_with(suffix_)) return false;
  piece.resize(token.size() - suffix_.size());
  return true;
}

bool Bpe::take_bytes() {
  if (has_affixes()) return false;
  std::array<std::uint32_t, 256> bytes{};
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    std::string character;
    append_utf8(character, kByteCharacters[byte]);
    bytes[byte] = find(character);
    if (bytes[byte] == kNone) return false;
  }
  bytes_ = bytes;
  index_.go_by_bytes();
  return takes_bytes_ = true;
}

void Bpe::prepare(TableLimit& limit) {
  limit.take((takes_bytes_ ? 0 : kBelow * sizeof singles_[0]) + Neighbours::kBytes + vocabulary_.size() / 8);
  if (!takes_bytes_) singles_.assign(kBelow, kNone);
  for (std::uint32_t place = 0; place < vocabulary_.tokens().size(); ++place) {
    const std::string_view token = vocabulary_.tokens()[place];
    longest_ = std::max(longest_, token.size());
    std::size_t at = 0;
    const char32_t first = token.empty() ? kBelow : next_code_point(token, at);
    if (!takes_bytes_ && first < kBelow && at == token.size()) singles_[first] = vocabulary_.id_at(place);
  }
  if (!has_affixes()) find_neighbours();
  find_whole();
}

void Bpe::find_neighbours() {
  const std::uint32_t space = takes_bytes_ ? kNone : singles_[kMetaspaceCharacter];
  // Of a merge across the beginning of spaces the token has them behind something else.
  splits_at_metaspace_ = space != kNone && !ignores_merges_ &&
                         (unknown_ == kNone || vocabulary_.token(unknown_)->find(kMetaspace) == std::string_view::npos);
  Scratch scratch;
  std::string text;
  std::vector<bool> seen(vocabulary_.size());  // a token may come of as many merges as it has bytes
  for (const std::uint32_t id : merges_.ids()) {
    if (seen[id]) continue;
    seen[id] = true;
    if (!piece_of(*vocabulary_.token(id), text)) continue;
    begin(text, scratch);
    for (std::size_t n = 1; n < scratch.symbols.size(); ++n) {
      neighbours_.add(scratch.symbols[n - 1], scratch.symbols[n]);
    }
    splits_at_metaspace_ = splits_at_metaspace_ && behind_spaces(text, 0).find(kMetaspace) == std::string_view::npos;
  }
}

void Bpe::find_whole() {
  Scratch scratch;
  std::string piece;
  std::vector<bool> whole(vocabulary_.size());
  std::vector<std::int64_t> ids;
  for (std::uint32_t place = 0; place < vocabulary_.tokens().size(); ++place) {
    const std::uint32_t id = vocabulary_.id_at(place);
    if (!piece_of(vocabulary_.tokens()[place], piece) || piece.empty()) continue;
    ids.clear();
    begin(piece, scratch);
    append_part("", scratch.symbols.data(), scratch.symbols.size(), scratch, ids);
    whole[id] = ids.size() == 1 && ids[0] == id;
  }
  whole_ = std::move(whole);
}

std::size_t Bpe::end_of_word(std::string_view text, std::size_t begin) const {
  if (!splits_at_metaspace_) return text.size();
  const std::string_view rest = behind_spaces(text, begin);
  return text.size() - rest.size() + std::min(rest.find(kMetaspace), rest.size());
}

void Bpe::append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const {
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t end = end_of_word(piece, at);
    append_word(piece.substr(at, end - at), scratch, ids);
    at = end;
  }
}

void Bpe::append_word(std::string_view word, Scratch& scratch, std::vector<std::int64_t>& ids) const {
  if (scratch.words.find(word, ids)) return;
  const std::size_t before = ids.size();
  make_word(word, scratch, ids);
  scratch.words.keep(word, ids, before);
}

void Bpe::make_word(std::string_view word, Scratch& scratch, std::vector<std::int64_t>& ids) const {
  if (word.size() <= longest_) {
    if (const std::uint32_t id = key(word); id != kNone && whole_[id]) return ids.push_back(id);
    const std::uint32_t id = !ignores_merges_ ? kNone : takes_bytes_ ? key(word) : index_.find(word);
    if (id != kNone) return ids.push_back(id);
  }
  begin(word, scratch);
  if (scratch.symbols.size() <= kFew || has_affixes()) {
    return append_part("", scratch.symbols.data(), scratch.symbols.size(), scratch, ids);
  }
  append_parts(word, false, SIZE_MAX, scratch, ids);
}

void Bpe::append_first(std::string_view piece, std::size_t most, Scratch& scratch,
                       std::vector<std::int64_t>& ids) const {
  const std::size_t enough = ids.size() + std::min(most, SIZE_MAX - ids.size());
  for (std::size_t at = 0; at < piece.size() && ids.size() < enough;) {
    const std::size_t end = end_of_word(piece, at);
    append_first_of_word(piece.substr(at, end - at), enough - ids.size(), scratch, ids);
    at = end;
  }
}

void Bpe::append_first_of_word(std::string_view word, std::size_t most, Scratch& scratch,
                               std::vector<std::int64_t>& ids) const {
  const std::size_t before = ids.size();
  for (std::size_t size = first_bytes(most, longest_); !has_affixes() && size < word.size() / 4; size *= 4) {
    std::size_t end = size;
    while ((static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) --end;
    begin(word.substr(0, end), scratch);
    append_parts(word.substr(0, end), true, most, scratch, ids);
    if (ids.size() - before >= most) return;
    ids.resize(before);
  }
  append_word(word, scratch, ids);
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
    return index_.find(text);
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
  constexpr std::uint64_t kPlaces = 64, kLast = UINT64_MAX;
  static_assert(kFew <= kPlaces);
  std::array<std::uint32_t, kFew> parts;
  std::array<std::uint8_t, kFew> next, previous;
  // Of each part with the next one its rank, and below that its place: of the lowest the leftmost. They are few, and
  // of 64 bits, of which compilers make no vectors where those would take longer.
  std::array<std::uint64_t, kFew> ranks;
  for (std::size_t n = 0; n < count; ++n) {
    parts[n] = symbols[n] & ~kForeign;
    next[n] = static_cast<std::uint8_t>(n + 1);
    previous[n] = static_cast<std::uint8_t>(n - 1);
  }
  const auto offer = [&](std::size_t place) {
    const std::size_t right = next[place];
    const std::uint32_t rank = right < count ? merges_.rank(parts[place], parts[right]) : MergeTable::kNone;
    ranks[place] = rank == MergeTable::kNone ? kLast : rank * kPlaces + place;
  };
  for (std::size_t n = 0; n < count; ++n) offer(n);
  while (true) {
    std::uint64_t best = kLast;
    for (std::size_t n = 0; n < count; ++n) best = std::min(best, ranks[n]);
    if (best == kLast) break;
    const std::size_t left = best % kPlaces, right = next[left];
    parts[left] = merges_.id(static_cast<std::uint32_t>(best / kPlaces));
    ranks[right] = kLast;
    next[left] = next[right];
    if (next[left] < count) previous[next[left]] = static_cast<std::uint8_t>(left);
    offer(left);
    if (left > 0) offer(previous[left]);
  }
  for (std::size_t n = 0; n < count; n = next[n]) ids.push_back(parts[n]);
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
    const std::uint32_t rank = merges_.rank(parts[place], parts[next[place]]);
    if (rank != MergeTable::kNone) heap.push_back(std::uint64_t{rank} << 32 | place);
    return rank != MergeTable::kNone;
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
    if (merges_.rank(parts[place], parts[right]) != rank) continue;
    parts[place] = merges_.id(rank);
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
