// What a tokenizer_class makes of a tokenizer.json: the tokens are those of Transformers, and a file that says
// otherwise is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "models/load_tokenizer.h"
#include "models/scratch_folder.h"
#include "models/tokenizers/text_tokenizer.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/refusal.h"
#include "text/scratch.h"

namespace headlight::models::tokenizer_classes_test {

using nlohmann::json;
using test::contains;
using test::file_error;
using test::ScratchFolder;

constexpr std::int64_t kAnyLength = 1 << 20;

// A case of tests/golden/tokenizer_classes.py.
struct ClassCase {
  json config, tokenizer;
  std::vector<std::vector<std::int64_t>> ids;  // of each text
  std::vector<std::int64_t> pair;              // of the first two
};

json first_tokenizer(const std::string& file) {
  std::ifstream stream(test::golden_path("tokenizers/" + file));
  std::string line;
  std::getline(stream, line);
  return json::parse(line).at("tokenizer");
}

json added_token(std::size_t id, const std::string& content, bool lstrip) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", lstrip},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// As tokenizer_of() of that script.
json tokenizer_of(const json& described) {
  const std::string file = described.at("file");
  json tokenizer = first_tokenizer(file);
  json& vocabulary = tokenizer["model"]["vocab"];
  tokenizer["added_tokens"] = json::array();
  for (const std::string name : described.at("tokens")) {
    std::size_t id = 0;
    if (vocabulary.is_object()) {
      id = vocabulary.emplace(name, vocabulary.size()).first->get<std::size_t>();
    } else {
      while (id < vocabulary.size() && vocabulary[id][0] != name) ++id;
      if (id == vocabulary.size()) vocabulary.push_back({name, 0.0});
    }
    tokenizer["added_tokens"].push_back(added_token(id, name, name == "<mask>"));
  }
  json characters;
  if (tokenizer["normalizer"].contains("normalizers")) {
    for (const json& part : tokenizer["normalizer"]["normalizers"]) {
      if (part.at("type") == "Precompiled") characters = part;
    }
  }
  tokenizer.update(described.at("parts"));
  if (tokenizer["normalizer"].contains("normalizers")) {
    for (json& part : tokenizer["normalizer"]["normalizers"]) {
      if (part == "Precompiled") part = characters;
    }
  }
  if (file == "byte_fallback.jsonl") tokenizer["model"].update({{"fuse_unk", true}, {"byte_fallback", true}});
  return tokenizer;
}

struct ClassCases {
  std::vector<std::string> texts;
  std::vector<ClassCase> cases;

