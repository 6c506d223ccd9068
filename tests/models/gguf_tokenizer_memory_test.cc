// How much memory the tokenizer of a GGUF file takes, when it is read and when its text is made, for files that a
// stranger made to take as much as they can.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/json_value.h"
#include "headlight/models/errors.h"
#include "headlight/models/gguf.h"
#include "models/gguf/metadata.h"
#include "models/gguf/tokenizer.h"
#include "models/gguf/tokenizer_entries.h"
#include "models/gguf_writer.h"
#include "models/reading_memory.h"
#include "models/tokenizers/text_tokenizer.h"
#include "text/table_limit.h"

namespace headlight::models::gguf_tokenizer_memory_test {

using test::expect_within;
using test::expect_within_tables;
using test::kFewBytes;
using test::kMany;
using test::name_of;
using test::Outcome;

// The GGUF file of a tokenizer of about so many tokens.
using GgufOf = std::string (*)(std::size_t count);

std::vector<std::string> tokens_of(std::size_t count, std::size_t bytes) {
  std::vector<std::string> tokens{"[u]"};
  for (std::size_t n = 0; n < count; ++n) tokens.push_back(name_of(n, bytes));
  return tokens;
}

test::GgufWriter gguf_tokenizer(const char* model, const std::vector<std::string>& tokens) {
  test::GgufWriter writer("bert");
  writer.text("tokenizer.ggml.model", model);
  if (std::string_view(model) == "gpt2") writer.text("tokenizer.ggml.pre", "gpt-2");
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.integer("tokenizer.ggml.unknown_token_id", 0);
  if (std::string_view(model) != "bert") return writer;
  writer.integer("tokenizer.ggml.bos_token_id", 0);
  writer.integer("tokenizer.ggml.eos_token_id", 0);
  writer.integer("tokenizer.ggml.padding_token_id", 0);
  return writer;
}

std::string gguf_words(std::size_t count) { return gguf_tokenizer("bert", tokens_of(count, 4)).file(); }
std::string gguf_no_words(std::size_t count) {
  std::vector<std::string> tokens(count);
  tokens[0] = "[u]";
  return gguf_tokenizer("bert", tokens).file();
}
std::string gguf_long_words(std::size_t count) { return gguf_tokenizer("bert", tokens_of(count, 60)).file(); }

std::string gguf_pieces(std::size_t count) { return gguf_tokenizer("gpt2", tokens_of(count, 4)).file(); }
std::string gguf_long_pieces(std::size_t count) { return gguf_tokenizer("gpt2", tokens_of(count, 60)).file(); }
std::string gguf_of_one_merge(std::size_t count) {
  test::GgufWriter writer = gguf_tokenizer("gpt2", {"a", "aa"});
  writer.texts("tokenizer.ggml.merges", std::vector<std::string>(count, "a a"));
  return writer.file();
}
std::string gguf_added(std::size_t count) {
  const std::vector<std::string> tokens = tokens_of(count, 4);
  test::GgufWriter writer = gguf_tokenizer("gpt2", tokens);
  writer.bytes("tokenizer.ggml.token_type", std::string(tokens.size(), '\x04'));
  return writer.file();
}

// Scores of one byte.
std::string gguf_scored(const char* model, const std::vector<std::string>& tokens) {
  test::GgufWriter writer = gguf_tokenizer(model, tokens);
  writer.bytes("tokenizer.ggml.scores", std::string(tokens.size(), '\0'));
  return writer.file();
}
std::string gguf_unigram(std::size_t count) { return gguf_scored("t5", tokens_of(count, 4)); }
std::string gguf_by_scores(std::size_t count) { return gguf_scored("llama", tokens_of(count, 4)); }
// Of which each is made of two others in as many ways as it has letters.
std::string gguf_of_many_merges(std::size_t count) {
  std::vector<std::string> tokens{"u"};
  for (std::size_t n = 1; n <= count / 100; ++n) tokens.emplace_back(n, 'a');
  return gguf_scored("llama", tokens);
}
std::string gguf_characters(std::size_t count) {
  test::GgufWriter writer = gguf_tokenizer("t5", {"u"});
  writer.bytes("tokenizer.ggml.scores", std::string(1, '\0'));
  std::string table(4 + 40 * count, '\0');
  const auto size = static_cast<std::uint32_t>(40 * count);
  std::memcpy(table.data(), &size, sizeof size);
  writer.bytes("tokenizer.ggml.precompiled_charsmap", table);
  return writer.file();
}
std::string gguf_entries(std::size_t count) {
  test::GgufWriter writer = gguf_tokenizer("gpt2", {"a"});
  for (std::size_t n = 0; n < count; ++n) writer.flag(name_of(n, 4), true);
  return writer.file();
}

// The file's metadata, its tables, and what keeps the tokenizer for save() where the file does not last.
TEST(GgufTokenizerMemory, IsTwiceTheFileAndAFewMegabytes) {
  struct Case {
    const char* what;
    GgufOf file;
    std::size_t more;
    Outcome outcome;
  };
  constexpr Case kCases[] = {{"GGUF WordPiece", gguf_words, 5 * kMany, Outcome::refused},
                             {"GGUF WordPiece of nothing", gguf_no_words, 10 * kMany, Outcome::refused},
                             {"GGUF WordPiece of long tokens", gguf_long_words, 3 * kMany, Outcome::refused},
                             {"GGUF BPE", gguf_pieces, 15 * kMany, Outcome::refused},
                             {"GGUF BPE of long tokens", gguf_long_pieces, 3 * kMany, Outcome::read},
                             {"GGUF BPE of one merge", gguf_of_one_merge, 10 * kMany, Outcome::refused},
                             {"GGUF added tokens", gguf_added, 3 * kMany, Outcome::refused},
                             {"GGUF Unigram", gguf_unigram, 8 * kMany, Outcome::refused},
                             {"GGUF BPE by scores", gguf_by_scores, 12 * kMany, Outcome::refused},
                             {"GGUF many merges", gguf_of_many_merges, kMany, Outcome::refused},
                             {"GGUF characters", gguf_characters, 2 * kMany, Outcome::read},
                             {"GGUF entries", gguf_entries, 5 * kMany, Outcome::read}};
  const auto read = [](const std::string& bytes) {
    const GgufFile file("f", std::as_bytes(std::span(bytes)));
    const std::string kept = gguf_tokenizer_entries(file);
    (void)read_gguf_tokenizer(GgufMetadata(file), INT64_MAX, kept.size());
  };
  for (const auto& [what, file, more, outcome] : kCases) {
    expect_within_tables(what, file, kMany / 2, more, outcome, read);
  }
}

TEST(GgufTokenizerMemory, OfShortTokensIsRefusedWithItsFigures) {
  const std::string bytes = gguf_words(5 * kMany);
  const GgufFile file("f", std::as_bytes(std::span(bytes)));
  try {
    (void)read_gguf_tokenizer(GgufMetadata(file), INT64_MAX);
    FAIL() << "is read";
  } catch (const FileError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find("f: asks for tables of "), 0U) << message;
    EXPECT_NE(message.find("of a file of " + std::to_string(bytes.size()) + " bytes"), std::string::npos) << message;
  }
}

