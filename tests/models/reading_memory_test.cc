// How much memory reading a file takes, for files that a stranger made to take as much as they can.
#include "models/reading_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/json_value.h"
#include "headlight/models/errors.h"
#include "headlight/models/gguf.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "headlight/models/tokenizer.h"
#include "headlight/text/tokenizer.h"
#include "models/model_folder.h"
#include "models/tensor_files/safetensors_header.h"
#include "models/tensor_files/safetensors_index.h"
#include "models/tokenizers/tokenizer_files.h"
#include "models/tokenizers/vocabulary.h"
#include "text/byte_characters.h"
#include "text/table_limit.h"
#include "text/utf8.h"

namespace headlight::models::reading_memory_test {

using files::JsonValue;
using test::expect_within;
using test::expect_within_tables;
using test::kFewBytes;
using test::kMany;
using test::memory_of;
using test::name_of;
using test::Outcome;

constexpr std::size_t kBytesOfLine = 80;

// `open`, the items of all numbers below `count`, with commas between them, and `close`.
std::string list(std::string_view open, std::size_t count, const std::function<std::string(std::size_t)>& item,
                 std::string_view close) {
  std::string text(open);
  for (std::size_t n = 0; n < count; ++n) text.append(n == 0 ? "" : ",").append(item(n));
  return text.append(close);
}

TEST(ReadingMemory, OfJsonIsTwiceTheFile) {
  const auto expect = [](std::string_view what, const std::string& file, Outcome expected = Outcome::read) {
    expect_within(file, 2, kFewBytes, what, expected,
                  [](const std::string& text) { (void)JsonValue::parse_object("f", text); });
  };
  expect("numbers", list(R"({"a":[)", 4 * kMany, [](std::size_t) { return "0"; }, "]}"));
  expect("lists", list(R"({"a":[)", 4 * kMany, [](std::size_t) { return "[]"; }, "]}"));
  expect("deep lists",
         list(R"({"a":[)", kMany / 10, [](std::size_t) { return std::string(62, '[') + std::string(62, ']'); }, "]}"));
  // As many lists that are long as there can be.
  expect("long lists", list(R"({"a":[)", 100,
                            [](std::size_t) {
                              return std::string(62, '[') + '"' + std::string(8200, 'x') + '"' + std::string(62, ']');
                            },
                            "]}"));
  expect("short keys", list(
                           "{", kMany, [](std::size_t n) { return '"' + name_of(n, 3) + "\":0"; }, "}"));
  expect("objects", list(R"({"a":[)", kMany, [](std::size_t) { return R"({"":0,"a":0})"; }, "]}"));
  expect("one text", R"({"a":")" + std::string(10 * kMany, 'x') + "\"}");
  expect("escapes", list(
                        "{\"a\":\"", kMany, [](std::size_t) { return "\\u00e9\\n"; }, "\"}"));
  expect("a broken end", "{\"a\":\"" + std::string(10 * kMany, 'x'), Outcome::refused);
}

TEST(ReadingMemory, OfAnIndexIsTwiceTheFile) {
  const auto parse = [](const std::string& text) { (void)parse_safetensors_index("f", text); };
  expect_within(list(R"({"weight_map":{)", kMany, [](std::size_t n) { return '"' + name_of(n, 3) + R"(":"a")"; }, "}}"),
                2, kFewBytes, "tensors of one shard", Outcome::read, parse);
  const auto of_itself = [](std::size_t n) { return '"' + name_of(n, 3) + R"(":")" + name_of(n, 3) + '"'; };
  expect_within(list(R"({"weight_map":{)", kMany, of_itself, "}}"), 2, kFewBytes, "a shard for each tensor",
                Outcome::read, parse);
}

