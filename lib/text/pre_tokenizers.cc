#include "text/pre_tokenizers.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "text/bert_words.h"
#include "text/byte_characters.h"
#include "text/character_splitter.h"
#include "text/characters.h"
#include "text/cut.h"
#include "text/pieces.h"
#include "text/regular_expression.h"

namespace headlight::text {

Behavior read_behavior(const JsonValue& part, std::string_view key) {
  const std::string name = needed_string(part, key);
  if (name == "Isolated") return Behavior::isolated;
  if (name == "Removed") return Behavior::removed;
  if (name == "Contiguous") return Behavior::contiguous;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  part.fail(key, "is " + models::in_quotes(name) + ", no behaviour that is known");
}

namespace {

void split_matches(std::string_view text, bool first, const RegularExpression& expression, Behavior behavior,
                   bool inverts, PieceSink& out) {
  Pieces pieces(text, first, behavior, out);
  RegularExpression::Budget budget(text);
  for (std::size_t at = 0; at < text.size();) {
    const RegularExpression::Match match = expression.find(text, at, budget);
    pieces.add(match.begin, inverts);
    pieces.add(match.end, !inverts);
    at = match.end;
  }
  pieces.finish();
}

// Of what splits a text by matches that stand by themselves.
AtCut at_cut_of(const RegularExpression& expression, std::string_view space) {
  return space == " " && expression.ends_at_cuts() ? AtCut::splits : AtCut::unknown;
}

// GPT-2's.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevelSplitter final : public PreTokenizer {
 public:
  ByteLevelSplitter(const JsonValue& part, TableLimit& limit) {
    expect_keys(part, {"add_prefix_space", "trim_offsets", "use_regex"});
    prefixes_ = needed_boolean(part, "add_prefix_space");
    if (part.boolean("use_regex").value_or(true)) expression_.emplace(kByteLevelPattern, limit);
  }
  [[nodiscard]] bool writes_bytes() const override { return !keeps_bytes_; }
  void keep_bytes() override { keeps_bytes_ = true; }
  [[nodiscard]] AtCut at_cut(std::string_view space) const override {
    return expression_ ? at_cut_of(*expression_, space) : AtCut::unknown;
  }
  void split(std::string_view piece, bool first, Scratch& scratch, PieceSink& out) const override {
    Written prefixed(scratch), written(scratch);
    if (prefixes_ && piece[0] != ' ') piece = (*prefixed).append(" ").append(piece);
    if (keeps_bytes_) return split_bytes(piece, first, out);
    Writer writer(*written, out);
    split_bytes(piece, first, writer);
  }

 private:
  // Writes bytes as characters.
  class Writer final : public PieceSink {
   public:
    Writer(std::string& text, PieceSink& out) : text_(text), out_(out) {}
    void take(std::string_view piece, bool first) override {
      text_.clear();
      for (const char byte : piece) append_utf8(text_, kByteCharacters[static_cast<unsigned char>(byte)]);
      out_.take(text_, first);
    }

   private:
    std::string& text_;
    PieceSink& out_;
  };

  void split_bytes(std::string_view piece, bool first, PieceSink& out) const {
    if (expression_) return split_matches(piece, first, *expression_, Behavior::isolated, false, out);
    out.take(piece, first);
  }