  [[nodiscard]] const ClassCase& of(std::string_view name) const {
    for (const ClassCase& one : cases) {
      if (one.config.at("tokenizer_class") == name) return one;
    }
    throw std::runtime_error("no case of " + std::string(name));
  }
};

const ClassCases& golden_classes() {
  static const ClassCases all = [] {
    ClassCases read;
    for (const std::string& line : test::golden_lines("tokenizer_classes.jsonl")) {
      const json list = json::parse(line);
      if (read.texts.empty()) {
        read.texts = list;
      } else {
        read.cases.push_back({list.at(0), tokenizer_of(list.at(1)), list.at(2), list.at(3)});
      }
    }
    return read;
  }();
  return all;
}

std::string write(const ScratchFolder& scratch, const json& tokenizer, const json& config,
                  const char* model_type = "bert") {
  json model{{"model_type", model_type},      {"vocab_size", 2000},       {"hidden_size", 8},
             {"num_hidden_layers", 1},        {"num_attention_heads", 1}, {"intermediate_size", 8},
             {"max_position_embeddings", 200}};
  if (std::string_view(model_type) == "modernbert") {
    model.update({{"local_attention", 8}, {"global_attn_every_n_layers", 1}});
  }
  scratch.write("config.json", model.dump());
  scratch.write("tokenizer.json", tokenizer.dump());
  scratch.write("tokenizer_config.json", config.dump());
  return scratch.path();
}

TEST(TokenizerClasses, TokensAreThoseOfTransformers) {
  const ScratchFolder scratch;
  for (const ClassCase& one : golden_classes().cases) {
    SCOPED_TRACE(one.config);
    const LoadedTokenizer loaded = load_tokenizer(write(scratch, one.tokenizer, one.config));
    text::Scratch memory;
    const std::vector<std::string>& texts = golden_classes().texts;
    for (std::size_t n = 0; n < texts.size(); ++n) {
      std::vector<std::int64_t> ids;
      loaded.tokenizer->append(texts[n], kAnyLength, memory, ids);
      EXPECT_EQ(ids, one.ids[n]) << texts[n];
    }
    std::vector<std::int64_t> pair, types;
    loaded.tokenizer->append_pair(texts[0], texts[1], kAnyLength, memory, pair, types);
    EXPECT_EQ(pair, one.pair);
    EXPECT_TRUE(std::all_of(types.begin(), types.end(), [](std::int64_t type) { return type == 0; }));
  }
}

// Changes of tokenizer.json (null: none) and of tokenizer_config.json.
TEST(TokenizerClasses, FilesThatSayOtherThanTheirClassAreRefused) {
  const ScratchFolder scratch;
  struct Case {
    const char* name;
    json tokenizer, config;
    const char* says;
  };
  json angles = golden_classes().of("CamembertTokenizer").tokenizer.at("added_tokens");
  angles.erase(angles.begin() + 5, angles.end());
  json listed_token = added_token(421, "<X>", true);
  listed_token["special"] = false;
  const json lower{{"type", "Lowercase"}}, metaspace{{"type", "Metaspace"}, {"replacement", "▁"}};
  const json spaces{{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}};
  const json nested_bytes{{"type", "Sequence"},
                          {"pretokenizers", {{{"type", "ByteLevel"}, {"add_prefix_space", true}}}}};
  // <s> A </s> and, of two texts, those in that order in front of their separators.
  const auto twisted = [](std::string_view order) {
    const auto special = [](const char* token) { return json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}}; };
    const auto text = [](char name) { return json{{"Sequence", {{"id", std::string(1, name)}, {"type_id", 0}}}}; };
    const json first = special("<s>"), last = special("</s>");
    return json{{"type", "TemplateProcessing"},
                {"single", {first, text('A'), last}},
                {"pair", {first, text(order.front()), text(order.back()), last, last, last}},
                {"special_tokens",
                 {{"<s>", {{"id", "<s>"}, {"ids", {420}}, {"tokens", {"<s>"}}}},
                  {"</s>", {{"id", "</s>"}, {"ids", {422}}, {"tokens", {"</s>"}}}}}}};
  };
  const auto template_of = [](const char* token) {
    return json{{"type", "RobertaProcessing"}, {"cls", {token, 1}}, {"sep", {token, 1}}};
  };
  const Case cases[] = {
      {"RobertaTokenizer",
       {{"normalizer", lower}},
       {},
       "normalizer is Lowercase, expected none for the tokenizer_class"},
      {"RobertaTokenizer",
       {{"pre_tokenizer", {{"type", "Whitespace"}}}},
       {},
       "pre_tokenizer is Whitespace, expected ByteLevel for"},
      {"RobertaTokenizer",
       {{"pre_tokenizer", {{"use_regex", false}, {"add_prefix_space", false}}}},
       {},
       "is ByteLevel without a pattern, expected"},
      {"RobertaTokenizer",
       {{"pre_tokenizer", {{"add_prefix_space", true}}}},
       {},
       "add_prefix_space is missing, expected what the pre_tokenizer"},
      {"RobertaTokenizer", {{"model", {{"ignore_merges", true}}}}, {}, "model is BPE ignore_merges, expected BPE for"},
      {"RobertaTokenizer",
       {{"model", {{"end_of_word_suffix", "</w>"}}}},
       {},
       "end_of_word_suffix '</w>', expected BPE"},
      {"RobertaTokenizer",
       {{"post_processor", nullptr}},
       {},
       "post_processor puts other tokens around texts, expected cls"},
      {"RobertaTokenizer", {}, {{"sep_token", "<s>"}}, "cls_token and sep_token, '<s>' and '<s>', the latter twice"},
      {"RobertaTokenizer", {}, {{"cls_token", nullptr}}, "cls_token and sep_token, '' and '</s>'"},
      {"RobertaTokenizer", {{"post_processor", twisted("B A")}}, {}, "post_processor puts other tokens around texts"},
      {"RobertaTokenizer", {{"post_processor", twisted("A B")}}, {}, "post_processor puts other tokens around texts"},
      {"RobertaTokenizer",
       {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {nested_bytes}}}}},
       {},
       "pre_tokenizer is Sequence, expected ByteLevel"},
      {"RobertaTokenizer",
       {},
       {{"added_tokens_decoder", {{"420", added_token(420, "<s>", false)}}}},
       "is '</s>', expected the same in added_tokens_decoder"},
      {"RobertaTokenizer", {}, {{"mask_token", "<m>"}}, "mask_token is '<m>', expected one of added_tokens"},
      {"GPT2Tokenizer", {{"added_tokens", json::array()}}, {}, "added_tokens lacks '<|endoftext|>', the bos_token for"},
      {"GPT2Tokenizer", {}, {{"return_token_type_ids", true}}, "return_token_type_ids is true, expected false"},
      {"GPTNeoXTokenizer", {{"post_processor", template_of("a")}}, {}, "around texts, expected nothing for"},
      {"Qwen2Tokenizer", {{"normalizer", nullptr}}, {}, "normalizer is none, expected NFC for"},
      {"Qwen2Tokenizer",
       {{"added_tokens", {added_token(420, "<|endoftext|>", false), listed_token}}},
       {{"extra_special_tokens", {"<X>"}}},
       "added_tokens[1] has single_word, lstrip, rstrip or normalized, expected none"},
      {"Qwen2Tokenizer",
       {{"added_tokens", {added_token(420, "<|endoftext|>", true)}}},
       {},
       "added_tokens[0] has single_word, lstrip, rstrip or normalized, expected none"},
      {"GemmaTokenizer", {{"normalizer", nullptr}}, {}, "normalizer is none, expected Replace ' ' by '▁'"},
      {"GemmaTokenizer", {{"model", {{"unk_token", "<pad>"}}}}, {}, "model.unk_token is '<pad>', expected '<unk>'"},
      {"LlamaTokenizer", {}, {{"legacy", true}}, "is Metaspace first unsplit, expected Metaspace unsplit for"},
      {"XLMRobertaTokenizer", {{"normalizer", lower}}, {}, "normalizer is Lowercase, expected Precompiled for"},
      {"XLMRobertaTokenizer",
       {{"pre_tokenizer", metaspace}},
       {},
       "is Metaspace, expected WhitespaceSplit, Metaspace for"},
      {"XLMRobertaTokenizer",
       {{"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "odd"}}},
        {"normalizer", spaces}},
       {},
       "pre_tokenizer is Metaspace odd, expected WhitespaceSplit"},
      {"XLMRobertaTokenizer",
       {{"pre_tokenizer", metaspace}, {"normalizer", spaces}},
       {{"add_prefix_space", false}},
       "add_prefix_space is false, expected what"},
      {"XLMRobertaTokenizer", {{"model", {{"unk_id", 0}}}}, {}, "model.unk_id is 0, expected 3 for"},
      {"XLMRobertaTokenizer",
       {{"model", {{"byte_fallback", true}}}},
       {},
       "Unigram byte_fallback, expected Unigram for"},
      {"XLMRobertaTokenizer", {}, {{"add_prefix_space", nullptr}}, "add_prefix_space is missing, expected what"},
      {"CamembertTokenizer",
       {{"added_tokens", angles}},
       {},
       "lacks '<s>NOTUSED', a special token for the tokenizer_class"},
      {"CamembertTokenizer", {}, {{"add_prefix_space", nullptr}}, "add_prefix_space is missing, expected what"},
      {"CamembertTokenizer", {}, {{"unk_token", "<pad>"}}, "model.unk_id is 3, expected 1 for"},
      {"MPNetTokenizer", {{"model", {{"unk_token", "<s>"}}}}, {}, "model.unk_token is '<s>', expected '[UNK]' for"},
      {"MPNetTokenizer",
       {{"normalizer", {{"lowercase", false}}}},
       {},
       "do_lower_case is missing, so true, expected what"},
      {"MPNetTokenizer",
       {{"normalizer", {{"clean_text", false}}}},
       {},
       "is BertNormalizer without clean_text, expected"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.name) + " " + one.tokenizer.dump() + " " + one.config.dump());
    const ClassCase& golden = golden_classes().of(one.name);
    json tokenizer = golden.tokenizer, config = golden.config;
    for (const auto& [key, value] : one.tokenizer.items()) {
      if (value.is_object() && !value.contains("type")) {
        tokenizer[key].merge_patch(value);
      } else {
        tokenizer[key] = value;
      }
    }
    for (const auto& [key, value] : one.config.items()) config[key] = value;  // null, too
    const std::string folder = write(scratch, tokenizer, config);
    EXPECT_TRUE(contains(file_error([&] { static_cast<void>(load_tokenizer(folder)); }), one.says));
    // A family of which Transformers takes the whole file, whatever its class.
    if (one.config.is_null() && std::string_view(one.says).find("add_prefix_space") == std::string_view::npos &&
        std::string_view(one.says).find("odd") == std::string_view::npos) {
      EXPECT_NO_THROW(static_cast<void>(load_tokenizer(write(scratch, tokenizer, golden.config, "modernbert"))));
    }
  }
}

