// headlight heads on a small random model: the numbers are the library's, the page holds words as words, and bad input
// is one line.
#include "tools/headlight/heads/heads.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "headlight/analysis.h"
#include "headlight/models/text_encoder.h"
#include "headlight/normalization.h"
#include "runtime/random.h"
#include "support/sanitizer.h"
#include "tools/program.h"

namespace headlight::test::heads_test {

class Heads : public testing::Test {
 protected:
  Heads() : model_(make()) { model_.save(folder_ / "model"); }

  static models::TextEncoder make(Merge merge = Merge::concatenate) {
    models::ModelOptions options;
    options.encoder = {.max_positions = 16, .token_types = 2, .width = 24, .heads = 3, .layers = 2, .merge = merge};
    models::Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "<b>", "&", "on", "mat"});
    return models::make_random(options, std::move(tokenizer), 3);
  }

  [[nodiscard]] Finished run(std::vector<std::string> more, const Surroundings& surroundings = {}) const {
    more.insert(more.begin(), {"heads", "--model", folder_ / "model"});
    return run_program(more, surroundings);
  }
  [[nodiscard]] nlohmann::json json(std::vector<std::string> more, const Surroundings& surroundings = {}) const {
    more.insert(more.end(), {"--json", "-"});
    const Finished finished = run(std::move(more), surroundings);
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.error, "");
    return nlohmann::json::parse(finished.out);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return (std::ostringstream() << std::ifstream(folder_ / name, std::ios::binary).rdbuf()).str();
  }

  ScratchFolder folder_;
  Engine engine_;
  models::TextEncoder model_;
};

TEST_F(Heads, NumbersAreThoseOfThePrecision) {
  const std::vector<std::string> text{"--text", "the cat sat on the mat"};
  const auto entropy_of = [&](NumberType precision) {  // of head 0 of the last layer
    const models::TextEncoder model = models::load(folder_ / "model", {.precision = precision});
    const std::vector<std::int64_t> ids = model.tokenizer().encode(text[1], 16);
    const Tensor<float, 3> weights = model.probabilities(engine_, ids, 1);
    double entropy = 0;
    for (std::int64_t i = 1; i < 7; ++i) {
      for (std::int64_t j = 0; j < 8; ++j) {
        const auto p = static_cast<double>(weights(0, i, j));
        entropy -= p * std::log(p) / 6;
      }
    }
    return entropy;
  };
  const auto found = [&](const std::string& precision) {
    return json({text[0], text[1], "--precision", precision}).at("heads")[3].at("entropy").get<double>();
  };
  EXPECT_NEAR(found("float32"), entropy_of(NumberType::float32), 1e-6);
  EXPECT_NEAR(found("int8"), entropy_of(NumberType::int8), 1e-6);
  EXPECT_GT(std::abs(found("int8") - found("float32")), 1e-5);
  expect_error(run({text[0], text[1], "--precision", "half"}), {"--precision is 'half', expected float32"}, 2);
}

const std::string kTexts = "the cat sat on the mat\nmat on cat the\n\ncat\nthe the sat sat on on the mat cat\n";

TEST_F(Heads, NumbersAreThoseOfTheLibrary) {
  const nlohmann::json found = json({"--input", "-"}, {.input = kTexts});
  EXPECT_EQ(found.at("texts"), 5);
  EXPECT_EQ(found.at("words"), 6 + 4 + 0 + 1 + 9);
  ASSERT_EQ(found.at("heads").size(), 6u);
  ASSERT_EQ(found.at("cka").size(), 6u);
  EXPECT_NEAR(found.at("cka")[4][4].get<double>(), 1.0, 1e-5);
  // The sums run in another order the other way round.
  EXPECT_NEAR(found.at("cka")[1][4].get<double>(), found.at("cka")[4][1].get<double>(), 1e-12);

  // One text by hand, row by row.
  const nlohmann::json one = json({"--text", "the cat sat on the mat"});
  const std::vector<std::int64_t> ids = model_.tokenizer().encode("the cat sat on the mat", 16);
  for (std::int64_t head = 0; head < 6; ++head) {
    const Tensor<float, 3> weights = model_.probabilities(engine_, ids, head / 3);
    double entropy = 0, largest = 0;
    for (std::int64_t i = 1; i < 7; ++i) {
      double most = 0;
      for (std::int64_t j = 0; j < 8; ++j) {
        const auto p = static_cast<double>(weights(head % 3, i, j));
        entropy -= p * std::log(p) / 6;
        most = std::max(most, p);
      }
      largest += most / 6;
    }
    const nlohmann::json& of_head = one.at("heads")[static_cast<std::size_t>(head)];
    EXPECT_NEAR(of_head.at("entropy").get<double>(), entropy, 1e-5);
    EXPECT_NEAR(of_head.at("confidence").get<double>(), largest, 1e-6);
    EXPECT_EQ(of_head.at("layer"), head / 3);
    EXPECT_EQ(of_head.at("head"), head % 3);
  }
  const nlohmann::json& layer = found.at("by_layer")[1];
  EXPECT_EQ(layer.at("divergence")[2][2], 0.0);
  EXPECT_NEAR(layer.at("query_overlap")[0][0].get<double>(), 1.0, 1e-5);
  EXPECT_LT(layer.at("effective_rank").get<double>(), 19.0);
}