template <class T>
void add(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string gguf(std::size_t entries, std::size_t tensors, std::uint32_t axes, std::uint32_t type,
                 std::size_t name_bytes) {
  std::string file = "GGUF";
  add<std::uint32_t>(file, 3);
  add<std::uint64_t>(file, tensors);
  add<std::uint64_t>(file, entries);
  for (std::size_t n = 0; n < entries; ++n) {
    add<std::uint64_t>(file, name_bytes);
    file += name_of(n, name_bytes);
    add<std::uint32_t>(file, 0);  // of 8 bits
    add<std::uint8_t>(file, 1);
  }
  for (std::size_t n = 0; n < tensors; ++n) {
    add<std::uint64_t>(file, name_bytes);
    file += name_of(n, name_bytes);
    add(file, axes);
    for (std::uint32_t axis = 0; axis < axes; ++axis) add<std::uint64_t>(file, type == 0 ? 1 : 0);
    add(file, type);
    add<std::uint64_t>(file, type == 0 ? 32 * n : 0);
  }
  file.resize((file.size() + 31) / 32 * 32);
  if (type == 0) file.resize(file.size() + 32 * tensors);
  return file;
}

TEST(ReadingMemory, OfAGgufFileIsTwiceTheFile) {
  const auto open = [](const std::string& file) { (void)GgufFile("f", std::as_bytes(std::span(file))); };
  expect_within(gguf(kMany, 0, 0, 0, 3), 2, kFewBytes, "entries", Outcome::read, open);
  expect_within(gguf(60, 0, 0, 0, 1), 2, kFewBytes, "a few entries", Outcome::read, open);
  constexpr std::uint32_t kOfOurs = 0, kUnknown = 1000;
  for (const std::uint32_t axes : {0u, 1u, 4u}) {
    for (const std::uint32_t type : {kOfOurs, kUnknown}) {
      expect_within(gguf(0, kMany, axes, type, 3), 2, kFewBytes, "tensors of " + std::to_string(axes) + " axes",
                    Outcome::read, open);
    }
  }
  expect_within(gguf(0, kMany, 1, kOfOurs, 3).substr(0, 20 * kMany), 2, kFewBytes, "a file that ends early",
                Outcome::refused, open);
}

// A file whose header names tensors, without a byte of data.
std::string safetensors(const std::string& members) {
  const std::string header = "{" + members + "}";
  std::string file;
  add<std::uint64_t>(file, header.size());
  return file + header;
}

TEST(ReadingMemory, OfASafetensorsHeaderIsTwiceItsBytesAndAFewMegabytes) {
  const auto tensors = [](std::size_t count, const std::string& shape, std::size_t name_bytes) {
    return safetensors(list(
        "", count,
        [&](std::size_t n) {
          return '"' + name_of(n, name_bytes) + R"(":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,0]})";
        },
        ""));
  };
  const std::string axes = list(
      "", 64, [](std::size_t) { return "0"; }, "");
  const auto expect = [](std::string_view what, const std::string& file, Outcome expected) {
    expect_within(file, 2, kMemoryBesideHeader + kFewBytes, what, expected,
                  [](const std::string& bytes) { (void)SafetensorsFile("f", std::as_bytes(std::span(bytes))); });
  };
  expect("tensors", tensors(kMany, "0", 4), Outcome::read);
  expect("many tensors", tensors(5 * kMany, "0", 4), Outcome::read);
  expect("tensors of long names", tensors(kMany, "0", 60), Outcome::read);
  expect("tensors of many axes", tensors(kMany, axes, 4), Outcome::refused);
  const auto entry = [](std::size_t n) { return '"' + name_of(n, 4) + R"(":"")"; };
  expect("metadata", safetensors(list(R"("__metadata__":{)", kMany / 2, entry, "}")), Outcome::read);
  expect("much metadata", safetensors(list(R"("__metadata__":{)", 4 * kMany, entry, "}")), Outcome::refused);
  expect("a long string", safetensors(R"("__metadata__":{"a":")" + std::string(1'000'000, 'x') + "\"}"), Outcome::read);
  expect("too long a string", safetensors(R"("__metadata__":{"a":")" + std::string(2'000'000, 'x') + "\"}"),
         Outcome::refused);
  expect("objects that are none", safetensors(std::string(10 * kMany, '{')), Outcome::refused);
}

// The tokenizer.json of a model of `count` tokens, or about as many.
using ModelOf = std::string (*)(std::size_t count);

