#include "files/compact_json.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "files/json_number.h"
#include "headlight/models/errors.h"

namespace headlight::files {

using models::FileError;
using models::in_quotes;

namespace {

constexpr int kDeepest = 64;
// Each byte lies in at most kDeepest such values: their ranges take no more than a sixteenth of the text.
constexpr std::uint32_t kLong = 8192;

bool is_digit(char byte) noexcept { return byte >= '0' && byte <= '9'; }

int hex_digit(char byte) noexcept {
  if (is_digit(byte)) return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

// Of keys in a text; which of two different ones comes first is of no account.
int compare_keys(const char* a, const char* b) noexcept {
  for (; *a == *b; ++a, ++b) {
    if (*a == CompactJson::kStringEnd) return 0;
  }
  return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
}

}  // namespace

// Reads the text from its beginning and writes it anew behind where it has read.
class CompactJson::Writer {
 public:
  Writer(const std::string& path, CompactJson& into)
      : path_(path), into_(into), text_(into.text_.data()), size_(into.text_.size()) {}

  void write() {
    if (into_.text_.starts_with("\xEF\xBB\xBF")) in_ = 3;
    write_value();
    pass_white_space();
    if (in_ != size_) fail();
    into_.text_.resize(out_);
  }

 private:
  [[noreturn]] void fail() const {
    throw FileError(path_, "is not valid JSON at its byte " + std::to_string(std::min(in_ + 1, size_)));
  }

  void pass_white_space() noexcept {
    while (in_ < size_ && (text_[in_] == ' ' || text_[in_] == '\n' || text_[in_] == '\t' || text_[in_] == '\r')) ++in_;
  }
  // The next byte; 0 at the end, which no rule takes.
  [[nodiscard]] char next() const noexcept { return in_ < size_ ? text_[in_] : '\0'; }
  // The next one that is no white space.
  char peek() noexcept {
    pass_white_space();
    return next();
  }
  void take(char expected) {
    if (peek() != expected) fail();
    ++in_;
  }
  void put(char byte) noexcept { text_[out_++] = byte; }

  void write_value() {
    switch (peek()) {
      case '{':
        return write_object();
      case '[':
        return write_array();
      case '"':
        return write_string();
      case 'n':
        return write_word("null");
      case 't':
        return write_word("true");
      case 'f':
        return write_word("false");
      default:
        return write_number();
    }
  }

  void write_word(std::string_view word) {
    for (const char letter : word) {
      if (next() != letter) fail();
      ++in_;
    }
    put(word[0]);
  }

  void write_digits() {
    if (!is_digit(next())) fail();
    while (is_digit(next())) put(text_[in_++]);
  }

  void write_number() {
    const std::size_t begin = out_;
    if (next() == '-') put(text_[in_++]);
    if (next() == '0') {
      put(text_[in_++]);
    } else {
      write_digits();
    }
    if (next() == '.') {
      put(text_[in_++]);
      write_digits();
    }
    if (next() == 'e' || next() == 'E') {
      put(text_[in_++]);
      if (next() == '+' || next() == '-') put(text_[in_++]);
      write_digits();
    }
    if (!std::isfinite(number_of({text_ + begin, out_ - begin}))) fail();
  }

  std::uint32_t four_digits() {
    std::uint32_t unit = 0;
    for (int n = 0; n < 4; ++n) {
      const int digit = hex_digit(next());
      if (digit < 0) fail();
      unit = unit << 4 | static_cast<std::uint32_t>(digit);
      ++in_;
    }
    return unit;
  }

  // What follows \u; a character beyond U+FFFF is two of them.
  void write_unit() {
    std::uint32_t character = four_digits();
    if (character >= 0xD800 && character <= 0xDFFF) {
      if (character >= 0xDC00 || next() != '\\') fail();
      ++in_;
      if (next() != 'u') fail();
      ++in_;
      const std::uint32_t second = four_digits();
      if (second < 0xDC00 || second > 0xDFFF) fail();
      character = 0x10000 + ((character & 0x3FF) << 10 | (second & 0x3FF));
    }
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes.data());
    for (std::size_t n = 0; n < static_cast<std::size_t>(count); ++n) put(static_cast<char>(bytes[n]));
  }

  void write_escape() {
    constexpr std::string_view kNames = "\"\\/bfnrt", kBytes = "\"\\/\b\f\n\r\t";
    const char name = next();
    const std::size_t at = kNames.find(name);
    if (at == std::string_view::npos && name != 'u') fail();
    ++in_;
    if (name == 'u') return write_unit();
    put(kBytes[at]);
  }

