#include "text/normalizers.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "text/byte_characters.h"
#include "text/characters.h"
#include "text/precompiled.h"
#include "text/published_versions.h"
#include "text/unicode_forms.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

// Of each character what map(character, out) appends; those of which keeps(character) is true stay as they are.
template <class Keeps, class Map>
void map_characters(std::string& text, Spare& spare, bool& whole_front, Keeps keeps, Map map) {
  std::string& out = spare.text;
  out.clear();
  std::size_t given = 0;  // what lies before went into `out`
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t character = next_code_point(text, at);
    if (keeps(character)) continue;
    out.append(text, given, begin - given);
    map(character, out);
    given = at;
    if (begin == 0 && out.empty()) whole_front = false;
  }
  if (given == 0) return;
  out.append(text, given);
  text.swap(out);
}

constexpr auto kKeepsNone = [](char32_t) { return false; };

char32_t lower(char32_t character) {
  if (character < 0x80) return character >= 'A' && character <= 'Z' ? character + 0x20 : character;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character)));
}

void append_lower(char32_t character, std::string& out) {
  if (character == U'\u0130') {
    out += "i\u0307";
  } else {
    append_utf8(out, lower(character));
  }
}

bool is_any_mark(char32_t character) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return !in_ranges(kUnknownMarks, static_cast<std::int32_t>(character));
    default:  // marks of earlier versions
      return character == U'\u1CF2' || character == U'\u1CF3';
  }
}

class FormNormalizer final : public Normalizer {
 public:
  FormNormalizer(UnicodeForm form, TableLimit& limit) : form_(form, limit) {}
  void apply(std::string& text, Spare& spare, bool&) const override { form_.apply(text, spare); }
  [[nodiscard]] bool passes_cuts() const override { return true; }

 private:
  FormTable form_;
};

class LowercaseNormalizer final : public Normalizer {
 public:
  explicit LowercaseNormalizer(TableLimit& limit) : is_lower_(&is_lower, limit) {}
  void apply(std::string& text, Spare& spare, bool& whole_front) const override {
    const auto keeps = [this](char32_t character) { return is_lower_(character) != 0; };
    map_characters(text, spare, whole_front, keeps, append_lower);
  }
  [[nodiscard]] bool passes_cuts() const override { return true; }

 private:
  static std::uint8_t is_lower(char32_t character) {
    return character != U'\u0130' && lower(character) == character ? 1 : 0;
  }

  CharacterTable is_lower_;
};

class StripAccentsNormalizer final : public Normalizer {
 public:
  explicit StripAccentsNormalizer(TableLimit& limit) : is_mark_(&is_any_mark, limit) {}
  void apply(std::string& text, Spare& spare, bool& whole_front) const override {
    const auto keeps = [this](char32_t character) { return is_mark_(character) == 0; };
    map_characters(text, spare, whole_front, keeps, [](char32_t, std::string&) {});
  }
  [[nodiscard]] bool passes_cuts() const override { return true; }

 private:
  CharacterTable is_mark_;
};

BertRules read_bert_rules(const JsonValue& part) {
  expect_keys(part, {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  BertRules rules{.cleans = needed_boolean(part, "clean_text"),
                  .sets_apart = needed_boolean(part, "handle_chinese_chars"),
                  .lowers = needed_boolean(part, "lowercase")};
  rules.strips = part.boolean("strip_accents").value_or(rules.lowers);
  return rules;
}

class StripNormalizer final : public Normalizer {
 public:
  explicit StripNormalizer(const JsonValue& part) {
    expect_keys(part, {"strip_left", "strip_right"});
    left_ = needed_boolean(part, "strip_left");
    right_ = needed_boolean(part, "strip_right");
  }
  void apply(std::string& text, Spare&, bool& whole_front) const override {
    std::size_t begin = 0, end = text.size();
    for (std::size_t at = 0; left_ && at < end && is_white_space(next_code_point(text, at));) begin = at;
    for (std::size_t at = end; right_ && at > begin && is_white_space(previous_code_point(text, at));) end = at;
    if (begin > 0) whole_front = false;
    text.erase(end);
    text.erase(0, begin);
  }
  [[nodiscard]] bool passes_cuts() const override { return true; }

 private:
  bool left_, right_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(const JsonValue& part, TableLimit& limit) : replacement_(part, limit) {}
  void apply(std::string& text, Spare& spare, bool& whole_front) const override {
    replacement_.apply(text, spare, whole_front);
  }
  [[nodiscard]] bool passes_cuts() const override { return replacement_.passes_cuts(); }

 private:
  Replacement replacement_;
};

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(const JsonValue& part) : prefix_(needed_string(part, "prepend")) {
    expect_keys(part, {"prepend"});
    if (prefix_.size() > kLongestToken) part.fail("prepend", "is too long");
  }
  void apply(std::string& text, Spare&, bool&) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }
  [[nodiscard]] bool passes_cuts() const override { return true; }

 private:
  std::string prefix_;
};

