// headlight tokenize.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

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

TEST_F(Tokenize, DecodesIds) { EXPECT_EQ(run({"--decode", "2,0,1"}).out, "abab\n"); }

TEST_F(Tokenize, SaysWhatIsWrong) {
  expect_error(run({}), {"--text", "--input", "--decode"}, 2);
  expect_error(run({"--text", "a", "--decode", "1"}), {"exactly one"}, 2);
  expect_error(run({"--decode", "1,x"}), {"--decode has 'x'"}, 2);
  expect_error(run({"--decode", "9"}), {"ids[0] is 9"});
  expect_error(run({"--text", "\xFF"}), {"--text number 1 is not UTF-8"});
  expect_error(run_program({"tokenize", "--model", folder_ / "none", "--text", "b"}), {"none: cannot open"});
}

}  // namespace headlight::test::tokenize_test