// A model that does not say its type, and a special_tokens_map.json that nobody looks at.
TEST(TokenizerClasses, OldFilesAreRead) {
  const ScratchFolder scratch;
  for (const char* const name : {"RobertaTokenizer", "XLMRobertaTokenizer", "MPNetTokenizer"}) {
    SCOPED_TRACE(name);
    const ClassCase& golden = golden_classes().of(name);
    json tokenizer = golden.tokenizer, config = golden.config;
    tokenizer["model"].erase("type");
    EXPECT_NO_THROW(static_cast<void>(load_tokenizer(write(scratch, tokenizer, config))));
    for (const json& token : tokenizer["added_tokens"]) {
      config["added_tokens_decoder"][std::to_string(token.at("id").get<std::int64_t>())] = token;
    }
    const std::string folder = write(scratch, tokenizer, config);
    scratch.write("special_tokens_map.json", R"({"mask_token": "nowhere", "do_lower_case": false})");
    EXPECT_NO_THROW(static_cast<void>(load_tokenizer(folder)));
    std::filesystem::remove(scratch.path("special_tokens_map.json"));
  }
}

// Without a tokenizer_config.json a class has its defaults.
TEST(TokenizerClasses, DefaultsAreChecked) {
  const ScratchFolder scratch;
  const auto refusal = [&](json tokenizer, const char* model_type) {
    const std::string folder = write(scratch, tokenizer, json::object(), model_type);
    std::filesystem::remove(scratch.path("tokenizer_config.json"));
    return file_error([&] { static_cast<void>(load_tokenizer(folder)); });
  };
  json roberta = golden_classes().of("RobertaTokenizer").tokenizer;
  roberta["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_TRUE(
      contains(refusal(roberta, "roberta"), "pre_tokenizer puts a space before a text, unlike the tokenizer_class"));
  json mpnet = golden_classes().of("MPNetTokenizer").tokenizer;
  mpnet["normalizer"]["lowercase"] = false;
  EXPECT_TRUE(contains(refusal(mpnet, "mpnet"), "normalizer is not that of MPNetTokenizer without a tokenizer_config"));
}

