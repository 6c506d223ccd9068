// Tokenizers of GGUF files: which merges and parts they have, and what is refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/json_value.h"
#include "headlight/models/gguf.h"
#include "models/gguf/metadata.h"
#include "models/gguf/splittings.h"
#include "models/gguf/tokenizer.h"
#include "models/gguf_writer.h"
#include "models/scratch_folder.h"
#include "models/tokenizers/text_tokenizer.h"
#include "support/golden.h"
#include "text/byte_characters.h"
#include "text/parts.h"
#include "text/pre_tokenizers.h"
#include "text/scratch.h"
#include "text/table_limit.h"
#include "text/utf8.h"

namespace headlight::models::gguf_tokenizer_test {

using nlohmann::json;
using test::contains;
using test::file_error;
using test::GgufWriter;

// How many tokens a text becomes, split as a name says.
std::size_t count_by(const char* name, const char* words) {
  GgufWriter writer("llama");
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", name);
  std::vector<std::string> tokens;
  for (const char32_t character : text::kByteCharacters) text::append_utf8(tokens.emplace_back(), character);
  const std::string line = tokens['\n'];
  tokens.insert(tokens.end(), {"11", "111", "1111", "aB", "!" + line, "a!" + line});
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.texts("tokenizer.ggml.merges", {"1 1", "11 1", "11 11", "a B", "! " + line});
  const std::string bytes = writer.file();
  const GgufFile file("f", std::as_bytes(std::span(bytes)));
  const auto tokenizer = read_gguf_tokenizer(GgufMetadata(file), INT64_MAX);
  text::Scratch scratch;
  std::vector<std::int64_t> ids;
  tokenizer->append(words, 100, scratch, ids);
  return ids.size();
}

// Digits, and letters of both cases, by the pattern of a name.
TEST(GgufTokenizers, TextsAreSplitAsTheirNameSays) {
  struct Split {
    const char* name;
    std::size_t digits, cases, lines;
  };
  constexpr Split kSplits[] = {{"gpt-2", 1, 1, 3},        {"trillion", 1, 1, 3},  {"smollm", 4, 1, 3},
                               {"minerva-7b", 4, 1, 3},   {"llama-bpe", 2, 1, 2}, {"falcon3", 2, 1, 2},
                               {"jina-v5-nano", 2, 1, 2}, {"smaug-bpe", 2, 1, 2}, {"glm4", 2, 1, 2},
                               {"qwen2", 4, 1, 2},        {"tekken", 4, 2, 2},    {"gpt-4o", 2, 2, 2},
                               {"llama4", 2, 2, 2},       {"seed-coder", 4, 1, 3}};
  for (const Split& split : kSplits) {
    SCOPED_TRACE(split.name);
    EXPECT_EQ(count_by(split.name, "1111"), split.digits);
    EXPECT_EQ(count_by(split.name, "aB"), split.cases);
    EXPECT_EQ(count_by(split.name, "a!\n"), split.lines);
  }
}

// By tests/golden/gguf_splittings.py.
TEST(GgufTokenizers, TextsAreSplitAsThePublishedLibraryDoes) {
  class Pieces final : public text::PieceSink {
   public:
    void take(std::string_view piece, bool) override {
      if (!piece.empty()) all.emplace_back(piece);
    }
    std::vector<std::string> all;
  };
  std::size_t names = 0;
  for (const std::string& line : test::golden_lines("gguf_splittings.jsonl")) {
    const json golden = json::parse(line);
    const std::string name = golden.at("name");
    SCOPED_TRACE(name);
    GgufWriter writer("llama");
    writer.text("tokenizer.ggml.pre", name);
    const std::string bytes = writer.file();
    const GgufFile file("f", std::as_bytes(std::span(bytes)));
    const std::string parts = gguf_splitting(GgufMetadata(file)).parts();
    text::TableLimit limit;
    const auto pre_tokenizer = text::read_pre_tokenizer(files::JsonValue::parse_object("f", parts), limit);
    text::Scratch scratch;
    for (const json& one : golden.at("cases")) {
      Pieces pieces;
      pre_tokenizer->split(one.at(0).get<std::string>(), true, scratch, pieces);
      EXPECT_EQ(pieces.all, one.at(1).get<std::vector<std::string>>()) << one.at(0);
    }
    ++names;
  }
  EXPECT_EQ(names, 12U);
}

// NFC is of the names whose tokenizers have it: a letter and its accent become one character of two bytes.
TEST(GgufTokenizers, TextsAreComposedAsTheirNameSays) {
  for (const char* const name : {"command-r", "modern-bert", "qwen2"}) EXPECT_EQ(count_by(name, "e\u0301"), 2U) << name;
  for (const char* const name : {"gpt-2", "smollm", "llama-bpe"}) EXPECT_EQ(count_by(name, "e\u0301"), 3U) << name;
}

// A GGUF file of a tokenizer with scores alone.
std::string scored(const std::vector<std::string>& tokens, const std::vector<float>& scores) {
  GgufWriter writer("llama");
  writer.text("tokenizer.ggml.model", "llama");
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.numbers("tokenizer.ggml.scores", scores);
  return writer.file();
}

// A GGUF file of byte-level tokens with their merges.
std::string merged(const std::vector<std::string>& tokens, const std::vector<std::string>& merges) {
  GgufWriter writer("llama");
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", "gpt-2");
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.texts("tokenizer.ggml.merges", merges);
  return writer.file();
}

// As published files name them; whatever the text is, and a token at both ends only once.
TEST(GgufTokenizers, SpecialTokensAreNamedByTheirTexts) {
  for (const std::string begin : {"<s>", "2", "\":{}\\"}) {
    for (const std::uint32_t end : {1U, 2U}) {
      GgufWriter writer("llama");
      writer.text("tokenizer.ggml.model", "llama");
      writer.texts("tokenizer.ggml.tokens", {"a", begin, "</s>"});
      writer.numbers("tokenizer.ggml.scores", {0, 0, 0});
      writer.integer("tokenizer.ggml.bos_token_id", 1);
      writer.integer("tokenizer.ggml.eos_token_id", end);
      writer.flag("tokenizer.ggml.add_eos_token", true);
      const std::string bytes = writer.file();
      const GgufFile file("f", std::as_bytes(std::span(bytes)));
      const json processor = json::parse(gguf_tokenizer_text(GgufMetadata(file), INT64_MAX)).at("post_processor");
      const auto special = [](const std::string& token, std::uint32_t id) {
        return json{{"id", token}, {"ids", {id}}, {"tokens", {token}}};
      };
      json expected = {{begin, special(begin, 1)}};
      if (end == 2) expected["</s>"] = special("</s>", 2);
      EXPECT_EQ(processor.at("special_tokens"), expected);
      EXPECT_EQ(processor.at("single").at(0).at("SpecialToken").at("id"), begin);
      EXPECT_EQ(processor.at("single").at(2).at("SpecialToken").at("id"), end == 2 ? "</s>" : begin);
      const auto tokenizer = read_gguf_tokenizer(GgufMetadata(file), INT64_MAX);
      EXPECT_EQ(tokenizer->tokens_around(false), 2);
    }
  }
}

TEST(GgufTokenizers, TwoSpecialTokensOfOneTextAreRefused) {
  GgufWriter writer("llama");
  writer.text("tokenizer.ggml.model", "llama");
  writer.texts("tokenizer.ggml.tokens", {"a", "<s>", "<s>"});
  writer.numbers("tokenizer.ggml.scores", {0, 0, 0});
  writer.integer("tokenizer.ggml.bos_token_id", 1);
  writer.integer("tokenizer.ggml.eos_token_id", 2);
  writer.flag("tokenizer.ggml.add_eos_token", true);
  const std::string bytes = writer.file();
  const GgufFile file("f", std::as_bytes(std::span(bytes)));
  EXPECT_EQ(file_error([&] { static_cast<void>(gguf_tokenizer_text(GgufMetadata(file), INT64_MAX)); }),
            "f: tokenizer.ggml.tokens holds one text as the tokens 1 and 2, both of which stand around texts");
}

// It is a part of the keys that are asked for, which are kept.
TEST(GgufMetadata, TheNameOfAnArchitectureIsShort) {
  const auto read = [](std::size_t length) {
    const std::string name(length, 'a'), bytes = GgufWriter(name).file();
    const GgufFile file("f", std::as_bytes(std::span(bytes)));
    EXPECT_EQ(GgufMetadata(file).architecture(), name);
  };
  read(64);
  for (const std::size_t length : {std::size_t{65}, std::size_t{1} << 20}) {
    EXPECT_EQ(file_error([&] { read(length); }),
              "f: general.architecture has " + std::to_string(length) + " bytes, expected at most 64");
  }
}

// Pairs in the order of generate_merges() of Transformers' convert_slow_tokenizer.py.
TEST(GgufTokenizers, TokensWithScoresBecomeMerges) {
  const std::string bytes =
      scored({"<unk>", "a", "b", "é", "ab", "ba", "aba", "éa", "abab", "bab"}, {0, -1, -2, -3, -4, -5, -6, -4, -6, -6});
  const GgufFile file("f", std::as_bytes(std::span(bytes)));
  const json text = json::parse(gguf_tokenizer_text(GgufMetadata(file), INT64_MAX));
  EXPECT_EQ(
      text.at("model").at("merges").dump(),
      R"([["a","b"],["é","a"],["b","a"],["aba","b"],["ab","ab"],["ab","a"],["ba","b"],["a","bab"],["a","ba"],["b","ab"]])");
}

// Every split of a long token: of a file that has room for their tables.
TEST(GgufTokenizers, FULL_MoreMergesThanThereMayBeAreRefused) {
  std::vector<std::string> many;
  for (std::size_t length = 1; length <= 1023; ++length) {
    for (const char* const end : {"", "b", "c", "d", "e", "f", "g", "h", "i"}) {
      many.push_back(std::string(length, 'a') + end);
    }
  }
  for (const char* const end : {"b", "c", "d", "e", "f", "g", "h", "i"}) many.emplace_back(end);
  const std::string bytes = scored(many, std::vector<float>(many.size())) + std::string(std::size_t{96} << 20, '\0');
  const GgufFile file("f", std::as_bytes(std::span(bytes)));
  const auto read = [&] { static_cast<void>(read_gguf_tokenizer(GgufMetadata(file), INT64_MAX)); };
  EXPECT_TRUE(contains(file_error(read), "f: tokenizer.ggml.tokens has too many tokens that are made of two others"));
}

TEST(GgufTokenizers, TokensAreRefusedByTheirPlace) {
  const auto refused = [](const std::vector<std::string>& tokens) {
    const std::string bytes = scored(tokens, std::vector<float>(tokens.size()));
    const GgufFile file("f", std::as_bytes(std::span(bytes)));
    return file_error([&] { static_cast<void>(read_gguf_tokenizer(GgufMetadata(file), INT64_MAX)); });
  };
  EXPECT_TRUE(contains(refused({"a", "b", "a"}), "f: tokenizer.ggml.tokens[0] is 'a', which is there twice"));
  EXPECT_TRUE(contains(refused({"a", "\xFF"}), "f: tokenizer.ggml.tokens[1] is '\\xff', expected UTF-8"));
  const std::string bytes = merged({"a", "b"}, {"a", "a b"});
  const GgufFile file("f", std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(contains(file_error([&] { static_cast<void>(read_gguf_tokenizer(GgufMetadata(file), INT64_MAX)); }),
                       "f: tokenizer.ggml.merges[0] is 'a', expected two tokens"));
}

TEST(GgufTokenizers, AVocabularyThatIsTooLargeIsRefusedByItsKey) {
  GgufWriter writer("bert");
  writer.text("tokenizer.ggml.model", "bert");
  writer.texts("tokenizer.ggml.tokens", std::vector<std::string>((std::size_t{1} << 21) + 1));
  const std::string bytes = writer.file();
  const GgufFile file("f", std::as_bytes(std::span(bytes)));
  const auto read = [&] { static_cast<void>(read_gguf_tokenizer(GgufMetadata(file), INT64_MAX)); };
  EXPECT_TRUE(contains(file_error(read), "tokenizer.ggml.tokens has 2097153 tokens, expected at most 2097152"));
}

// Numbers without an order: no sort may meet them.
TEST(GgufTokenizers, ScoresAreFinite) {
  for (const char* const model : {"llama", "t5"}) {
    for (const float score : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()}) {
      GgufWriter writer("llama");
      writer.text("tokenizer.ggml.model", model);
      writer.texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
      writer.numbers("tokenizer.ggml.scores", {0, score, -1});
      const std::string bytes = writer.file();
      const GgufFile file("f", std::as_bytes(std::span(bytes)));
      const std::string said =
          file_error([&] { static_cast<void>(read_gguf_tokenizer(GgufMetadata(file), INT64_MAX)); });
      EXPECT_TRUE(contains(said, "tokenizer.ggml.scores has the score " + std::to_string(score) +
                                     " of token 1, expected finite numbers"))
          << said;
    }
  }
}

// As in the merges.txt that they come from, and in a tokenizer.json.
TEST(GgufTokenizers, TheVersionOfMergesIsNoMerge) {
  const std::string bytes = merged({"a", "b", "ab"}, {"#version: 0.2", "a b"});
  const GgufFile file("f", std::as_bytes(std::span(bytes)));
  const auto tokenizer = read_gguf_tokenizer(GgufMetadata(file), INT64_MAX);
  text::Scratch scratch;
  std::vector<std::int64_t> ids;
  tokenizer->append("ab", 100, scratch, ids);
  EXPECT_EQ(ids, std::vector<std::int64_t>{2});
  const json text = json::parse(gguf_tokenizer_text(GgufMetadata(file), INT64_MAX));
  EXPECT_EQ(text.at("model").at("merges").dump(), R"(["a b"])");
}

// Of a file that changed since its tokenizer was read.
TEST(GgufTokenizers, TextsOfMergesAreUtf8) {
  const std::string bytes = merged({"a"}, {"a \xFF"});
  const GgufFile file("f", std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(contains(file_error([&] { static_cast<void>(gguf_tokenizer_text(GgufMetadata(file), INT64_MAX)); }),
                       "f: tokenizer.ggml.merges[0] is 'a \\xff', expected UTF-8"));
}

}  // namespace headlight::models::gguf_tokenizer_test
