// headlight tokenize.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "headlight/models/text_encoder.h"
#include "tools/model_commands.h"
#include "tools/program.h"

namespace headlight::test::tokenize_test {

class Tokenize : public testing::Test {
 protected:
  Tokenize() {
    std::ofstream(folder_ / "tokenizer.json")
        << R"({"decoder":{"type":"Fuse"},"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"\"":3},"merges":["a b"]}})";
  }
  [[nodiscard]] Finished run(std::vector<std::string> more, const Surroundings& surroundings = {}) const {
    more.insert(more.begin(), {"tokenize", "--model", folder_ / "tokenizer.json"});
    return run_program(more, surroundings);
  }

  ScratchFolder folder_;
};

TEST_F(Tokenize, PrintsALineForEachText) {
  const std::string lines = "{\"ids\": [2, 0], \"tokens\": [\"ab\", \"a\"]}\n{\"ids\": [3], \"tokens\": [\"\\\"\"]}\n";
  EXPECT_EQ(run({"--text", "aba", "--text", "\""}).out, lines);
  std::ofstream(folder_ / "texts.txt") << "aba\n\"\n";
  EXPECT_EQ(run({"--input", folder_ / "texts.txt"}).out, lines);
  EXPECT_EQ(run({"--input", "-"}, {.input = "aba\n\"\n"}).out, lines);
  EXPECT_EQ(run_program({"tokenize", "--model", folder_ / "", "--text", "b"}).out,
            "{\"ids\": [1], \"tokens\": [\"b\"]}\n");
}

// {"ids": […], "tokens": […]}
std::string line_of(const models::TextEncoder& model, const std::string& text) {
  std::string ids, tokens;
  for (const std::int64_t id : model.tokenize(text)) {
    ids += (ids.empty() ? "" : ", ") + std::to_string(id);
    tokens += (tokens.empty() ? "\"" : ", \"") + std::string(*model.token(id)) + "\"";
  }
  return "{\"ids\": [" + ids + "], \"tokens\": [" + tokens + "]}\n";
}

TEST_F(ModelCommands, TokensAreThoseOfTheModel) {
  const std::string text = "Hello world, hello it. Hello world hello world hello world hello world";
  ASSERT_FALSE(std::filesystem::exists(folder_ / "model/tokenizer.json")) << "there is vocab.txt alone";
  EXPECT_EQ(run("tokenize", {"--text", text}).out, line_of(model_, text));
  EXPECT_EQ(model_.tokenize(text).size(), 16u) << "as many as the model takes";
  EXPECT_EQ(run("tokenize", {"--decode", "4,5"}).out, "hello world\n");
  expect_error(run("tokenize", {"--decode", "9"}), {"--decode has 9, expected ids of tokens, 0 to 8"}, 2);
}

TEST_F(ModelCommands, TokensNeedNoWeights) {
  const std::string text = "Hello world, hello it. Hello world hello world hello world hello world";
  const auto expect_tokens = [&] {
    const Finished finished = run("tokenize", {"--text", text});
    EXPECT_EQ(finished.out, line_of(model_, text)) << "cut at the longest text";
    EXPECT_EQ(finished.error, "");
    EXPECT_EQ(run("tokenize", {"--decode", "4,5"}).out, "hello world\n");
  };
  write("model/model.safetensors", "damaged");
  expect_tokens();
  std::filesystem::remove(folder_ / "model/model.safetensors");
  expect_tokens();
  write("model/config.json", replaced(read("model/config.json"), "{", "{\"published_by\": \"nobody\","));
  EXPECT_EQ(run("tokenize", {"--text", "it"}).error,
            "headlight: warning: keys that are not known here are passed over: " + (folder_ / "model/config.json") +
                ": published_by\n");
}