// The class that config.json names, or that of the family, where tokenizer_config.json names none.
TEST(TokenizerClasses, AreThoseOfConfigJsonOrOfTheFamily) {
  const ScratchFolder scratch;
  json tokenizer = golden_classes().of("XLMRobertaTokenizer").tokenizer;
  tokenizer["normalizer"] = {{"type", "Lowercase"}};
  const auto refusal = [&](const std::string& folder) {
    return file_error([&] { static_cast<void>(load_tokenizer(folder)); });
  };
  const char* const kSays =
      "normalizer is Lowercase, expected Precompiled for the tokenizer_class 'XLMRobertaTokenizer'";
  EXPECT_TRUE(contains(refusal(write(scratch, tokenizer, json::object(), "xlm-roberta")), kSays));
  json config = json::parse(scratch.read("config.json"));
  config.update({{"model_type", "bert"}, {"tokenizer_class", "XLMRobertaTokenizerFast"}});
  scratch.write("config.json", config.dump());
  EXPECT_TRUE(contains(refusal(scratch.path()), kSays));
  for (const auto& [model_type, name] :
       {std::pair("camembert", "CamembertTokenizer"), {"gte", "XLMRobertaTokenizer"}}) {
    SCOPED_TRACE(model_type);
    tokenizer["added_tokens"] = golden_classes().of("CamembertTokenizer").tokenizer.at("added_tokens");
    EXPECT_TRUE(
        contains(refusal(write(scratch, tokenizer, json::object(), model_type)),
                 std::string("normalizer is Lowercase, expected Precompiled for the tokenizer_class '") + name));
  }
  json bytes = golden_classes().of("Qwen2Tokenizer").tokenizer;
  bytes["normalizer"] = nullptr;
  EXPECT_TRUE(
      contains(refusal(write(scratch, bytes, json::object(), "qwen3")), "expected NFC for the tokenizer_class"));
  EXPECT_NO_THROW(static_cast<void>(load_tokenizer(write(scratch, bytes, json::object(), "llama"))));
}

}  // namespace headlight::models::tokenizer_classes_test