class NmtNormalizer final : public Normalizer {
 public:
  void apply(std::string& text, Spare& spare, bool& whole_front) const override {
    const auto keeps = [](char32_t character) { return !is_gone(character) && !is_space(character); };
    map_characters(text, spare, whole_front, keeps, [](char32_t character, std::string& out) {
      if (is_space(character)) out += ' ';
    });
  }
  [[nodiscard]] bool passes_cuts() const override { return true; }

 private:
  static bool is_gone(char32_t character) {
    return (character >= 0x1 && character <= 0x8) || character == 0xB || (character >= 0xE && character <= 0x1F) ||
           character == 0x7F || character == 0x8F || character == 0x9F;
  }
  static bool is_space(char32_t character) {
    return character == 0x9 || character == 0xA || character == 0xC || character == 0xD || character == 0x1680 ||
           (character >= 0x200B && character <= 0x200F) || character == 0x2028 || character == 0x2029 ||
           character == 0x2581 || character == 0xFEFF || character == 0xFFFD;
  }
};

class ByteLevelNormalizer final : public Normalizer {
 public:
  void apply(std::string& text, Spare& spare, bool&) const override {
    spare.text.clear();
    for (const char byte : text) append_utf8(spare.text, kByteCharacters[static_cast<unsigned char>(byte)]);
    text.swap(spare.text);
  }
};

class SequenceNormalizer final : public Normalizer {
 public:
  SequenceNormalizer(const JsonValue& part, TableLimit& limit) {
    // Flat, so that growth is checked behind each of them.
    for (const JsonValue& one : flat_parts(part, "normalizers")) parts_.push_back(read_normalizer(one, limit));
  }
  void apply(std::string& text, Spare& spare, bool& whole_front) const override {
    const std::size_t before = text.size();
    for (const auto& part : parts_) {
      part->apply(text, spare, whole_front);
      check_growth(before, text.size());
    }
  }
  [[nodiscard]] bool passes_cuts() const override {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->passes_cuts(); });
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

void BertNormalizer::apply(std::string& text, Spare& spare, bool& whole_front) const {
  map_characters(text, spare, whole_front, kKeepsNone, [this](char32_t character, std::string& out) {
    if (rules_.cleans && (character == 0 || is_removed(character))) return;
    if (rules_.cleans && is_white_space(character)) {
      out += ' ';
      return;
    }
    const bool apart = rules_.sets_apart && is_ideograph(character);
    if (apart) out += ' ';
    append_utf8(out, character);
    if (apart) out += ' ';
  });
  if (rules_.strips) {
    apply_form(text, {}, spare);
    map_characters(
        text, spare, whole_front, [](char32_t character) { return !is_stripped_mark(character); },
        [](char32_t, std::string&) {});
  }
  if (rules_.lowers) map_characters(text, spare, whole_front, kKeepsNone, append_lower);
}

std::unique_ptr<Normalizer> read_normalizer(const JsonValue& part, TableLimit& limit) {
  const std::string type = type_of(part);
  if (type == "Sequence") return std::make_unique<SequenceNormalizer>(part, limit);
  if (type == "BertNormalizer") return std::make_unique<BertNormalizer>(read_bert_rules(part));
  if (type == "Strip") return std::make_unique<StripNormalizer>(part);
  if (type == "Replace") return std::make_unique<ReplaceNormalizer>(part, limit);
  if (type == "Prepend") return std::make_unique<PrependNormalizer>(part);
  if (type == "Precompiled") return std::make_unique<Precompiled>(part, limit);
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    expect_keys(part, {});
    return std::make_unique<FormNormalizer>(UnicodeForm{.compatible = type.size() == 4, .composed = type.back() == 'C'},
                                            limit);
  }
  const auto without_keys = [&]<class Part>(std::unique_ptr<Part> made) -> std::unique_ptr<Normalizer> {
    expect_keys(part, {});
    return made;
  };
  if (type == "Lowercase") return without_keys(std::make_unique<LowercaseNormalizer>(limit));
  if (type == "StripAccents") return without_keys(std::make_unique<StripAccentsNormalizer>(limit));
  if (type == "Nmt") return without_keys(std::make_unique<NmtNormalizer>());
  if (type == "ByteLevel") return without_keys(std::make_unique<ByteLevelNormalizer>());
  part.fail("type", "is " + models::in_quotes(type) + ", no normalizer that is known");
}

}  // namespace headlight::text