// What goes into the last product of a layer is as wide as one head where heads are averaged or summed.
TEST_F(Heads, DirectionsAreThoseOfWhatTheMergeMakes) {
  for (int number = 0; number < 6; ++number) {
    const auto merge = static_cast<Merge>(number);
    SCOPED_TRACE(name(merge));
    make(merge).save(folder_ / "model");
    const nlohmann::json found = json({"--input", "-"}, {.input = kTexts});
    const bool sums = merge == Merge::average || merge == Merge::weighted || merge == Merge::weighted_by_input;
    const int width = sums ? 8 : 24;
    EXPECT_EQ(found.at("merged_width"), width);
    for (const nlohmann::json& layer : found.at("by_layer")) {
      EXPECT_GT(layer.at("effective_rank").get<double>(), 1.0);
      EXPECT_LE(layer.at("effective_rank").get<double>(), width);
    }
    const Finished summary = run({"--input", "-"}, {.input = kTexts});
    EXPECT_NE(summary.out.find(" of " + std::to_string(width) + " "), std::string::npos) << summary.out;
  }
}

TEST_F(Heads, ThreadsAndPortionsChangeNothing) {
  std::string many;
  for (int n = 0; n < 700; ++n) many += n % 3 == 0 ? "the cat sat\n" : "mat on the sat cat on\n";
  nlohmann::json one = json({"--input", "-", "--threads", "1"}, {.input = many});
  // Two threads take the two layers side by side, three share in each.
  EXPECT_EQ(one, json({"--input", "-", "--threads", "2"}, {.input = many}));
  EXPECT_EQ(one, json({"--input", "-", "--threads", "3"}, {.input = many}));
}

