#include "models/tokenizers/tokenizer_json.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "headlight/models/errors.h"
#include "models/folder_keys.h"
#include "models/tokenizers/vocabulary.h"
#include "text/bert_words.h"

namespace headlight::models {
namespace {

using files::JsonValue;
using text::kLongestWord;

constexpr std::int64_t kFewIds = 1024;
// What an added token takes until its tokenizer is made, in lists that grow, and in places by its content.
constexpr std::size_t kOfAddedToken = 1024, kCopiesOfContent = 8;

JsonValue needed(const JsonValue& document, const char* key) {
  const auto value = document.object(key);
  if (!value) document.fail(key, "is missing, expected that of BERT");
  return *value;
}

void expect_type(const JsonValue& part, std::initializer_list<std::string_view> types) {
  const std::string type = part.string("type").value_or("");
  if (std::find(types.begin(), types.end(), type) != types.end()) return;
  std::string expected;
  for (const std::string_view one : types) {
    if (!one.empty()) expected.append(expected.empty() ? "" : " or ").append(one);
  }
  part.fail("type", "is " + in_quotes(type) + ", expected " + expected);
}

void read_normalizer(const JsonValue& document, TokenizerJson& into) {
  TokenizerOptions& options = into.options;
  const auto normalizer = document.object("normalizer");
  if (!normalizer) {
    into.has_normalizer = options.clean_text = options.lower_case = options.split_ideographs = false;
    options.strip_accents = false;
    return;
  }
  expect_type(*normalizer, {"BertNormalizer"});
  options.clean_text = normalizer->boolean("clean_text").value_or(true);
  options.split_ideographs = normalizer->boolean("handle_chinese_chars").value_or(true);
  options.strip_accents = normalizer->boolean("strip_accents");
  options.lower_case = normalizer->boolean("lowercase").value_or(true);
}

// The tokens in the order of their ids, of which the largest is known, and that they are different.
text::TokenList by_id(const JsonValue& vocabulary, std::int64_t largest, text::TableLimit& limit) {
  std::size_t count = 0, bytes = 0;
  bool in_order = true;
  std::int64_t before = -1;
  for (const auto& [token, value] : vocabulary.members()) {
    ++count;
    bytes += token.size();
    in_order = in_order && *value.as_integer() > before;
    before = *value.as_integer();
  }
  const auto ids = static_cast<std::size_t>(largest + 1);
  limit.take(text::TokenList::memory_of(ids, bytes));
  text::TokenList list;
  list.reserve(ids, bytes);
  const auto add = [&](std::string_view token, std::int64_t id) {
    while (list.size() < id) list.add("");
    list.add(token);
  };
  if (in_order) {
    for (const auto& [token, value] : vocabulary.members()) add(token, *value.as_integer());
    return list;
  }
  const std::size_t for_order = text::TokenList::memory_of(count, bytes) + ids * sizeof(std::uint32_t);
  limit.take(for_order);
  text::TokenList in_file;
  in_file.reserve(count, bytes);
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<std::uint32_t> places(ids, kNone);
  for (const auto& [token, value] : vocabulary.members()) {
    places[static_cast<std::size_t>(*value.as_integer())] = in_file.size();
    in_file.add(token);
  }
  for (std::size_t id = 0; id < ids; ++id) list.add(places[id] == kNone ? std::string_view() : in_file[places[id]]);
  limit.give_back(for_order);
  return list;
}

void read_model(const JsonValue& model, TokenizerJson& into) {
  expect_type(model, {"WordPiece", ""});  // the oldest files do not say
  TokenizerOptions& options = into.options;
  options.unk_token = model.string("unk_token").value_or("[UNK]");
  options.subword_prefix = model.string("continuing_subword_prefix").value_or("##");
  options.longest_word = model.integer("max_input_chars_per_word").value_or(kLongestWord);
  if (options.longest_word < 1 || options.longest_word > static_cast<std::int64_t>(kLongestWord)) {
    model.fail("max_input_chars_per_word",
               "is " + std::to_string(options.longest_word) + ", expected 1 to " + std::to_string(kLongestWord));
  }
  const auto vocabulary = model.object("vocab");
  if (!vocabulary) model.fail("vocab", "is missing, expected tokens and their ids");
  // Few ids may be left out: memory goes by the largest one.
  const auto tokens = static_cast<std::int64_t>(vocabulary->members().size());
  const std::int64_t most = std::min(2 * tokens + kFewIds, kMostIds);
  std::int64_t largest = -1;
  for (const auto& [token, value] : vocabulary->members()) {
    const std::int64_t id = value.as_integer().value_or(-1);
    if (id < 0 || id >= most) {
      value.fail("is " + value.described() + ", expected an id of 0 to " + std::to_string(most - 1));
    }
    largest = std::max(largest, id);
  }
  std::vector<bool> taken(static_cast<std::size_t>(largest + 1));
  for (const auto& [token, value] : vocabulary->members()) {
    const std::int64_t id = *value.as_integer();
    const auto place = static_cast<std::size_t>(id);
    if (taken[place]) value.fail("is " + std::to_string(id) + ", the id of another token");
    taken[place] = true;
  }
  into.has_gaps = tokens != largest + 1;
  into.vocabulary = by_id(*vocabulary, largest, into.limit);
}

// A token of TemplateProcessing's `single`: {"SpecialToken": {"id": "[CLS]", "type_id": 0}}.
std::string special_token(const JsonValue& piece) {
  const auto token = piece.object("SpecialToken");
  const auto name = token ? token->string("id") : std::nullopt;
  if (!name) piece.fail("is no SpecialToken, expected one before the text and one behind it");
  if (token->integer("type_id").value_or(0) != 0) token->fail("type_id", "is not 0");
  return *name;
}

// Where both tokens' ids are said, they are those of the vocabulary.
void check_id(const JsonValue& value, std::optional<std::int64_t> id, const std::string& token,
              const TokenizerJson& tokenizer) {
  const auto is = [&](std::int64_t number, const std::string& name) {
    if (number < static_cast<std::int64_t>(tokenizer.vocabulary.size()) && number >= 0 &&
        tokenizer.vocabulary[static_cast<std::uint32_t>(number)] == name) {
      return true;
    }
    return std::any_of(tokenizer.added.begin(), tokenizer.added.end(), [&](const ListedToken& added) {
      return added.has_id && added.token.id == number && added.token.content == name;
    });
  };
  if (!id || !is(*id, token)) value.fail("is not the id of " + in_quotes(token));
}

// Whether `pair` is [CLS] A [SEP] B [SEP], the last two of type 1.
bool is_pair_of_bert(const JsonValue& processor, const TokenizerOptions& options) {
  const auto is = [](const JsonValue& piece, const char* kind, const std::string& id, std::int64_t type) {
    const auto part = piece.object(kind);
    return part && part->string("id") == id && part->integer("type_id").value_or(0) == type;
  };
  constexpr std::size_t kPieces = 5;
  const auto pair = processor.array("pair");
  const std::vector<JsonValue> pieces = pair ? pair->few_elements(kPieces) : std::vector<JsonValue>();
  return pieces.size() == kPieces && is(pieces[0], "SpecialToken", options.cls_token, 0) &&
         is(pieces[1], "Sequence", "A", 0) && is(pieces[2], "SpecialToken", options.sep_token, 0) &&
         is(pieces[3], "Sequence", "B", 1) && is(pieces[4], "SpecialToken", options.sep_token, 1);
}

void read_template(const JsonValue& processor, TokenizerJson& into) {
  const auto single = processor.array("single");
  const std::vector<JsonValue> pieces = single ? single->few_elements(3) : std::vector<JsonValue>();
  if (pieces.size() != 3) processor.fail("single", "is no token, the text and a token");
  into.options.cls_token = special_token(pieces[0]);
  into.options.sep_token = special_token(pieces[2]);
  const auto sequence = pieces[1].object("Sequence");
  if (!sequence || sequence->string("id").value_or("") != "A" || sequence->integer("type_id").value_or(0) != 0) {
    pieces[1].fail("is not the text, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}");
  }
  const auto tokens = processor.object("special_tokens");
  for (const std::string& name : {into.options.cls_token, into.options.sep_token}) {
    const auto token = tokens ? tokens->object(name) : std::nullopt;
    const auto ids = token ? token->array("ids") : std::nullopt;
    const std::vector<JsonValue> id = ids ? ids->few_elements(1) : std::vector<JsonValue>();
    if (id.size() != 1) processor.fail("special_tokens", "has no id of " + in_quotes(name));
    check_id(*ids, id[0].as_integer(), name, into);
  }
  if (!is_pair_of_bert(processor, into.options)) {
    into.unread_pairs = printable(processor.path()) + ": " + processor.place_of("pair") +
                        " is not [CLS] A [SEP] B [SEP] with the last two of type_id 1, as BERT's";
  }
}

// BertProcessing: {"cls": ["[CLS]", 101], "sep": ["[SEP]", 102]}.
std::string pair_of(const JsonValue& processor, const char* key, const TokenizerJson& tokenizer) {
  const auto pair = processor.array(key);
  const std::vector<JsonValue> parts = pair ? pair->few_elements(2) : std::vector<JsonValue>();
  if (parts.size() != 2 || !parts[0].as_string()) processor.fail(key, "is no token with its id");
  std::string token(*parts[0].as_string());
  check_id(parts[1], parts[1].as_integer(), token, tokenizer);
  return token;
}

}  // namespace

TokenizerJson read_tokenizer_json(const ModelFolder& folder) {
  const JsonValue document = folder.json(kTokenizerFile, JsonValue::kLargestFile);
  std::vector<std::string> unknown;
  const auto check = [&](const JsonValue& object, const char* prefix) {
    check_keys(object, kTokenizerFile, prefix, unknown);
  };
  check(document, "");
  TokenizerJson tokenizer;
  tokenizer.path = document.path();
  tokenizer.limit = text::TableLimit(document);
  tokenizer.document = document;
  tokenizer.document_memory = document.memory();
  const JsonValue model = needed(document, "model");
  const JsonValue pre_tokenizer = needed(document, "pre_tokenizer");
  const JsonValue processor = needed(document, "post_processor");
  // Types first: of another kind of tokenizer its other keys say little.
  expect_type(model, {"WordPiece", ""});
  if (const auto normalizer = document.object("normalizer")) {
    expect_type(*normalizer, {"BertNormalizer"});
    check(*normalizer, "normalizer.");
  }
  expect_type(pre_tokenizer, {"BertPreTokenizer"});
  expect_type(processor, {"TemplateProcessing", "BertProcessing"});
  check(model, "model.");
  check(pre_tokenizer, "pre_tokenizer.");
  check(processor, "post_processor.");
  if (const auto truncation = document.object("truncation")) {
    const std::string direction = truncation->string("direction").value_or("Right");
    if (direction != "Right") truncation->fail("direction", "is " + in_quotes(direction) + ", expected Right");
  }
  read_normalizer(document, tokenizer);
  read_model(model, tokenizer);
  if (const auto added = document.array("added_tokens")) {
    for (const JsonValue& one : added->elements()) {
      tokenizer.added.push_back(read_listed_token(one, false));
      tokenizer.limit.take(kOfAddedToken + kCopiesOfContent * tokenizer.added.back().token.content.size());
    }
  }
  if (processor.string("type") == "BertProcessing") {
    tokenizer.options.cls_token = pair_of(processor, "cls", tokenizer);
    tokenizer.options.sep_token = pair_of(processor, "sep", tokenizer);
  } else {
    read_template(processor, tokenizer);
  }
  return tokenizer;
}

}  // namespace headlight::models
