#include "text/post_processor.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"

namespace headlight::text {
namespace {

using Kind = TemplatePart::Kind;
using IsId = std::function<bool(std::int64_t)>;

constexpr std::size_t kMostTokens = 64;  // of a template

std::int64_t checked(const JsonValue& value, const IsId& is_id) {
  const std::int64_t id = value.as_integer().value_or(-1);
  if (!is_id(id)) value.fail("is " + value.described() + ", expected the id of a token");
  return id;
}

// ["[CLS]", 101]
TemplatePart named(const JsonValue& part, std::string_view key, const IsId& is_id) {
  const auto list = part.array(key);
  const std::vector<JsonValue> both = list ? list->few_elements(2) : std::vector<JsonValue>();
  if (both.size() != 2 || !both[0].as_string()) part.fail(key, "is no token with its id");
  return {Kind::tokens, {checked(both[1], is_id)}};
}

PostProcessor of_bert(const JsonValue& part, const IsId& is_id, bool doubles_separator) {
  const TemplatePart begin = named(part, "cls", is_id), end = named(part, "sep", is_id);
  PostProcessor processor;
  processor.single = {begin, {Kind::first_text}, end};
  if (doubles_separator) {  // RoBERTa knows one type alone
    processor.pair = {begin, {Kind::first_text}, end, end, {Kind::second_text}, end};
  } else {
    processor.pair = {begin, {Kind::first_text}, end, {Kind::second_text, {}, 1}, {Kind::tokens, end.ids, 1}};
  }
  return processor;
}

constexpr std::int64_t kMostTypes = 1024;

std::int64_t type_of_tokens(const JsonValue& part) {
  const std::int64_t type = part.integer("type_id").value_or(0);
  if (type < 0 || type >= kMostTypes) part.fail("type_id", "is " + std::to_string(type) + ", expected a small number");
  return type;
}

// The special_tokens of a TemplateProcessing. Each name is looked for once, however many pieces have it.
class SpecialIds {
 public:
  SpecialIds(const JsonValue& processor, const IsId& is_id)
      : processor_(processor), tokens_(processor.object("special_tokens")), is_id_(is_id) {}

  const std::vector<std::int64_t>& of(const std::string& name) {
    const auto [place, is_new] = known_.try_emplace(name);
    if (is_new) read(name, place->second);
    return place->second;
  }

 private:
  void read(const std::string& name, std::vector<std::int64_t>& read) const {
    const auto special = tokens_ ? tokens_->object(name) : std::nullopt;
    const auto ids = special ? special->array("ids") : std::nullopt;
    if (!ids) processor_.fail("special_tokens", "has no ids of " + models::in_quotes(name));
    expect_keys(*special, {"id", "ids", "tokens"});
    for (const JsonValue& id : ids->elements()) {
      if (read.size() == kMostTokens) ids->fail("is longer than any template");
      read.push_back(checked(id, is_id_));
    }
  }

  const JsonValue& processor_;
  std::optional<JsonValue> tokens_;
  const IsId& is_id_;
  std::map<std::string, std::vector<std::int64_t>> known_;
};

// {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
TemplatePart template_part(const JsonValue& piece, SpecialIds& special, bool is_pair) {
  expect_keys(piece, {"Sequence", "SpecialToken"});
  if (const auto sequence = piece.object("Sequence")) {
    expect_keys(*sequence, {"id", "type_id"});
    const std::string id = needed_string(*sequence, "id");
    if (id != "A" && !(id == "B" && is_pair)) sequence->fail("id", "is " + models::in_quotes(id));
    return {id == "A" ? Kind::first_text : Kind::second_text, {}, type_of_tokens(*sequence)};
  }
  const auto token = piece.object("SpecialToken");
  if (!token) piece.fail("is neither Sequence nor SpecialToken");
  expect_keys(*token, {"id", "type_id"});
  const std::string name = needed_string(*token, "id");
  return {Kind::tokens, special.of(name), type_of_tokens(*token)};
}

std::vector<TemplatePart> template_of(const JsonValue& processor, const char* key, SpecialIds& special) {
  const bool is_pair = std::string_view(key) == "pair";
  std::vector<TemplatePart> parts;
  for (const JsonValue& piece : needed_parts(processor, key)) parts.push_back(template_part(piece, special, is_pair));
  return parts;
}

}  // namespace

PostProcessor read_post_processor(const JsonValue& part, const IsId& is_id) {
  const std::string type = type_of(part);
  if (type == "BertProcessing") {
    expect_keys(part, {"cls", "sep"});
    return of_bert(part, is_id, false);
  }
  if (type == "RobertaProcessing") {
    expect_keys(part, {"cls", "sep", "trim_offsets", "add_prefix_space"});
    return of_bert(part, is_id, true);
  }
  if (type == "ByteLevel") {  // which tells places in the text
    expect_keys(part, {"add_prefix_space", "trim_offsets", "use_regex"});
    return {};
  }
  if (type == "TemplateProcessing") {
    expect_keys(part, {"single", "pair", "special_tokens"});
    SpecialIds special(part, is_id);
    return {template_of(part, "single", special), template_of(part, "pair", special)};
  }
  if (type != "Sequence") part.fail("type", "is " + models::in_quotes(type) + ", no post-processor that is known");
  expect_keys(part, {"processors"});
  PostProcessor processor;
  bool adds = false;
  for (const JsonValue& one : needed_parts(part, "processors")) {
    PostProcessor next = read_post_processor(one, is_id);
    if (type_of(one) == "ByteLevel") continue;
    if (adds) one.fail("is the second that adds tokens");
    adds = true;
    processor = std::move(next);
  }
  return processor;
}

}  // namespace headlight::text