  bool keeps_bytes_ = false, prefixes_ = false;
  std::optional<RegularExpression> expression_;
};

class MetaspaceSplitter final : public PreTokenizer {
 public:
  explicit MetaspaceSplitter(const JsonValue& part) {
    expect_keys(part, {"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    append_utf8(space_, needed_character(part, "replacement"));
    const std::string scheme = part.string("prepend_scheme").value_or("always");
    always_ = scheme == "always";
    prefixes_ = always_ || scheme == "first";
    if (!prefixes_ && scheme != "never") part.fail("prepend_scheme", "is " + models::in_quotes(scheme));
    if (part.boolean("add_prefix_space") == false && prefixes_) {
      if (part.contains("prepend_scheme")) part.fail("add_prefix_space", "is not what prepend_scheme says");
      part.fail("prepend_scheme", "is missing, beside add_prefix_space");
    }
    splits_ = part.boolean("split").value_or(true);
  }
  [[nodiscard]] AtCut at_cut(std::string_view space) const override {
    return splits_ && (space == " " || space == space_) ? AtCut::splits : AtCut::unknown;
  }
  void split(std::string_view piece, bool first, Scratch& scratch, PieceSink& out) const override {
    Written written(scratch);
    std::string& text = *written;
    const bool has_space = piece[0] == ' ' || piece.starts_with(space_);
    if (prefixes_ && (always_ || first) && !has_space) text = space_;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t end = std::min(piece.find(' ', at), piece.size());
      text.append(piece, at, end - at);
      if (end < piece.size()) text += space_;
      at = end + 1;
    }
    if (!splits_) return out.take(text, first);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(space_, at + 1), text.size());
      out.take(std::string_view(text).substr(at, end - at), first && at == 0);
      at = end;
    }
  }

 private:
  std::string space_;
  bool always_, prefixes_, splits_;
};

// \w+|[^\w\s]+
class WhitespaceSplitter final : public PreTokenizer {
 public:
  explicit WhitespaceSplitter(TableLimit& limit) : expression_(pattern(), limit) {}
  [[nodiscard]] AtCut at_cut(std::string_view space) const override { return at_cut_of(expression_, space); }
  void split(std::string_view piece, bool first, Scratch&, PieceSink& out) const override {
    split_matches(piece, first, expression_, Behavior::removed, true, out);
  }

 private:
  static std::string pattern() {
    // Unicode's \w (is_word_character()), which has joiners and lacks fractions, as that of regular expressions does
    // not.
    const std::string word =
        R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\u200C\u200D\u24B6-\u24E9\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
    return "[" + word + "]+|[^\\s" + word + "]+";
  }

  RegularExpression expression_;
};

class SplitSplitter final : public PreTokenizer {
 public:
  SplitSplitter(const JsonValue& part, TableLimit& limit) {
    expect_keys(part, {"pattern", "behavior", "invert"});
    behavior_ = read_behavior(part, "behavior");
    inverts_ = needed_boolean(part, "invert");
    const auto pattern = part.object("pattern");
    if (!pattern) part.fail("pattern", "is missing, expected an object");
    expect_keys(*pattern, {"String", "Regex"});
    if (const auto regex = pattern->string("Regex")) {
      expression_ = read_expression(*pattern, *regex, limit);
      return;
    }
    text_ = needed_string(*pattern, "String");
    if (text_.empty()) pattern->fail("String", "is empty");
    if (text_.size() > kLongestToken) pattern->fail("String", "is too long");
  }
  [[nodiscard]] AtCut at_cut(std::string_view space) const override {
    if (expression_) return behavior_ == Behavior::isolated ? at_cut_of(*expression_, space) : AtCut::unknown;
    if (!has_no_letters(text_)) return AtCut::unknown;
    if (text_ != space) return AtCut::passes;
    return inverts_ || behavior_ == Behavior::merged_with_previous ? AtCut::unknown : AtCut::splits;
  }
  void split(std::string_view piece, bool first, Scratch&, PieceSink& out) const override {
    if (expression_) return split_matches(piece, first, *expression_, behavior_, inverts_, out);
    Pieces pieces(piece, first, behavior_, out);
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = std::min(piece.find(text_, at), piece.size());
      const std::size_t end = std::min(begin + text_.size(), piece.size());
      pieces.add(begin, inverts_);
      pieces.add(end, !inverts_);
      at = end;
    }
    pieces.finish();
  }

 private:
  std::optional<RegularExpression> expression_;
  std::string text_;
  Behavior behavior_;
  bool inverts_;
};

