#include "text/decoders.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "text/byte_characters.h"
#include "text/normalizers.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

constexpr const char* kReplacement = "\uFFFD";

void replace_all(std::string& text, std::string_view pattern, std::string_view content) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = text.find(pattern); found != std::string::npos; found = text.find(pattern, at)) {
    out.append(text, at, found - at).append(content);
    at = found + pattern.size();
  }
  if (at > 0) text = out.append(text, at);
}

std::string joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

class ByteLevelDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) append_bytes(token, bytes);
    tokens = {valid_utf8(bytes)};
  }

 private:
  // A token of other characters stands for itself.
  static void append_bytes(const std::string& token, std::string& bytes) {
    const std::size_t before = bytes.size();
    for (std::size_t at = 0; at < token.size();) {
      const int byte = byte_of(next_code_point(token, at));
      if (byte < 0) {
        bytes.resize(before);
        bytes += token;
        return;
      }
      bytes += static_cast<char>(byte);
    }
  }
};

class MetaspaceDecoder final : public Decoder {
 public:
  explicit MetaspaceDecoder(const JsonValue& part) {
    expect_keys(part, {"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    append_utf8(space_, needed_character(part, "replacement"));
    const std::string scheme = part.string("prepend_scheme").value_or("always");
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      part.fail("prepend_scheme", "is " + models::in_quotes(scheme));
    }
    prefixes_ = scheme != "never";
    if (part.boolean("add_prefix_space") == false && prefixes_) {
      part.fail("add_prefix_space", "is not what prepend_scheme says");
    }
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t n = 0; n < tokens.size(); ++n) replace_all(tokens[n], space_, n == 0 && prefixes_ ? "" : " ");
  }

 private:
  std::string space_;
  bool prefixes_ = true;
};

class WordPieceDecoder final : public Decoder {
 public:
  explicit WordPieceDecoder(const JsonValue& part) {
    expect_keys(part, {"prefix", "cleanup"});
    prefix_ = needed_string(part, "prefix");
    cleans_ = needed_boolean(part, "cleanup");
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      if (n > 0 && tokens[n].starts_with(prefix_)) {
        tokens[n].erase(0, prefix_.size());
      } else if (n > 0) {
        tokens[n].insert(tokens[n].begin(), ' ');
      }
      if (cleans_) clean(tokens[n]);
    }
  }

 private:
  static void clean(std::string& token) {
    constexpr std::array<std::pair<const char*, const char*>, 11> kSpellings{{{" .", "."},
                                                                              {" ?", "?"},
                                                                              {" !", "!"},
                                                                              {" ,", ","},
                                                                              {" ' ", "'"},
                                                                              {" n't", "n't"},
                                                                              {" 'm", "'m"},
                                                                              {" do not", " don't"},
                                                                              {" 's", "'s"},
                                                                              {" 've", "'ve"},
                                                                              {" 're", "'re"}}};
    for (const auto& [apart, together] : kSpellings) replace_all(token, apart, together);
  }

  std::string prefix_;
  bool cleans_ = false;
};

// <0xE2> and others are bytes; where those side by side are not UTF-8, each is U+FFFD.
class ByteFallbackDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (first_invalid(bytes) == bytes.size()) {
        if (!bytes.empty()) out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), kReplacement);
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      const int byte = byte_named(token);
      if (byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }

 private:
  static int digit_of(char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
  }
  static int byte_named(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
    if (token[3] == '+') return digit_of(token[4]);  // a sign is a part of a number to the published decoder
    const int high = digit_of(token[3]), low = digit_of(token[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
  }
};

class FuseDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override { tokens = {joined(tokens)}; }
};

class StripDecoder final : public Decoder {
 public:
  explicit StripDecoder(const JsonValue& part) {
    expect_keys(part, {"content", "start", "stop"});
    append_utf8(content_, needed_character(part, "content"));
    start_ = part.integer("start").value_or(-1);
    stop_ = part.integer("stop").value_or(-1);
    if (start_ < 0) part.fail("start", "is no number of characters");
    if (stop_ < 0) part.fail("stop", "is no number of characters");
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view left = token;
      for (std::int64_t n = 0; n < start_ && left.starts_with(content_); ++n) left.remove_prefix(content_.size());
      for (std::int64_t n = 0; n < stop_ && left.ends_with(content_); ++n) left.remove_suffix(content_.size());
      token = std::string(left);
    }
  }

 private:
  std::string content_;
  std::int64_t start_, stop_;
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(const JsonValue& part, TableLimit& limit) : replacement_(part, limit) {}
  void apply(std::vector<std::string>& tokens) const override {
    bool whole = true;
    Spare spare;
    for (std::string& token : tokens) replacement_.apply(token, spare, whole);
  }

 private:
  Replacement replacement_;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(const JsonValue& part) : suffix_(needed_string(part, "suffix")) {
    expect_keys(part, {"suffix"});
    if (suffix_.empty()) part.fail("suffix", "is empty");
    if (suffix_.size() > kLongestToken) part.fail("suffix", "is too long");
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) replace_all(token, suffix_, &token == &tokens.back() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class SequenceDecoder final : public Decoder {
 public:
  SequenceDecoder(const JsonValue& part, TableLimit& limit) {
    // Flat, as a Sequence of normalizers is.
    for (const JsonValue& one : flat_parts(part, "decoders")) parts_.push_back(read_decoder(one, limit));
  }
  void apply(std::vector<std::string>& tokens) const override {
    const std::size_t before = bytes_of(tokens);
    for (const auto& part : parts_) {
      part->apply(tokens);
      check_growth(before, bytes_of(tokens));
    }
  }

 private:
  static std::size_t bytes_of(const std::vector<std::string>& tokens) {
    std::size_t bytes = 0;
    for (const std::string& token : tokens) bytes += token.size();
    return bytes;
  }

  std::vector<std::unique_ptr<Decoder>> parts_;
};

}  // namespace

std::unique_ptr<Decoder> read_decoder(const JsonValue& part, TableLimit& limit) {
  const std::string type = type_of(part);
  if (type == "Sequence") return std::make_unique<SequenceDecoder>(part, limit);
  if (type == "Metaspace") return std::make_unique<MetaspaceDecoder>(part);
  if (type == "WordPiece") return std::make_unique<WordPieceDecoder>(part);
  if (type == "Strip") return std::make_unique<StripDecoder>(part);
  if (type == "Replace") return std::make_unique<ReplaceDecoder>(part, limit);
  if (type == "BPEDecoder") return std::make_unique<BpeDecoder>(part);
  if (type == "ByteLevel") {
    expect_keys(part, {"add_prefix_space", "trim_offsets", "use_regex"});
    return std::make_unique<ByteLevelDecoder>();
  }
  if (type == "ByteFallback" || type == "Fuse") {
    expect_keys(part, {});
    if (type == "Fuse") return std::make_unique<FuseDecoder>();
    return std::make_unique<ByteFallbackDecoder>();
  }
  part.fail("type", "is " + models::in_quotes(type) + ", no decoder that is known");
}

}  // namespace headlight::text