// The text that save() writes: all that the file asks for may be far more than it.
struct TextCase {
  const char* what;
  GgufOf file;
  Outcome outcome;
};

// A merge by scores has twice the bytes of its token, of which each may be six of JSON.
std::string gguf_of_texts(std::string_view letter, std::size_t count) {
  std::vector<std::string> tokens{"u"};
  for (std::string token(letter); tokens.size() <= count; token += letter) tokens.push_back(token);
  return gguf_scored("llama", tokens);
}

TEST(GgufTokenizerMemory, OfATextIsThatOfItsLimit) {
  constexpr TextCase kCases[] = {
      {"text of few merges", [](std::size_t n) { return gguf_of_texts("a", n / 1000); }, Outcome::read},
      {"text of many merges", [](std::size_t n) { return gguf_of_texts("a", n / 100); }, Outcome::refused},
      {"text of many escapes", [](std::size_t n) { return gguf_of_texts("\1", n / 100); }, Outcome::refused},
      {"text of pieces", gguf_pieces, Outcome::read},
      {"text of added tokens", gguf_added, Outcome::read},
      {"text of Unigram", gguf_unigram, Outcome::read},
      {"text of characters", gguf_characters, Outcome::read},
      {"text of many characters", [](std::size_t n) { return gguf_characters(10 * n); }, Outcome::refused}};
  const auto write = [](const std::string& bytes) {
    const GgufFile file("f", std::as_bytes(std::span(bytes)));
    (void)gguf_tokenizer_text(GgufMetadata(file), INT64_MAX);
  };
  // A string that grows is there twice, once of twice the bytes.
  constexpr std::size_t kText = 3 * files::JsonValue::kLargestFile;
  for (const auto& [what, file, outcome] : kCases) {
    expect_within(file(kMany), 2, kText + text::TableLimit::kBeside + kFewBytes, what, outcome, write);
  }
}

}  // namespace headlight::models::gguf_tokenizer_memory_test
