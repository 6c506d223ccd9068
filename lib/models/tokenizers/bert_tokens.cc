#include "models/tokenizers/bert_tokens.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// The one of kTokenLists that has tokens, if there is one.
std::optional<JsonValue> list_of(const JsonValue& file) {
  std::optional<JsonValue> found;
  for (const char* const key : kTokenLists) {
    const auto list = file.find(key);
    if (!list) continue;
    if (!list->is_array() && !list->is_object()) list->fail("is " + list->described() + ", expected a list");
    if (list->elements().empty() && list->members().empty()) continue;
    // Transformers 5 passes the second over.
    if (found) file.fail(key, "has tokens, expected none beside " + std::string(kTokenLists[0]));
    found = list;
  }
  return found;
}

// The tokens that files name or list beside added_tokens.json, of which `special` says whether all versions of
// Transformers take them for special ones: those that have a name, or stand in a list. An object counts in
// special_tokens_map.json alone, and additional_special_tokens in tokenizer_config.json alone.
ListedTokens named_or_listed(const BertSources& sources) {
  ListedTokens tokens;
  for (const auto* const file : {&sources.special, &sources.config}) {
    if (!*file) continue;
    const bool is_map = file == &sources.special;
    const auto add = [&](const JsonValue& value, bool is_clear) {
      if (!value.as_string() && !value.is_object()) return;
      ListedToken token = read_listed_token(value, true);
      const ListedToken* const there = tokens.find(token.token.content);
      token.token.special = (is_clear && (is_map || value.as_string())) || (there != nullptr && there->token.special);
      tokens.add(std::move(token));
    };
    for (const auto& [key, value] : (*file)->members()) {
      const bool has_name = is_named_token(key);
      const bool is_overridden = has_name && !is_map && sources.special && sources.special->contains(key);
      if (key.ends_with("_token") && !is_overridden) add(value, has_name);
    }
    for (const char* const key : kTokenLists) {
      const auto list = (*file)->find(key);
      if (!list) continue;
      for (const JsonValue& value : list->elements()) add(value, !is_map || key == kTokenLists[0]);
      for (const auto& [name, value] : list->members()) add(value, false);
    }
  }
  return tokens;
}

