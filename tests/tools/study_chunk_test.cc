// headlight study chunk: the shorter the chunk, the less is computed and the more is lost.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "headlight/models/text_encoder.h"
#include "models/golden_family.h"
#include "reference/attention.h"
#include "support/random.h"
#include "tools/headlight/studies/chunk.h"
#include "tools/program.h"
#include "tools/well_formed.h"

namespace headlight::test::study_chunk_test {

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
  // Recomputing holds the same whatever the chunk; written out, weights take 4 bytes a pair and head (18 whole chunks
  // of 16 and one of 12), and a head's such matrix, and what products need, lie in the engine's memory.
  const nlohmann::json& shortest = document.at("chunks").at(0);
  const nlohmann::json& whole = document.at("chunks").back();
  EXPECT_EQ(shortest.at("recomputing_bytes"), whole.at("recomputing_bytes"));
  const double saved = whole.at("unfused_bytes").get<double>() - shortest.at("unfused_bytes").get<double>();
  const double weights = 4.0 * 2 * (300 * 300 - (18 * 256 + 144)), one_head = 4.0 * 300 * 300;
  EXPECT_GE(saved, weights + 0.9 * one_head);
  EXPECT_LE(saved, weights + 2 * one_head);
  EXPECT_GT(document.at("chunks").at(0).at("mass_outside").get<double>(), 0.01);
  const std::string chart = (std::ostringstream() << svg.rdbuf()).str();
  EXPECT_TRUE(is_well_formed(chart));
  for (const char* panel : {"What is lost", "What is gained", "What a layer holds in training"}) {
    EXPECT_NE(chart.find(panel), std::string::npos) << panel;
  }
}

// Mass and error against float64, counted pair by pair.
TEST(StudyChunk, LossesAreThoseOfTheReference) {
  constexpr std::int64_t kLength = 90, kHeads = 2, kDim = 8;
  Engine engine({.threads = 1});
  const program::ChunkSource source = program::seeded_inputs(kLength, kHeads, kDim, 3);
  ASSERT_EQ(source.layers.size(), 1u);
  const program::ChunkInputs& in = source.layers[0];
  const auto query = converted<double>(in.query), key = converted<double>(in.key), value = converted<double>(in.value);
  Tensor<double, 4> full(query.shape()), probabilities({1, kHeads, kLength, kLength});
  reference::attention<double>(query, key, value, full, {}, {.log_sum_exp = {}, .probabilities = probabilities});
  const std::vector<program::ChunkRow> rows = program::measure_chunks(engine, source, 1);
  ASSERT_EQ(rows.size(), 4u);  // 16, 32, 64 and all
  for (const program::ChunkRow& row : rows) {
    double outside = 0;
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t i = 0; i < kLength; ++i) {
        for (std::int64_t j = 0; j < kLength; ++j) {
          if (i / row.chunk != j / row.chunk) outside += probabilities(0, h, i, j);
        }
      }
    }
    Tensor<double, 4> out(query.shape());
    reference::attention<double>(query, key, value, out, {.chunk = row.chunk});
    double difference = 0, size = 0;
    for (std::int64_t n = 0; n < out.size(); ++n) {
      difference += std::pow(out.data()[n] - full.data()[n], 2);
      size += std::pow(full.data()[n], 2);
    }
    EXPECT_NEAR(row.outside, outside / (kHeads * kLength), 1e-5) << row.chunk;
    EXPECT_NEAR(row.error, std::sqrt(difference / size), 1e-5) << row.chunk;
  }
  EXPECT_GT(rows[0].outside, 0.01);
  EXPECT_GT(rows[0].error, 0.01);
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

// Of families whose layers are BERT's, with any tokenizer; others are refused by their name.
TEST(StudyChunk, ModelsOfOtherFamilies) {
  const ScratchFolder folder;
  const auto study = [&](const char* name) {
    return run_program(
        {"study", "chunk", "--quick", "--model", golden_family(name).write(folder / name), "--json", "-"});
  };
  const Finished finished = study("roberta");
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_NE(nlohmann::json::parse(finished.out).at("source").get<std::string>().find(" tokens"), std::string::npos);
  expect_error(study("modernbert"), {"has the model_type 'modernbert', expected one whose layers are BERT's"});
}

TEST(StudyChunk, WrongUsage) {
  expect_error(run_program({"study", "chunk", "--input", "text.txt"}), {"--model"}, 2);
  expect_error(run_program({"study", "chunk", "--model", "m", "--length", "10"}), {"--length"}, 2);
  expect_error(run_program({"study", "chunk", "--length", "0"}), {"--length"}, 2);
  expect_error(run_program({"study", "chunk", "--model", "no-such-folder"}), {"no-such-folder"});
}

}  // namespace headlight::test::study_chunk_test
