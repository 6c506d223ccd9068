#include "models/tokenizers/described_parts.h"

#include <cstddef>
#include <string_view>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"
#include "text/parts.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr std::string_view kMetaspace = "\u2581";

// " 'a'", or " /a+/" of a regular expression.
std::string pattern_of(const JsonValue& part) {
  const auto pattern = part.object("pattern");
  if (!pattern) return "";
  if (const auto text = pattern->string("String")) return " " + in_quotes(*text);
  return " /" + pattern->string("Regex").value_or("") + "/";
}

void append_if(std::string& text, bool condition, const std::string& more) {
  if (condition) text += more;
}

std::string described(const JsonValue& part) {
  if (!part.is_object()) return part.described();
  const std::string type = part.string("type").value_or("");
  std::string text = type;
  const auto is = [&](const char* key, bool otherwise) { return part.boolean(key).value_or(otherwise); };
  if (type == "ByteLevel") {
    append_if(text, !is("use_regex", true), " without a pattern");
  } else if (type == "Metaspace") {
    append_if(text, part.string("replacement").value_or("") != kMetaspace, " of another character");
    const std::string scheme = part.string("prepend_scheme").value_or("always");
    append_if(text, scheme != "always" && scheme != "never", " " + scheme);
    append_if(text, !is("split", true), " unsplit");
  } else if (type == "Split") {
    text += pattern_of(part) + " " + part.string("behavior").value_or("");
    append_if(text, is("invert", false), " inverted");
  } else if (type == "Replace") {
    text += pattern_of(part) + " by " + in_quotes(part.string("content").value_or(""));
  } else if (type == "Prepend") {
    text += " " + in_quotes(part.string("prepend").value_or(""));
  } else if (type == "Strip") {
    append_if(text, is("strip_left", true), " left");
    append_if(text, is("strip_right", true), " right");
  } else if (type == "BertNormalizer") {
    append_if(text, !is("clean_text", true), " without clean_text");
  }
  return text;
}

// Of more parts than those, or of a longer one, as much is enough to tell that no class has them.
constexpr std::size_t kMostParts = 16, kLongestPart = 256;

std::string shortened(std::string text) {
  if (text.size() <= kLongestPart) return text;
  std::size_t size = kLongestPart;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0u) == 0x80u) --size;
  text.resize(size);
  return text + "…";
}

}  // namespace

std::vector<JsonValue> parts_of(const std::optional<JsonValue>& part) {
  if (!part) return {};
  if (part->string("type") != "Sequence") return {*part};
  for (const char* const key : {"normalizers", "pretokenizers"}) {
    if (const auto list = part->array(key)) return list->few_elements(kMostParts);
  }
  return {};
}

std::vector<std::string> described_parts(const std::optional<JsonValue>& part) {
  std::vector<std::string> described_ones;
  for (const JsonValue& one : parts_of(part)) described_ones.push_back(shortened(described(one)));
  return described_ones;
}

std::string joined(const std::vector<std::string>& parts) { return parts.empty() ? "none" : runtime::list_text(parts); }

std::string described_model(const JsonValue& model) {
  const std::string kind = text::type_of_model(model);
  std::string text = kind;
  for (const char* const key : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
    if (model.boolean(key).value_or(false)) text.append(" ").append(key);
  }
  const auto add_affix = [&](const char* key, const char* otherwise) {
    const std::string affix = model.string(key).value_or(otherwise);
    if (affix != otherwise) text.append(" ").append(key).append(" ").append(in_quotes(affix));
  };
  add_affix("continuing_subword_prefix", kind == "WordPiece" ? "##" : "");
  add_affix("end_of_word_suffix", "");
  constexpr std::int64_t kLongestWord = 100;
  const std::int64_t longest = model.integer("max_input_chars_per_word").value_or(kLongestWord);
  if (longest != kLongestWord) text += " max_input_chars_per_word " + std::to_string(longest);
  return text;
}

}  // namespace headlight::models