  void write_string() {
    ++in_;
    put(kStringBegin);
    for (;;) {
      const auto byte = static_cast<unsigned char>(next());
      if (byte < 0x20) fail();
      if (byte == '"') break;
      if (byte == '\\') {
        ++in_;
        write_escape();
      } else if (byte < 0x80) {
        put(text_[in_++]);
      } else {
        write_character();
      }
    }
    ++in_;
    put(kStringEnd);
  }

  void write_character() {
    utf8proc_int32_t character = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text_ + in_),
                                         static_cast<utf8proc_ssize_t>(size_ - in_), &character);
    if (length <= 0) fail();
    for (utf8proc_ssize_t n = 0; n < length; ++n) put(text_[in_++]);
  }

  void enter() {
    if (++depth_ > kDeepest) throw FileError(path_, "nests deeper than " + std::to_string(kDeepest));
    put(text_[in_++]);
  }
  void leave(std::size_t begin) {
    put(text_[in_++]);
    --depth_;
    if (out_ - begin < kLong) return;
    const Range range{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(out_)};
    // Those that lie in it have been left before.
    const auto behind = std::lower_bound(into_.long_values_.begin(), into_.long_values_.end(), range,
                                         [](const Range& a, const Range& b) { return a.begin < b.begin; });
    into_.long_values_.insert(behind, range);
  }

  void write_array() {
    const std::size_t begin = out_;
    enter();
    if (peek() != ']') {
      for (;;) {
        write_value();
        if (peek() == ']') break;
        take(',');
        put(',');
      }
    }
    leave(begin);
  }

  void write_object() {
    const std::size_t begin = out_;
    std::size_t members = 0;
    enter();
    if (peek() != '}') {
      for (;;) {
        if (peek() != '"') fail();
        write_string();
        ++members;
        take(':');
        write_value();
        if (peek() == '}') break;
        take(',');
        put(',');
      }
    }
    leave(begin);
    if (members > 1) check_keys(begin, members);
  }

  // By sorting: keys of a stranger's file that share one hash would cost a hash table the square of them.
  void check_keys(std::size_t begin, std::size_t members) {
    keys_.clear();
    keys_.reserve(members);
    for (auto key = static_cast<std::uint32_t>(begin + 1); keys_.size() < members;) {
      keys_.push_back(key + 1);
      const auto value = static_cast<std::uint32_t>(into_.text_.find(kStringEnd, key) + 1);
      key = into_.end_of(value) + 1;
    }
    std::sort(keys_.begin(), keys_.end(),
              [this](std::uint32_t a, std::uint32_t b) { return compare_keys(text_ + a, text_ + b) < 0; });
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return compare_keys(text_ + a, text_ + b) == 0;
    });
    if (twice == keys_.end()) return;
    throw FileError(path_, "holds the key " + in_quotes(into_.string_at(*twice - 1)) + " twice");
  }

  const std::string& path_;
  CompactJson& into_;
  char* const text_;
  const std::size_t size_;
  std::size_t in_ = 0, out_ = 0;  // out_ ≤ in_
  int depth_ = 0;
  std::vector<std::uint32_t> keys_;
};

CompactJson::CompactJson(const std::string& path, std::string text)
    : text_(std::move(text)), file_bytes_(text_.size()) {
  Writer(path, *this).write();
}

std::string_view CompactJson::string_at(std::uint32_t at) const noexcept {
  const std::size_t begin = std::size_t{at} + 1;
  return std::string_view(text_).substr(begin, text_.find(kStringEnd, begin) - begin);
}

std::uint32_t CompactJson::end_of(std::uint32_t at) const noexcept {
  const char* const text = text_.data();
  const auto behind_string = [this](std::uint32_t begin) {
    return static_cast<std::uint32_t>(text_.find(kStringEnd, begin) + 1);
  };
  switch (text[at]) {
    case 'n':
    case 't':
    case 'f':
      return at + 1;
    case kStringBegin:
      return behind_string(at);
    case '[':
    case '{':
      break;
    default:
      while (text[at] != ',' && text[at] != ']' && text[at] != '}' && text[at] != '\0') ++at;
      return at;
  }
  const auto found = std::lower_bound(long_values_.begin(), long_values_.end(), at,
                                      [](const Range& range, std::uint32_t wanted) { return range.begin < wanted; });
  if (found != long_values_.end() && found->begin == at) return found->end;
  for (int depth = 0;;) {
    const char byte = text[at];
    if (byte == kStringBegin) {
      at = behind_string(at);
      continue;
    }
    ++at;
    if (byte == '[' || byte == '{') ++depth;
    if ((byte == ']' || byte == '}') && --depth == 0) return at;
  }
}

}  // namespace headlight::files
