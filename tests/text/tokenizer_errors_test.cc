// What a tokenizer.json may not say, and the line that says so.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "models/scratch_folder.h"

namespace headlight::text::tokenizer_errors_test {

using test::contains;
using test::file_error;

constexpr const char* kModel = R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]})";

std::string error_of(const std::string& json) {
  return file_error([&] { static_cast<void>(Tokenizer::parse(json)); });
}
// Of a file that has this beside a sound model.
std::string error_beside(const std::string& members) { return error_of("{" + members + "," + kModel + "}"); }
std::string error_of_model(const std::string& model) { return error_of(R"({"model":)" + model + "}"); }

TEST(TokenizerErrors, NameFileAndKey) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {R"("version":"2.0")", "tokenizer.json: version is '2.0'"},
      {R"("colour":1)", "tokenizer.json: colour is not known"},
      {R"("normalizer":{})", "normalizer.type is missing"},
      {R"("normalizer":{"type":"Shout"})", "normalizer.type is 'Shout'"},
      {R"("normalizer":{"type":"NFC","loud":true})", "normalizer.loud is not known"},
      {R"("normalizer":{"type":"Strip","strip_left":true})", "normalizer.strip_right is missing"},
      {R"("normalizer":{"type":"Replace","pattern":{"Regex":"a*"},"content":""})",
       "normalizer.pattern.Regex is 'a*' and matches an empty text"},
      {R"("normalizer":{"type":"Replace","pattern":{"String":""},"content":""})", "normalizer.pattern.String is empty"},
      {R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"****"})", "precompiled_charsmap is no base64"},
      {R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="})", "has no table of the size"},
      {R"("normalizer":{"type":"Sequence","normalizers":[{"type":"X"}]})", "normalizer.normalizers[0].type is 'X'"},
      {R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"a\\bc"},"behavior":"Isolated","invert":false})",
       "tokenizer.json: pre_tokenizer.pattern.Regex is 'a\\bc' and has '\\b' at byte 1, which is not supported"},
      {R"("pre_tokenizer":{"type":"Split","pattern":{"String":"x"},"behavior":"Gone","invert":false})",
       "behavior is 'Gone'"},
      {R"("pre_tokenizer":{"type":"Metaspace","replacement":"ab"})", "pre_tokenizer.replacement is 'ab'"},
      {R"("pre_tokenizer":{"type":"Metaspace","replacement":"_","add_prefix_space":false})",
       "prepend_scheme is missing"},
      {R"("decoder":{"type":"CTC"})", "decoder.type is 'CTC'"},
      {R"("decoder":{"type":"Strip","content":" ","start":-1,"stop":0})", "decoder.start"},
      {R"("post_processor":{"type":"BertProcessing","cls":["a",0],"sep":["z",9]})", "post_processor.sep[1] is 9"},
      {R"("post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}],"pair":[]})", "id is 'B'"},
      {R"("added_tokens":[{"id":7,"content":"x","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}])",
       "added_tokens[0].id is 7, expected 3"},
  };
  for (const auto& [members, message] : refused) EXPECT_TRUE(contains(error_beside(members), message)) << members;
}

TEST(TokenizerErrors, OfModels) {
  for (const char* const other : {"{}", R"({"_name_or_path":"x","model_type":"bert"})"}) {
    EXPECT_TRUE(contains(error_of(other), "tokenizer.json: has no key 'model', expected a tokenizer.json"));
  }
  EXPECT_TRUE(contains(error_of("[]"), "is no JSON object"));
  const std::vector<std::pair<std::string, std::string>> refused{
      {R"({"type":"WordLevel","vocab":{}})", "model.type is 'WordLevel'"},
      {R"({"type":"BPE","vocab":{"a":0},"merges":["a c"]})", "model.merges[0] has 'c'"},
      {R"({"type":"BPE","vocab":{"a":0},"merges":["a a"]})", "model.merges[0] makes 'aa'"},
      {R"({"type":"BPE","vocab":{"a":0},"merges":["a"]})", "model.merges[0] is 'a', expected two tokens"},
      {R"({"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.5})", "model.dropout is not 0"},
      {R"({"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"?"})", "model.unk_token is '?'"},
      {R"({"type":"BPE","vocab":{"a":0,"b":0},"merges":[]})", "model.vocab.b is 0, the id of another token"},
      {R"({"type":"BPE","vocab":{"a":2097152},"merges":[]})", "model.vocab.a is no id"},
      {R"({"type":"WordPiece","vocab":{"a":0},"continuing_subword_prefix":"##","max_input_chars_per_word":9})",
       "model.unk_token"},
      {R"({"type":"Unigram","vocab":[["a",-1]]})", "model.unk_id"},
      {R"({"type":"Unigram","vocab":[["a",-1e200]],"unk_id":0})", "model.vocab[0] is no token with its score"},
  };
  for (const auto& [model, message] : refused) EXPECT_TRUE(contains(error_of_model(model), message)) << model;
}

