#include "text/token_index.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "text/byte_characters.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

// A byte as ByteLevel writes it: a character of one byte or two.
struct Written {
  unsigned char first = 0, second = 0;  // 0: there is none
};

constexpr std::array<Written, 256> kWritten = [] {
  std::array<Written, 256> written{};
  for (std::size_t byte = 0; byte < written.size(); ++byte) {
    const char32_t character = kByteCharacters[byte];
    if (character < 0x80) {
      written[byte].first = static_cast<unsigned char>(character);
    } else {
      written[byte] = {static_cast<unsigned char>(0xC0 | character >> 6),
                       static_cast<unsigned char>(0x80 | (character & 0x3F))};
    }
  }
  return written;
}();

// A token beside what bytes are written as: below, at or above 0.
int compare_written(std::string_view token, std::string_view bytes) noexcept {
  const auto* at = reinterpret_cast<const unsigned char*>(token.data());
  const auto* const end = at + token.size();
  for (const char byte : bytes) {
    const Written& written = kWritten[static_cast<unsigned char>(byte)];
    if (at == end) return -1;
    if (*at != written.first) return *at - written.first;
    ++at;
    if (written.second == 0) continue;
    if (at == end) return -1;
    if (*at != written.second) return *at - written.second;
    ++at;
  }
  return at == end ? 0 : 1;
}

}  // namespace

std::uint32_t TokenIndex::tag_of(std::string_view spelling) const noexcept {
  if (!by_bytes_) return TokenTable::tag_of(spelling);
  std::array<char, kLongestToken> bytes;
  std::size_t count = 0;
  for (std::size_t at = 0; at < spelling.size();) {
    const int byte = byte_of(next_code_point(spelling, at));
    if (byte < 0) return TokenTable::tag_of(spelling);
    bytes[count++] = static_cast<char>(byte);
  }
  return TokenTable::tag_of({bytes.data(), count});
}

std::optional<std::uint32_t> TokenIndex::build(const Vocabulary& vocabulary, TableLimit& limit) {
  vocabulary_ = &vocabulary;
  const std::size_t count = vocabulary.tokens().size();
  limit.take(TokenTable::memory_of(count));
  table_.reserve(count);
  fill();
  if (table_.size() == count) return std::nullopt;
  std::uint32_t place = 0;  // of the same the last one is found
  while (find(vocabulary.tokens()[place]) == vocabulary.id_at(place)) ++place;
  return place;
}

void TokenIndex::go_by_bytes() {
  by_bytes_ = true;
  table_.clear();
  fill();
}

void TokenIndex::fill() {
  const TokenList& tokens = vocabulary_->tokens();
  for (std::uint32_t place = 0; place < tokens.size(); ++place) table_.add(tag_of(tokens[place]), place);
  table_.sort([&](std::uint32_t a, std::uint32_t b) { return tokens[a].compare(tokens[b]); });
}

std::uint32_t TokenIndex::find(std::string_view spelling) const noexcept {
  if (spelling.size() > kLongestToken) return kNone;
  const TokenList& tokens = vocabulary_->tokens();
  return id_at(table_.find(tag_of(spelling), [&](std::uint32_t place) { return tokens[place].compare(spelling); }));
}

std::uint32_t TokenIndex::find_bytes(std::string_view bytes) const noexcept {
  const TokenList& tokens = vocabulary_->tokens();
  return id_at(table_.find(TokenTable::tag_of(bytes),
                           [&](std::uint32_t place) { return compare_written(tokens[place], bytes); }));
}

std::uint32_t TokenIndex::find_joined(std::string_view front, std::string_view back) const noexcept {
  if (front.size() + back.size() > kLongestToken) return kNone;
  std::array<char, kLongestToken> joined;
  std::memcpy(joined.data(), front.data(), front.size());
  std::memcpy(joined.data() + front.size(), back.data(), back.size());
  return find({joined.data(), front.size() + back.size()});
}

}  // namespace headlight::text