class SequenceSplitter final : public PreTokenizer {
 public:
  SequenceSplitter(const JsonValue& part, TableLimit& limit) {
    expect_keys(part, {"pretokenizers"});
    const std::vector<JsonValue> parts = needed_parts(part, "pretokenizers");
    std::vector<CharacterRule> rules;  // for one walk
    const auto add_rules = [&] {
      if (!rules.empty()) parts_.push_back(std::make_unique<CharacterSplitter>(std::exchange(rules, {}), limit));
    };
    for (const JsonValue& one : parts) {
      if (const std::optional<CharacterRule> rule = read_character_rule(one)) {
        if (!rules.empty() && !(rules.back().is_plain() && rule->is_plain())) add_rules();
        // What matches a rule that was there is gone or alone already.
        if (std::find(rules.begin(), rules.end(), *rule) == rules.end()) rules.push_back(*rule);
        continue;
      }
      add_rules();
      parts_.push_back(read_pre_tokenizer(one, limit));
    }
    add_rules();
  }
  [[nodiscard]] bool writes_bytes() const override { return !parts_.empty() && parts_.back()->writes_bytes(); }
  void keep_bytes() override {
    if (!parts_.empty()) parts_.back()->keep_bytes();
  }
  [[nodiscard]] AtCut at_cut(std::string_view space) const override {
    for (const auto& part : parts_) {
      if (const AtCut found = part->at_cut(space); found != AtCut::passes) return found;
    }
    return AtCut::passes;
  }
  void split(std::string_view piece, bool first, Scratch& scratch, PieceSink& out) const override {
    Link(*this, 0, scratch, out).take(piece, first);
  }

 private:
  // Takes pieces for the part of that number.
  class Link final : public PieceSink {
   public:
    Link(const SequenceSplitter& sequence, std::size_t number, Scratch& scratch, PieceSink& out)
        : sequence_(sequence), number_(number), scratch_(scratch), out_(out) {}
    void take(std::string_view piece, bool first) override {
      if (piece.empty()) return;
      if (number_ == sequence_.parts_.size()) return out_.take(piece, first);
      Link next(sequence_, number_ + 1, scratch_, out_);
      sequence_.parts_[number_]->split(piece, first, scratch_, next);
    }

   private:
    const SequenceSplitter& sequence_;
    std::size_t number_;
    Scratch& scratch_;
    PieceSink& out_;
  };

  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

}  // namespace

AtCut BertSplitter::at_cut(std::string_view space) const { return at_white_space(space); }

void BertSplitter::split(std::string_view piece, bool first, Scratch&, PieceSink& out) const {
  class Words final : public WordSink {
   public:
    Words(std::string_view piece, bool first, PieceSink& out) : piece_(piece), first_(first), out_(out) {}
    bool take_word(std::string_view word, std::size_t) override {
      out_.take(word, first_ && word.data() == piece_.data());
      return true;
    }
    bool take_chunk(std::u32string_view, bool, std::size_t&) override { return false; }

   private:
    std::string_view piece_;
    bool first_;
    PieceSink& out_;
  };
  Words words(piece, first, out);
  split_normalized(piece, words);
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonValue& part, TableLimit& limit) {
  if (const std::optional<CharacterRule> rule = read_character_rule(part)) {
    return std::make_unique<CharacterSplitter>(std::vector{*rule}, limit);
  }
  const std::string type = type_of(part);
  if (type == "Sequence") return std::make_unique<SequenceSplitter>(part, limit);
  if (type == "ByteLevel") return std::make_unique<ByteLevelSplitter>(part, limit);
  if (type == "Metaspace") return std::make_unique<MetaspaceSplitter>(part);
  if (type == "Split") return std::make_unique<SplitSplitter>(part, limit);
  if (type == "BertPreTokenizer" || type == "Whitespace") {
    expect_keys(part, {});
    if (type == "Whitespace") return std::make_unique<WhitespaceSplitter>(limit);
    return std::make_unique<BertSplitter>();
  }
  part.fail("type", "is " + models::in_quotes(type) + ", no pre-tokenizer that is known");
}

}  // namespace headlight::text
