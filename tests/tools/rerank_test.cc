// headlight rerank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/golden_family.h"
#include "support/sanitizer.h"
#include "tools/program.h"

namespace headlight::test::rerank_test {

const std::vector<std::string> kTexts{"the streets are long", "a", "New York", "a"};

class Rerank : public testing::Test {
 protected:
  Rerank() : folder_(named("roberta").write(scratch_ / "family")) {
    Engine engine({.threads = 1});
    std::vector<models::TextPair> pairs;
    for (const std::string& text : kTexts) pairs.push_back({"the city", text});
    const Tensor<float, 2> found = models::load(folder_).score(engine, pairs);
    scores_.assign(found.begin(), found.end());
  }

  [[nodiscard]] static const GoldenFamily& named(const std::string& name) {
    const auto& all = golden_families();
    return *std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.scores && one.name == name; });
  }
  [[nodiscard]] Finished run(std::vector<std::string> more, const Surroundings& surroundings = {}) const {
    more.insert(more.begin(), {"rerank", "--model", folder_, "--query", "the city"});
    return run_program(more, surroundings);
  }

  ScratchFolder scratch_;
  std::string folder_;
  std::vector<float> scores_;
};

TEST_F(Rerank, PrintsTheBestFirst) {
  std::string input;
  for (const std::string& text : kTexts) input += text + "\n";
  const Finished lines = run({"--input", "-"}, {.input = input});
  ASSERT_EQ(lines.code, 0) << lines.error;
  std::istringstream stream(lines.out);
  std::vector<std::string> texts;
  std::vector<float> scores;
  for (std::string line; std::getline(stream, line);) {
    scores.push_back(std::strtof(line.c_str(), nullptr));
    texts.push_back(line.substr(line.find('\t') + 1));
  }
  std::vector<float> sorted = scores_;
  std::sort(sorted.rbegin(), sorted.rend());
  EXPECT_EQ(scores, sorted);
  std::vector<std::string> same = texts, all = kTexts;
  std::sort(same.begin(), same.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(same, all);

  const auto document = nlohmann::json::parse(
      run({"--text", kTexts[0], "--text", kTexts[1], "--text", kTexts[2], "--text", kTexts[3], "--json"}).out);
  ASSERT_EQ(document.size(), kTexts.size());
  for (std::size_t place = 0; place < kTexts.size(); ++place) {
    const auto index = document[place].at("index").get<std::size_t>();
    EXPECT_EQ(document[place].at("score").get<float>(), scores_[index]);
    EXPECT_EQ(texts[place], kTexts[index]);
  }
  // Of equal texts the first comes first.
  std::vector<std::size_t> twins;
  for (const auto& one : document) {
    if (kTexts[one.at("index").get<std::size_t>()] == "a") twins.push_back(one.at("index").get<std::size_t>());
  }
  EXPECT_EQ(twins, (std::vector<std::size_t>{1, 3}));
}

// The same lines however little is in memory at a time, and no more in it than was said beside the model: most of the
// texts are long ones.
TEST_F(Rerank, FULL_HoldsWhatMemorySays) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's memory is resident too";
  std::ofstream file(scratch_ / "texts", std::ios::binary);
  const std::string words(200'000, 'y');
  for (int n = 0; n < 400; ++n) file << "the streets w" << n << (n % 2 == 0 ? " " + words : "") << "\n";
  file.close();
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--input", scratch_ / "texts", "--threads", "1"});
    return run(more, {.output = scratch_ / "out"});
  };
  const auto read = [&] {
    return (std::ostringstream() << std::ifstream(scratch_ / "out", std::ios::binary).rdbuf()).str();
  };
  const Finished usual = with({});
  ASSERT_EQ(usual.code, 0) << usual.error;
  const std::string expected = read();
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 400);
  const std::int64_t before = run({"--text", "a", "--threads", "1"}).own_peak_bytes;
  constexpr std::int64_t kMebibytes = 40, kNoise = 6;  // huge pages
  const Finished finished = with({"--memory", std::to_string(kMebibytes) + "MiB"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_EQ(read(), expected);
  EXPECT_GT(before, 0);
  EXPECT_LE(finished.own_peak_bytes, before + ((kMebibytes + kNoise) << 20));
  expect_error(with({"--memory", "1MiB"}), {"--memory is 1 MiB, expected at least", "beside the model's weights"});
  EXPECT_EQ(with({"--memory", "much"}).code, 2);
}

TEST_F(Rerank, SaysWhatIsWrong) {
  expect_error(run({}), {"exactly one of --text and --input"}, 2);
  expect_error(run_program({"rerank", "--model", folder_, "--text", "a"}), {"--query"}, 2);
  expect_error(run_program({"rerank", "--query", "a", "--text", "a"}), {"--model"}, 2);
  expect_error(
      run_program({"rerank", "--model", named("bert").write(scratch_ / "family"), "--query", "a", "--text", "a"}),
      {"family: gives 3 scores for each pair"});
  const GoldenFamily& family = *std::find_if(golden_families().begin(), golden_families().end(),
                                             [](const auto& one) { return one.hidden && one.name == "roberta"; });
  expect_error(run_program({"rerank", "--model", family.write(scratch_ / "family"), "--query", "a", "--text", "a"}),
               {"family: has no head for classification"});
}

}  // namespace headlight::test::rerank_test
