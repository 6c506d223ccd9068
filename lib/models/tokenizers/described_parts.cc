#include "models/tokenizers/described_parts.h"

#include <cstddef>
#include <string_view>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"
#include "text/bert_words.h"
#include "text/cut.h"
#include "text/parts.h"
#include "text/utf8.h"

namespace headlight::models {
namespace {

using files::JsonValue;

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
  std::string says = type;
  const auto is = [&](const char* key, bool otherwise) { return part.boolean(key).value_or(otherwise); };
  if (type == "ByteLevel") {
    append_if(says, !is("use_regex", true), " without a pattern");
  } else if (type == "Metaspace") {
    append_if(says, part.string("replacement").value_or("") != text::kMetaspace, " of another character");
    const std::string scheme = part.string("prepend_scheme").value_or("always");
    append_if(says, scheme != "always" && scheme != "never", " " + scheme);
    append_if(says, !is("split", true), " unsplit");
  } else if (type == "Split") {
    says += pattern_of(part) + " " + part.string("behavior").value_or("");
    append_if(says, is("invert", false), " inverted");
  } else if (type == "Replace") {
    says += pattern_of(part) + " by " + in_quotes(part.string("content").value_or(""));
  } else if (type == "Prepend") {
    says += " " + in_quotes(part.string("prepend").value_or(""));
  } else if (type == "Strip") {
    append_if(says, is("strip_left", true), " left");
    append_if(says, is("strip_right", true), " right");
  } else if (type == "BertNormalizer") {
    append_if(says, !is("clean_text", true), " without clean_text");
  }
  return says;
}

// Of more parts than those, or of a longer one, as much is enough to tell that no class has them.
constexpr std::size_t kMostParts = 16, kLongestPart = 256;

std::string shortened(std::string part) {
  if (part.size() <= kLongestPart) return part;
  std::size_t end = kLongestPart + 1;
  static_cast<void>(text::previous_code_point(part, end));
  part.resize(end);
  return part + "…";
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
  std::string says = kind;
  for (const char* const key : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
    if (model.boolean(key).value_or(false)) says.append(" ").append(key);
  }
  const auto add_affix = [&](const char* key, const char* otherwise) {
    const std::string affix = model.string(key).value_or(otherwise);
    if (affix != otherwise) says.append(" ").append(key).append(" ").append(in_quotes(affix));
  };
  add_affix("continuing_subword_prefix", kind == "WordPiece" ? "##" : "");
  add_affix("end_of_word_suffix", "");
  constexpr auto kLongestWord = static_cast<std::int64_t>(text::kLongestWord);
  const std::int64_t longest = model.integer("max_input_chars_per_word").value_or(kLongestWord);
  if (longest != kLongestWord) says += " max_input_chars_per_word " + std::to_string(longest);
  return says;
}

}  // namespace headlight::models