std::vector<ListedToken> of_decoder(const JsonValue& decoder) {
  std::vector<ListedToken> tokens;
  for (const auto& [key, value] : decoder.members()) {
    ListedToken token = read_listed_token(value, false);
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token.token.id);
    if (error != std::errc() || end != key.data() + key.size()) value.fail("has a key that is no id");
    token.has_id = true;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// A token of added_tokens.json; `is_of_json`: tokenizer.json has it, too, and comes after it.
ListedToken of_added_file(std::string_view content, const JsonValue& value, const ListedTokens& beside,
                          bool is_of_json) {
  if (!value.as_integer()) value.fail("is " + value.described() + ", expected the id of a token");
  const ListedToken* const known = beside.find(content);
  const bool is_special = known != nullptr && known->token.special;
  if (known != nullptr && !is_special && !is_of_json) {
    value.fail("is listed in " + known->place->place() +
               ", too, expected it in one of them: versions of Transformers disagree whether it is special");
  }
  return {.token = {.content = std::string(content),
                    .id = *value.as_integer(),
                    .normalized = !is_special,
                    .special = is_special},
          .has_id = true,
          .place = value};
}

std::vector<ListedToken> of_older_files(const BertSources& sources) {
  std::vector<ListedToken> tokens;
  if (sources.added) {
    const ListedTokens beside = named_or_listed(sources);
    std::set<std::string_view> of_json;
    if (sources.json) {
      for (const ListedToken& token : sources.json->added) of_json.insert(token.token.content);
    }
    for (const auto& [content, value] : sources.added->members()) {
      tokens.push_back(of_added_file(content, value, beside, of_json.contains(content)));
    }
  }
  if (sources.json) tokens.insert(tokens.end(), sources.json->added.begin(), sources.json->added.end());
  return tokens;
}

// Of one that was named or listed before, options must be the same: which of them count depends on the version.
void add_once(ListedTokens& tokens, ListedToken token) {
  const ListedToken* const there = tokens.find(token.token.content);
  const auto options = [](const AddedToken& of) {
    return std::tuple(of.single_word, of.lstrip, of.rstrip, of.normalized);
  };
  if (there != nullptr && !there->has_id && token.place && options(there->token) != options(token.token)) {
    token.place->fail("is " + in_quotes(token.token.content) + " with other options than where it stands, too");
  }
  tokens.add_unless_there(std::move(token));
}

// Whatever else has a key that ends in "_token", tokens by name, and then, as Transformers orders them, lists.
void add_special(const BertSources& sources, ListedTokens& tokens) {
  const auto add = [&](const JsonValue& value) {
    ListedToken token = read_listed_token(value, true);
    token.has_id = false;
    add_once(tokens, std::move(token));
  };
  for (const auto* const file : {&sources.config, &sources.special}) {
    if (!*file) continue;
    for (const auto& [key, value] : (*file)->members()) {
      if (!key.ends_with("_token") || is_named_token(key)) continue;
      if (value.is_object() && file == &sources.config) {
        value.fail("is an object, expected a text, for Transformers passes an object over");
      }
      if (value.as_string() || value.is_object()) add(value);
    }
    if (const auto list = list_of(**file)) {
      for (const auto& [name, value] : list->members()) add(value);
    }
  }
  for (const auto& file : {sources.config, sources.special}) {
    const auto list = file ? list_of(*file) : std::nullopt;
    if (!list) continue;
    for (const JsonValue& value : list->elements()) add(value);
  }
}

// Beside a class of BERT's Transformers 4 adds the class's tokens, and Transformers 5 those of the file alone, where
// it takes all of it.
void check_default(const BertSources& sources, const std::string& name, const char* key) {
  if (!sources.family_takes_file || !sources.json) return;
  const auto is_it = [&](const ListedToken& token) { return token.token.content == name; };
  if (std::any_of(sources.json->added.begin(), sources.json->added.end(), is_it)) return;
  throw FileError(sources.json->path,
                  "added_tokens lacks " + in_quotes(name) + ", the " + key + " for this tokenizer_class");
}

// Where added_tokens_decoder lists tokens, some versions of Transformers match those of tokenizer.json beside them,
// others do not.
void check_none_forgotten(const BertSources& sources, const ListedTokens& tokens, bool has_decoder) {
  if (!sources.json || !has_decoder) return;
  for (const ListedToken& token : sources.json->added) {
    if (tokens.find(token.token.content) != nullptr || token.token.content.empty()) continue;
    token.place->fail("is " + in_quotes(token.token.content) +
                      ", expected the same in added_tokens_decoder of tokenizer_config.json");
  }
}

}  // namespace

std::optional<ListedToken> named_of(const BertSources& sources, std::string_view key) {
  for (const auto& file : {sources.special, sources.config}) {
    if (!file || !file->contains(key)) continue;
    const auto value = file->find(key);
    if (!value) return std::nullopt;
    ListedToken token = read_listed_token(*value, true);
    if (!value->is_object() || !value->find("normalized")) token.token.normalized = false;
    token.token.special = true;
    token.has_id = false;
    return token;
  }
  return std::nullopt;
}

std::string default_of(const BertSources& sources, std::string_view key) {
  if (sources.takes_file) return "";
  if (key == "unk_token") return "[UNK]";
  if (key == "sep_token") return "[SEP]";
  if (key == "cls_token") return "[CLS]";
  const bool taken_away =
      (sources.config && sources.config->contains(key)) || (sources.special && sources.special->contains(key));
  if (key == "pad_token" && !taken_away) return "[PAD]";
  return key == "mask_token" && !taken_away ? "[MASK]" : "";
}

ListedTokens added_tokens(const BertSources& sources) {
  ListedTokens tokens;
  const auto decoder = sources.config ? sources.config->object("added_tokens_decoder") : std::nullopt;
  if (sources.json && sources.takes_file) {
    for (const ListedToken& token : sources.json->added) tokens.add(token);
  }
  std::vector<ListedToken> by_id = decoder ? of_decoder(*decoder) : of_older_files(sources);
  std::stable_sort(by_id.begin(), by_id.end(),
                   [](const ListedToken& a, const ListedToken& b) { return a.token.id < b.token.id; });
  for (const ListedToken& token : by_id) tokens.add(token);
  for (const char* const key : kNamedTokens) {
    if (auto token = named_of(sources, key)) {
      add_once(tokens, *std::move(token));
    } else if (const std::string name = default_of(sources, key); !name.empty()) {
      check_default(sources, name, key);
      tokens.add_unless_there({.token = {.content = name}, .needs_piece = name != "[MASK]"});
    }
  }
  add_special(sources, tokens);
  check_none_forgotten(sources, tokens, decoder.has_value());
  return tokens;
}

}  // namespace headlight::models