std::string word_piece(std::string_view prefix, std::size_t count, std::size_t bytes, std::size_t first_id) {
  const std::string head = R"({"type":"WordPiece","unk_token":"u","max_input_chars_per_word":100,)"
                           R"("continuing_subword_prefix":")";
  return list(
      head + std::string(prefix) + R"(","vocab":{"u":)" + std::to_string(first_id), count,
      [&](std::size_t n) {
        return (n == 0 ? "," : "") + ("\"" + std::string(prefix)) + name_of(n, bytes) +
               "\":" + std::to_string(first_id + (n * 7919) % count + 1);
      },
      "}}");
}

std::string short_words(std::size_t count) { return word_piece("", count, 4, 0); }
std::string prefixed_words(std::size_t count) { return word_piece("#", count, 4, 0); }
std::string words_of_large_ids(std::size_t count) { return word_piece("", count, 4, 500'000); }
std::string long_words(std::size_t count) { return word_piece("", count, 60, 0); }

std::string unigram(std::size_t count) {
  return list(R"({"type":"Unigram","unk_id":0,"vocab":[)", count,
              [](std::size_t n) { return "[\"" + name_of(n, 4) + "\",0]"; }, "]}");
}

std::string unigram_of_one(std::size_t count) {
  return list(R"({"type":"Unigram","unk_id":0,"vocab":[)", count, [](std::size_t) { return R"(["",0])"; }, "]}");
}

std::string bpe(std::size_t count) {
  return list(R"({"type":"BPE","vocab":{)", count,
              [](std::size_t n) { return '"' + name_of(n, 4) + "\":" + std::to_string(n); }, R"(},"merges":[]})");
}

// Pieces are the bytes that its tokens' characters stand for.
std::string bpe_of_bytes(std::size_t count) {
  std::string bytes;
  for (std::size_t byte = 0; byte < text::kByteCharacters.size(); ++byte) {
    std::string character;
    text::append_utf8(character, text::kByteCharacters[byte]);
    if (character == "\"" || character == "\\") character.insert(0, "\\");
    bytes.append("\"").append(character).append("\":").append(std::to_string(count + byte)).append(",");
  }
  return list(R"({"type":"BPE","vocab":{)" + bytes, count,
              [](std::size_t n) { return '"' + name_of(n, 4) + "\":" + std::to_string(n); },
              R"(},"merges":[]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})");
}

std::string bpe_of_one_merge(std::size_t count) {
  return list(R"({"type":"BPE","vocab":{"a":0,"aa":1},"merges":[)", count, [](std::size_t) { return R"("a a")"; },
              "]}");
}

std::string added_tokens(std::size_t count) {
  return list(R"({"type":"BPE","vocab":{"a":0},"merges":[]},"added_tokens":[)", count,
              [](std::size_t n) {
                return R"({"id":)" + std::to_string(n + 1) + R"(,"content":")" + name_of(n, 4) +
                       R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":)" +
                       (n % 2 == 0 ? "true" : "false") + R"(,"special":false})";
              },
              "]");
}

// Each part has a table of all characters.
std::string splitters(std::size_t count) {
  return list(R"({"type":"BPE","vocab":{"a":0},"merges":[]},"pre_tokenizer":{"type":"Sequence","pretokenizers":[)",
              std::min<std::size_t>(count, 60),
              [](std::size_t n) {
                return n % 2 == 0 ? R"({"type":"Whitespace"})" : R"({"type":"Punctuation","behavior":"Contiguous"})";
              },
              "]}");
}

// A model that is read with kMany tokens; and what becomes of it with more, for which some ask for tables that are too
// large, by a hundredth at least.
struct TokenizerCase {
  const char* what;
  ModelOf model;
  std::size_t more;
  Outcome outcome;
};

// Tables by which a text is searched in the time of its length take more than the shortest tokens do in a file: such a
// file is refused before its tables are made.
TEST(ReadingMemory, OfATokenizerIsTwiceTheFileAndAFewMegabytes) {
  constexpr TokenizerCase kCases[] = {{"WordPiece", short_words, 5 * kMany, Outcome::refused},
                                      {"WordPiece with a prefix", prefixed_words, 5 * kMany, Outcome::refused},
                                      {"WordPiece with large ids", words_of_large_ids, 5 * kMany, Outcome::refused},
                                      {"WordPiece of long tokens", long_words, 9 * kMany / 2, Outcome::refused},
                                      {"Unigram", unigram, 5 * kMany, Outcome::refused},
                                      {"Unigram of one token", unigram_of_one, 5 * kMany, Outcome::read},
                                      {"BPE", bpe, 5 * kMany, Outcome::read},
                                      {"BPE of bytes", bpe_of_bytes, 5 * kMany, Outcome::read},
                                      {"BPE of one merge", bpe_of_one_merge, 5 * kMany, Outcome::read},
                                      {"added tokens", added_tokens, 2 * kMany, Outcome::refused},
                                      {"splitters", splitters, 5 * kMany, Outcome::read}};
  for (const TokenizerCase& one : kCases) {
    expect_within_tables(
        one.what, [&](std::size_t count) { return "{\"model\":" + one.model(count) + "}"; }, kMany, one.more,
        one.outcome, [](const std::string& text) { (void)text::Tokenizer::parse(text); });
  }
}

// The tokenizer of a BERT model, which has tables of its own.
TEST(ReadingMemory, OfABertTokenizerIsTwiceTheFileAndAFewMegabytes) {
  const std::string parts = R"(,"pre_tokenizer":{"type":"BertPreTokenizer"},)"
                            R"("post_processor":{"type":"BertProcessing","cls":["u",0],"sep":["u",0]})";
  const auto read = [](const std::string& text) {
    const FileInMemory file{"tokenizer.json", std::as_bytes(std::span(text))};
    std::vector<std::string> unknown;
    TokenizerFiles files = read_tokenizer_files(ModelFolder("f", std::span(&file, 1)), "PreTrainedTokenizerFast", false,
                                                kMostIds, unknown);
    (void)std::move(files).tokenizer();
  };
  constexpr TokenizerCase kCases[] = {{"BERT", short_words, 5 * kMany, Outcome::read},
                                      {"BERT with a prefix", prefixed_words, 10 * kMany, Outcome::refused},
                                      {"BERT of long tokens", long_words, 2 * kMany, Outcome::refused}};
  for (const TokenizerCase& one : kCases) {
    expect_within_tables(
        one.what, [&](std::size_t count) { return "{\"model\":" + one.model(count) + parts + "}"; }, kMany, one.more,
        one.outcome, read);
  }
  const auto added = [](std::size_t n) {
    return R"({"id":)" + std::to_string(n + 1) + R"(,"content":")" + name_of(n, 4) + R"("})";
  };
  for (const std::size_t count : {std::size_t{1000}, kMany}) {
    expect_within(R"({"model":{"type":"WordPiece","unk_token":"u","vocab":{"u":0}})" + parts +
                      list(R"(,"added_tokens":[)", count, added, "]}"),
                  2, text::TableLimit::kBeside + kFewBytes, "BERT with added tokens",
                  count == kMany ? Outcome::refused : Outcome::read, read);
  }
}

TEST(ReadingMemory, ATokenizerOfShortTokensIsRefusedWithItsFigures) {
  const std::string file = "{\"model\":" + unigram(10 * kMany) + "}";
  try {
    (void)text::Tokenizer::parse(file, "f");
    FAIL() << "is read";
  } catch (const FileError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find("f: asks for tables of "), 0U) << message;
    EXPECT_NE(message.find("of a file of " + std::to_string(file.size()) + " bytes"), std::string::npos) << message;
  }
}

TEST(ReadingMemory, OfAVocabularyGoesByItsLines) {
  for (const std::string prefix : {"", "##", "long "}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{3}}) {
      if (bytes == 0 && !prefix.empty()) continue;
      std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
      for (std::size_t n = 0; n < kMany; ++n) text += (bytes == 0 ? "" : prefix + name_of(n, bytes)) + "\n";
      const std::size_t memory =
          memory_of(Outcome::read, "vocabulary", [&] { (void)Tokenizer(vocabulary_lines(text, "f"), {}, "f"); });
      std::printf("%-40s %9zu bytes, %.0f for a line\n", ("a vocabulary of " + prefix + "...").c_str(), text.size(),
                  static_cast<double>(memory) / kMany);
      EXPECT_LE(memory, kBytesOfLine * kMany + 2 * text.size() + kFewBytes);
    }
  }
}

}  // namespace headlight::models::reading_memory_test