TEST_F(Heads, TheSummaryIsForPeople) {
  const Finished finished = run({"--input", "-", "--mask", "1.2,0.0,1.2"}, {.input = kTexts});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_EQ(finished.error, "");
  for (const char* words : {"2 layers of 3 heads; 5 texts, 20 word pieces", "Heads that say the same",
                            "What they look at", "Layer by layer", "Without 0.0, 1.2", "cosine", "Terms", "  CKA  ",
                            "  entropy  ", "  directions used  effective rank", "0.33 by chance"}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  EXPECT_EQ(finished.out.find('\033'), std::string::npos) << "colours without a terminal";
}

TEST_F(Heads, MaskedHeadsCostTheOutputSomething) {
  const nlohmann::json some = json({"--input", "-", "--mask", "0.1"}, {.input = kTexts}).at("mask");
  const nlohmann::json all = json({"--input", "-", "--mask", "0.0,0.1,0.2,1.0,1.1,1.2"}, {.input = kTexts}).at("mask");
  EXPECT_EQ(some.at("heads"), nlohmann::json({"0.1"}));
  EXPECT_GT(some.at("change").get<double>(), 0.0);
  EXPECT_GT(all.at("change").get<double>(), some.at("change").get<double>());
  EXPECT_LT(all.at("mean_cosine").get<double>(), some.at("mean_cosine").get<double>());
  EXPECT_LE(some.at("least_cosine").get<double>(), some.at("mean_cosine").get<double>());
}

TEST_F(Heads, ThePageHoldsEverythingAndWordsStayWords) {
  std::filesystem::rename(folder_ / "model", folder_ / "<script>x&y");
  const Finished finished = run_program({"heads", "--model", folder_ / "<script>x&y", "--text", "<b> & \"cat\"",
                                         "--html", folder_ / "h.html", "--json", folder_ / "h.json"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_TRUE(finished.out.starts_with((folder_ / "h.html") + ": 6 heads on a page\n" + (folder_ / "h.json") +
                                       ": 6 heads as JSON\n\n"))
      << finished.out;
  const std::string page = read("h.html");
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(page.find("<script>x"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;x&amp;y"), std::string::npos);
  EXPECT_EQ(page.find("<b>  "), std::string::npos);
  for (const char* there : {"id=\"matrix\"", "id=\"head-1.2\"", "aria-live", "prefers-color-scheme: dark", "</html>"}) {
    EXPECT_NE(page.find(there), std::string::npos) << there;
  }
  for (const char* elsewhere : {"http://", "https://", "url(", "src="}) {
    EXPECT_EQ(page.find(elsewhere), std::string::npos) << elsewhere;
  }
  const std::size_t begin = page.find("id=\"data\">") + 10;
  const nlohmann::json data = nlohmann::json::parse(page.substr(begin, page.find("</script", begin) - begin));
  EXPECT_EQ(data.at("cka").size(), 36u);
  EXPECT_EQ(nlohmann::json::parse(read("h.json")).at("heads").size(), 6u);
}

// The demonstration model says where its relations lead; what a head's weights are there, beams shows too.
TEST_F(Heads, RelationsThatTheModelKnowsAreNamed) {
  const std::string text = "The animal didn't cross the street because it was too tired.";
  const Finished finished = run_program({"heads", "--text", text, "--json", "-", "--html", folder_ / "h.html"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  const nlohmann::json heads = nlohmann::json::parse(finished.out).at("heads");
  for (const char* relation : {"coreference", "subject", "object", "effect", "cause"}) {
    double most = 0;
    for (const nlohmann::json& head : heads) most = std::max(most, head.at("relations").at(relation).get<double>());
    EXPECT_GT(most, 0.8) << relation;
    EXPECT_LE(most, 1.0) << relation;
  }
  EXPECT_FALSE(heads.at(0).at("relations").contains("modified")) << "no adjective stands before a noun";
  EXPECT_NE(read("h.html").find("coreference"), std::string::npos);
}

// Of fewer word pieces than numbers CKA is high whatever heads do.
TEST_F(Heads, AFewWordsAreSaidToSayLittle) {
  const Finished one = run_program({"heads", "--text", "The animal was too tired."});
  ASSERT_EQ(one.code, 0) << one.error;
  EXPECT_NE(one.out.find("fewer word pieces than the 64 numbers of a layer's heads"), std::string::npos) << one.out;
  EXPECT_EQ(one.out.find("are redundant"), std::string::npos) << one.out;
  const Finished many = run_program({"heads"});
  ASSERT_EQ(many.code, 0) << many.error;
  EXPECT_EQ(many.out.find("too few to say"), std::string::npos) << many.out;
}

// A folder of `headlight train` has the demonstration's language, and so its sentences.
TEST_F(Heads, ATrainedModelNeedsNoTexts) {
  ASSERT_EQ(run_program({"train", "--steps", "2", "-o", folder_ / "mine"}).code, 0);
  const Finished finished = run_program({"heads", "--model", folder_ / "mine"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.error, "");
  EXPECT_NE(finished.out.find("2 layers of 4 heads; 400 texts"), std::string::npos) << finished.out;
  const Finished one = run_program({"heads", "--model", folder_ / "mine", "--text", "the animal"});
  EXPECT_NE(one.out.find("1 text"), std::string::npos) << one.out << one.error;
}

// Any other model is looked at over sentences of the program's own, and the report does not pass over that.
TEST_F(Heads, AModelWithoutTextsGetsExamples) {
  const Finished finished = run({});
  EXPECT_EQ(finished.code, 0) << finished.error;
  EXPECT_NE(finished.out.find("2 layers of 3 heads; 24 texts"), std::string::npos) << finished.out;
  EXPECT_TRUE(
      finished.error.starts_with("headlight: warning: no texts are given: heads are measured on 24 English "
                                 "sentences that come with the program; --text and --input take others\n"))
      << finished.error;
  EXPECT_EQ(run({"--text", "the cat sat"}).error, "");
}

TEST_F(Heads, FewWordsGiveNamesInsteadOfNumbers) {
  const nlohmann::json one = json({"--text", "cat"});
  EXPECT_EQ(one.at("words"), 1);
  EXPECT_EQ(one.at("cka")[0][1].at("undefined"), "too few rows");
  EXPECT_EQ(one.at("by_layer")[0].at("effective_rank").at("undefined"), "too few rows");
  EXPECT_TRUE(one.at("heads")[0].at("entropy").is_number());
  const Finished summary = run({"--text", "cat", "--html", folder_ / "h.html"});
  EXPECT_NE(summary.out.find("cannot be told: too few rows"), std::string::npos) << summary.out;
  EXPECT_EQ(summary.out.find("nan"), std::string::npos);
  EXPECT_EQ(read("h.html").find("nan"), std::string::npos);
}

TEST_F(Heads, WordsThatTheModelDoesNotKnowAreNamed) {
  const Finished finished = run({"--text", "the dog sat on the cat", "--text", "a cat, a mat"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.error, "headlight: warning: the model does not know 3 words: 'dog', 'a', ','\n");
}

TEST_F(Heads, LongTextsAreCutAndSaidSo) {
  std::string words;
  for (int n = 0; n < 10000; ++n) words += n % 2 == 0 ? "cat " : "mat ";
  const Finished finished = run({"--input", "-"}, {.input = words + "\nthe cat\n"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_NE(finished.out.find("1 text was cut after 16 tokens"), std::string::npos) << finished.out;
  EXPECT_EQ(json({"--input", "-"}, {.input = words}).at("words"), 14);
}

// Texts are read one after another, as often as the questions need: sixteen times as many take no more memory.
TEST_F(Heads, FULL_MemoryDoesNotGrowWithTheTexts) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's memory is resident too";
  constexpr int kFew = 120;
  std::string line;
  while (line.size() < 12 << 10) line += "the cat sat on mat ";
  for (const int texts : {kFew, 16 * kFew}) {
    std::ofstream file(folder_ / std::to_string(texts));
    for (int n = 0; n < texts; ++n) file << line << "\n";
  }
  const auto peak = [&](const std::string& command, int texts, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {command, "--model", folder_ / "model", "--threads", "1", "--input"};
    arguments.push_back(folder_ / std::to_string(texts));
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run_program(arguments, {.output = "/dev/null"});
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_GT(finished.own_peak_bytes, 0);
    return finished.own_peak_bytes;
  };
  const std::int64_t all_lines = 15 * kFew * static_cast<std::int64_t>(line.size());
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--importance", "--mask", "0.1"}}) {
    EXPECT_LT(peak("heads", 16 * kFew, more), peak("heads", kFew, more) + all_lines / 5);
  }
  EXPECT_LT(peak("embed", 16 * kFew, {}), peak("embed", kFew, {}) + all_lines / 5);
}

// Standard input can be read once, and is read as often all the same.
TEST_F(Heads, StandardInputIsAFileLikeAnyOther) {
  std::ofstream(folder_ / "texts") << kTexts;
  const std::vector<std::string> questions = {"--importance", "--mask", "1.1", "--input"};
  std::vector<std::string> of_file = questions, of_pipe = questions;
  of_file.push_back(folder_ / "texts");
  of_pipe.emplace_back("-");
  EXPECT_EQ(json(of_file), json(of_pipe, {.input = kTexts}));
}

TEST_F(Heads, BadInputIsOneLine) {
  const Finished own = run_program({"heads"});
  EXPECT_EQ(own.code, 0) << own.error;
  for (const char* words :
       {"demonstration: 2 layers of 4 heads; 400 texts", "it: what it stands for", "a verb: who does it"}) {
    EXPECT_NE(own.out.find(words), std::string::npos) << own.out;
  }
  expect_error(run({"--text", "a", "--input", "b"}), {"exactly one"}, 2);
  expect_error(run({"--text", "cat", "--json", "-", "--html", "/dev/stdout"}), {"--html", "--json", "standard output"},
               2);
  EXPECT_TRUE(run({"--text", "cat", "--html", "-"}).out.starts_with("<!DOCTYPE html>"));
  for (const char* mask : {"2.0", "0.3"}) expect_error(run({"--text", "cat", "--mask", mask}), {"--mask", mask}, 2);
  for (const char* mask : {"1", "1.", ".1", "a.b", "1.1x", "1.1,x", "", "-1.0", "99999999999999999999.0"}) {
    expect_error(run({"--text", "cat", "--mask", mask}), {"--mask"}, 2);
  }
  for (const std::string mask : {"0.1,,1.1", "0.1,", ",0.1", "0.1, 1.1", "0.+1"}) {
    expect_error(run({"--text", "cat", "--mask", mask}),
                 {"--mask is '" + mask + "', expected heads as LAYER.HEAD, such as 3.2,3.7"}, 2);
  }
  expect_error(run({"--input", "-"}, {.input = ""}), {"standard input", "empty"});
  expect_error(run({"--input", "-"}, {.input = "\n\n"}), {"standard input", "no words"});
  expect_error(run({"--text", ""}), {"--text", "no words"});
  expect_error(run({"--input", folder_ / "nowhere"}), {"nowhere"});
  expect_error(run({"--input", "-"}, {.input = "a\n\xff\n"}), {"line 2", "UTF-8"});
  expect_error(run_program({"heads", "--model", folder_ / "no", "--text", "a"}), {"no"});
  expect_error(run({"--text", "cat", "--html", folder_ / "no/h.html"}), {"h.html"});
  expect_error(run({"--text", "cat", "--json", "/dev/full"}), {"/dev/full"});
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"model"});
}

// By differences: the head's output is what its columns of W_O take, so a factor there is a factor of the head.
TEST_F(Heads, ImportanceIsWhatScalingAHeadDoesToSentenceVectors) {
  const nlohmann::json found = json({"--input", "-", "--importance"}, {.input = "the cat sat on the mat\n"});
  std::vector<float> direction(24);
  runtime::fill_normal(direction, 0.0f, 1.0f, 1, 0);
  const auto seen = [&](std::int64_t layer, std::int64_t head, float factor) {
    headlight::Encoder network(model_.options().encoder);
    network.load(model_.network().weights());
    for (const Parameter& parameter : network.parameters()) {
      if (parameter.name != "layers." + std::to_string(layer) + ".self_attn.out_proj.weight") continue;
      for (std::size_t n = 0; n < parameter.values.size(); ++n) {
        if (static_cast<std::int64_t>(n % 24) / 8 == head) parameter.values[n] *= factor;
      }
    }
    const std::vector<std::int64_t> ids = model_.tokenizer().encode("the cat sat on the mat", 16);
    std::vector<std::int64_t> positions, types(ids.size()), offsets{0, static_cast<std::int64_t>(ids.size())};
    for (std::size_t n = 0; n < ids.size(); ++n) positions.push_back(static_cast<std::int64_t>(n));
    Tensor<float, 2> hidden({offsets[1], 24}), vector({1, 24});
    network.forward(engine_, {ids, positions, types, offsets}, hidden);
    mean_pool(engine_, hidden, offsets, vector, true);
    double sum = 0;
    for (std::int64_t e = 0; e < 24; ++e) {
      sum += static_cast<double>(vector(0, e)) * static_cast<double>(direction[static_cast<std::size_t>(e)]);
    }
    return sum;
  };
  for (std::int64_t number = 0; number < 6; ++number) {
    const double difference =
        (seen(number / 3, number % 3, 1.03125f) - seen(number / 3, number % 3, 0.96875f)) / 0.0625;
    EXPECT_NEAR(found.at("heads").at(static_cast<std::size_t>(number)).at("importance").get<double>(),
                std::abs(difference), 2e-3 * std::abs(difference) + 2e-4);
  }
  const Finished finished = run({"--input", "-", "--importance"}, {.input = kTexts});
  EXPECT_NE(finished.out.find("Importance for sentence vectors"), std::string::npos) << finished.out;
  const nlohmann::json without = json({"--input", "-"}, {.input = kTexts}).at("heads").at(0);
  EXPECT_FALSE(without.contains("importance"));
  EXPECT_FALSE(without.contains("relations")) << "a model that knows none";
  ASSERT_EQ(run({"--text", "the cat sat", "--importance", "--html", folder_ / "with.html"}).code, 0);
  ASSERT_EQ(run({"--text", "the cat sat", "--html", folder_ / "without.html"}).code, 0);
  EXPECT_NE(read("with.html").find(">importance</button>"), std::string::npos);
  EXPECT_NE(read("with.html").find(", importance 0."), std::string::npos) << "in the tooltip of a picture";
  EXPECT_EQ(read("without.html").find("importance"), std::string::npos);
}

}  // namespace headlight::test::heads_test