TEST(TokenizeGguf, TokensAreThoseOfTheModel) {
  const std::string path = HEADLIGHT_SOURCE "/tests/golden/gguf_qwen3.gguf", text = "a city, the city";
  const models::TextEncoder model = models::load(path);
  const Finished finished = run_program({"tokenize", "--model", path, "--text", text});
  EXPECT_EQ(finished.out, line_of(model, text));
  EXPECT_EQ(finished.error, "");

  const ScratchFolder folder;
  const std::string bytes = (std::ostringstream() << std::ifstream(path, std::ios::binary).rdbuf()).str();
  const auto with = [&](std::size_t at, const std::string& written) {
    std::ofstream(folder / "other.gguf", std::ios::binary) << std::string(bytes).replace(at, written.size(), written);
    return run_program({"tokenize", "--model", folder / "other.gguf", "--text", text});
  };
  // No weights are needed.
  const std::size_t weight = bytes.find("blk.0.attn_q.weight");
  ASSERT_NE(weight, std::string::npos);
  const Finished without = with(weight, "blk.0.attn_x.weight");
  EXPECT_EQ(without.out, finished.out);
  EXPECT_EQ(without.error, "");

  // Of a model that is not read, too.
  const std::string name = "general.architecture";
  const std::size_t at = bytes.find("qwen3", bytes.find(name));
  ASSERT_LT(at, bytes.find(name) + name.size() + 16);
  const Finished other = with(at, "qwen9");
  EXPECT_EQ(other.out, finished.out);
  EXPECT_NE(other.error.find("warning: tokens are those of the tokenizer alone, for the model is not read: "),
            std::string::npos)
      << other.error;
}

TEST_F(Tokenize, TakesTheTokenizerOfAModelThatIsNotRead) {
  std::ofstream(folder_ / "config.json") << R"({"model_type": "mistral"})";
  const Finished finished = run_program({"tokenize", "--model", folder_ / "", "--text", "b"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.out, "{\"ids\": [1], \"tokens\": [\"b\"]}\n");
  EXPECT_NE(finished.error.find("warning: tokens are those of the tokenizer alone"), std::string::npos)
      << finished.error;
  std::filesystem::remove(folder_ / "tokenizer.json");
  expect_error(run_program({"tokenize", "--model", folder_ / "", "--text", "b"}),
               {"config.json: model_type is 'mistral'"});
}

TEST_F(Tokenize, DecodesIds) { EXPECT_EQ(run({"--decode", "2,0,1"}).out, "abab\n"); }

TEST_F(Tokenize, SaysWhatIsWrong) {
  expect_error(run({}), {"--text", "--input", "--decode"}, 2);
  expect_error(run({"--text", "a", "--decode", "1"}), {"exactly one"}, 2);
  expect_error(run({"--decode", "1,x"}), {"--decode has 'x'"}, 2);
  for (const char* id : {"9", "-1", "9223372036854775808", "-9223372036854775809"}) {
    expect_error(run({"--decode", std::string("1,") + id}),
                 {std::string("--decode has ") + id + ", expected ids of tokens, 0 to 3"}, 2);
  }
  const std::string ids = "expected ids with commas between, such as 101,7592,102";
  for (const std::string list : {"1,,2", ",1", "1,", ","}) {
    expect_error(run({"--decode", list}), {"--decode is '" + list + "', " + ids + ", none of them empty"}, 2);
  }
  expect_error(run({"--decode", ""}), {"--decode is empty, " + ids}, 2);
  for (const std::string id : {" 2", "+2", "0x2", "2.0"}) {
    expect_error(run({"--decode", "1," + id}), {"--decode has ", ids}, 2);
  }
  expect_error(run({"--text", "\xFF"}), {"--text number 1 is not UTF-8"});
  expect_error(run_program({"tokenize", "--model", folder_ / "none", "--text", "b"}),
               {"none: is not there", "nothing is downloaded"});
  std::ofstream(folder_ / "config.json") << R"({"_name_or_path": "x", "model_type": "bert"})";
  expect_error(run_program({"tokenize", "--model", folder_ / "config.json", "--text", "b"}),
               {"config.json: has no key 'model', expected a tokenizer.json"});
}

}  // namespace headlight::test::tokenize_test