// A file of a few lines must not make gigabytes of a letter.
TEST(TokenizerErrors, TextsThatGrow) {
  std::string parts;
  for (int n = 0; n < 40; ++n) {
    parts += std::string(n == 0 ? "" : ",") + R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaa"})";
  }
  const std::string sequence = R"({"type":"Sequence","normalizers":[)" + parts + "]}";
  const Tokenizer tokenizer = Tokenizer::parse(R"({"normalizer":)" + sequence + "," + kModel + "}");
  EXPECT_THROW(static_cast<void>(tokenizer.encode("a")), std::invalid_argument);
  EXPECT_EQ(tokenizer.encode("b"), std::vector<std::int64_t>{1});
}

// A Sequence in a Sequence counts as the parts of the outer one, for tokens of the file, too.
TEST(TokenizerErrors, NestedPartsThatGrow) {
  const std::string grows = R"({"type":"Replace","pattern":{"String":"a"},"content":")" + std::string(64, 'a') + "\"}";
  std::string normalizer = grows;
  for (int n = 0; n < 6; ++n) normalizer = R"({"type":"Sequence","normalizers":[)" + grows + "," + normalizer + "]}";
  const Tokenizer tokenizer = Tokenizer::parse(R"({"normalizer":)" + normalizer + "," + kModel + "}");
  EXPECT_THROW(static_cast<void>(tokenizer.encode("a")), std::invalid_argument);
  const std::string added = R"("added_tokens":[{"id":0,"content":"a","single_word":false,"lstrip":false,)"
                            R"("rstrip":false,"normalized":true,"special":false}],)";
  EXPECT_TRUE(contains(error_beside(added + R"("normalizer":)" + normalizer), "added_tokens[0].content"));
  std::string decoder = grows;
  for (int n = 0; n < 6; ++n) decoder = R"({"type":"Sequence","decoders":[)" + grows + "," + decoder + "]}";
  const Tokenizer decodes = Tokenizer::parse(R"({"decoder":)" + decoder + "," + kModel + "}");
  EXPECT_THROW(static_cast<void>(decodes.decode({0})), std::invalid_argument);
}

TEST(TokenizerErrors, PatternsThatAreTooLong) {
  const std::string pattern = R"("pattern":{"String":")" + std::string(1025, 'a') + R"("})";
  EXPECT_TRUE(contains(error_beside(R"("normalizer":{"type":"Replace",)" + pattern + R"(,"content":""})"),
                       "normalizer.pattern.String is too long"));
  EXPECT_TRUE(contains(
      error_beside(R"("pre_tokenizer":{"type":"Split",)" + pattern + R"(,"behavior":"Isolated","invert":false})"),
      "pre_tokenizer.pattern.String is too long"));
}

TEST(TokenizerErrors, OfCalls) {
  const Tokenizer tokenizer = Tokenizer::parse(std::string("{") + kModel + "}");
  EXPECT_THROW(static_cast<void>(tokenizer.encode("a\xFF")), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(tokenizer.encode_pair("a", "\xC3")), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(tokenizer.decode({0, 3})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(tokenizer.decode({-1})), std::invalid_argument);
  EXPECT_TRUE(contains(file_error([] { static_cast<void>(Tokenizer::read("/nowhere")); }), "/nowhere: cannot open"));
}

}  // namespace headlight::text::tokenizer_errors_test
