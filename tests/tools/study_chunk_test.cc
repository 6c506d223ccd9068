// headlight study chunk: the shorter the chunk, the less is computed and the more is lost.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "headlight/models/encoder.h"
#include "tools/program.h"
#include "tools/well_formed.h"

namespace headlight::test {
namespace {

// Of a document: the last row is full attention.
void expect_sound(const nlohmann::json& document, std::int64_t length) {
  const nlohmann::json& rows = document.at("chunks");
  ASSERT_GE(rows.size(), 2u);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const nlohmann::json& row = rows.at(n);
    EXPECT_GE(row.at("mass_outside").get<double>(), 0);
    EXPECT_LE(row.at("mass_outside").get<double>(), 1);
    EXPECT_GT(row.at("forward_seconds").get<double>(), 0);
    EXPECT_GT(row.at("backward_seconds").get<double>(), 0);
    if (n == 0) continue;
    EXPECT_GE(row.at("pairs").get<double>(), rows.at(n - 1).at("pairs").get<double>());
    EXPECT_LE(row.at("mass_outside").get<double>(), rows.at(n - 1).at("mass_outside").get<double>() + 1e-6);
  }
  EXPECT_EQ(rows.back().at("chunk"), length);
  EXPECT_EQ(rows.back().at("pairs"), 1.0);
  EXPECT_EQ(rows.back().at("mass_outside"), 0.0);
  EXPECT_EQ(rows.back().at("error"), 0.0);
}

TEST(StudyChunk, SeededNumbers) {
  const ScratchFolder folder;
  const std::vector<std::string> arguments = {"study", "chunk",      "--quick", "--length",  "300", "--heads",
                                              "2",     "--head-dim", "16",      "--threads", "1"};
  std::vector<std::string> with_files = arguments;
  with_files.insert(with_files.end(), {"--json", folder / "chunk.json", "--svg", folder / "chunk.svg"});
  const Finished finished = run_program(with_files);
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_NE(finished.out.find("seeded numbers, 2 heads of 16, 300 positions"), std::string::npos) << finished.out;
  std::ifstream json(folder / "chunk.json"), svg(folder / "chunk.svg");
  const nlohmann::json document = nlohmann::json::parse(json);
  expect_sound(document, 300);
  // 18 whole chunks of 16 and one of 12.
  EXPECT_EQ(document.at("chunks").at(0).at("weights_bytes"), 4.0 * 2 * (18 * 256 + 144));
  EXPECT_GT(document.at("chunks").at(0).at("mass_outside").get<double>(), 0.01);
  EXPECT_TRUE(is_well_formed((std::ostringstream() << svg.rdbuf()).str()));
}

TEST(StudyChunk, AModelsActivations) {
  const ScratchFolder folder;
  models::ModelOptions options;
  options.encoder = {.max_positions = 40, .width = 24, .heads = 3, .layers = 2};
  models::make_random(options, models::Tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "lamp"}), 1)
      .save(folder / "model");
  const Finished finished = run_program({"study", "chunk", "--quick", "--model", folder / "model", "--json", "-"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  const nlohmann::json document = nlohmann::json::parse(finished.out);
  EXPECT_NE(document.at("source").get<std::string>().find("2 layers of 3 heads, 40 tokens"), std::string::npos);
  expect_sound(document, 40);
}

TEST(StudyChunk, WrongUsage) {
  expect_error(run_program({"study", "chunk", "--input", "text.txt"}), {"--model"}, 2);
  expect_error(run_program({"study", "chunk", "--model", "m", "--length", "10"}), {"--length"}, 2);
  expect_error(run_program({"study", "chunk", "--length", "0"}), {"--length"}, 2);
  expect_error(run_program({"study", "chunk", "--model", "no-such-folder"}), {"no-such-folder"});
}

}  // namespace
}  // namespace headlight::test
