// headlight study: each study's table, document and chart, at its smallest.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/program.h"
#include "tools/well_formed.h"

namespace headlight::test::study_test {

class Study : public testing::Test {
 protected:
  // Runs the study with --quick, and keeps its document and its chart.
  Finished run(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"study"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    for (const std::string& more :
         {std::string("--quick"), std::string("--json"), folder_ / "x.json", std::string("--svg"), folder_ / "x.svg"}) {
      all.push_back(more);
    }
    Finished finished = run_program(all);
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.error, "");
    document_ = nlohmann::json::parse(contents("x.json"), nullptr, false);
    EXPECT_FALSE(document_.is_discarded());
    svg_ = contents("x.svg");
    EXPECT_TRUE(is_well_formed(svg_));
    EXPECT_EQ(svg_.find("nan"), std::string::npos);
    return finished;
  }

  // A chart travels without its table, and says as well that its numbers are of models that have hardly learned.
  void expect_caveat_below_chart() const {
    EXPECT_NE(svg_.find("--quick"), std::string::npos) << svg_;
    EXPECT_NE(svg_.find("Half-learned"), std::string::npos) << svg_;
  }

  std::string contents(const std::string& name) const {
    return (std::ostringstream() << std::ifstream(folder_ / name, std::ios::binary).rdbuf()).str();
  }

  ScratchFolder folder_;
  nlohmann::json document_;
  std::string svg_;
};

TEST_F(Study, FULL_DepthShowsTheGradientOfEveryLayer) {
  const Finished finished = run({"depth", "--steps", "2"});
  for (const char* words : {"96 layers", "Pre-LN", "Post-LN, no residual", "after 2 steps", "Quick"}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  ASSERT_EQ(document_.at("runs").size(), 12u);
  for (const nlohmann::json& entry : document_.at("runs")) {
    const auto layers = entry.at("layers").get<std::size_t>();
    for (const char* when : {"initial", "probed"}) {
      ASSERT_EQ(entry.at("gradient_norms").at(when).size(), layers);
      for (const nlohmann::json& norm : entry.at("gradient_norms").at(when)) EXPECT_GE(norm.get<double>(), 0);
    }
    ASSERT_EQ(entry.at("losses").size(), 3u);
    EXPECT_NEAR(entry.at("losses").at(0).get<double>(), document_.at("loss_of_guessing").get<double>(), 1.5);
  }
  // Of the last of many layers' gradient, what the first has: with Pre-LN its share from the first step on, with
  // Post-LN hardly any after two steps, and next to none without residual connections.
  const auto reach = [&](std::size_t run, const char* norm, bool residual, const char* when) {
    const nlohmann::json& deep = document_.at("runs").at(run);
    EXPECT_EQ(deep.at("layers"), 96);
    EXPECT_EQ(deep.at("norm"), norm);
    EXPECT_EQ(deep.at("residual"), residual);
    const nlohmann::json& norms = deep.at("gradient_norms").at(when);
    return norms.front().get<double>() / norms.back().get<double>();
  };
  EXPECT_GT(reach(8, "pre", true, "initial"), 0.1);
  EXPECT_GT(reach(8, "pre", true, "probed"), 0.1);
  EXPECT_GT(reach(9, "post", true, "initial"), 0.1);
  EXPECT_LT(reach(9, "post", true, "probed"), 0.05);
  EXPECT_LT(reach(10, "pre", false, "probed"), 1e-4);
  EXPECT_LT(reach(11, "post", false, "probed"), 1e-4);
  // Nothing learns in two steps, and neither table nor chart says that something did.
  EXPECT_NE(finished.out.find("none of them learned"), std::string::npos) << finished.out;
  EXPECT_EQ(svg_.find("Why Pre-LN trains"), std::string::npos);
  EXPECT_NE(svg_.find("How much gradient reaches each layer"), std::string::npos);
}

TEST_F(Study, FULL_HeadsCostNoParametersAndLeaveTheVariance) {
  const Finished finished = run({"heads"});
  for (const char* words : {"66,048", "without 1/√D", "L × L weights", "Quick"}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  const nlohmann::json& rows = document_.at("rows");
  ASSERT_EQ(rows.size(), 6u);  // 1, 2, 4 … 32 heads of width 128 … 4
  const auto variance = [](const nlohmann::json& row, const char* which) {
    return row.at(which).at("median").get<double>();
  };
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row.at("parameters"), rows.at(0).at("parameters"));
    EXPECT_EQ(row.at("heads").get<int>() * row.at("head_dim").get<int>(), 128);
    EXPECT_NEAR(variance(row, "output_variance") / variance(rows.at(0), "output_variance"), 1, 0.3);
    EXPECT_EQ(row.at("weight_bytes"), 4 * 128 * 128 * row.at("heads").get<int>());
  }
  EXPECT_GT(variance(rows.at(0), "output_variance_unscaled"), 3 * variance(rows.at(5), "output_variance_unscaled"));
}

TEST_F(Study, FULL_AFileIsSaidAndStandardOutputNotMixed) {
  const Finished finished = run({"heads"});
  EXPECT_TRUE(finished.out.starts_with((folder_ / "x.svg") + ": the chart\n" + (folder_ / "x.json") +
                                       ": everything as JSON\n\n"))
      << finished.out;
  const Finished chart = run_program({"study", "heads", "--quick", "--svg", "-"});
  EXPECT_TRUE(is_well_formed(chart.out)) << chart.out;
  EXPECT_NE(chart.out.find("bands from the least to the most, cut at 1.2"), std::string::npos);
  expect_error(run_program({"study", "heads", "--quick", "--svg", "-", "--json", "/dev/stdout"}),
               {"--svg is '-', expected the name of a file, for --json goes to standard output"}, 2);
}

TEST_F(Study, WhatMakesNoSenseIsOneLine) {
  expect_error(run_program({"study", "depth", "--steps", "0"}), {"--steps"}, 2);
  expect_error(run_program({"study", "depth", "--seed", "-1"}), {"--seed"}, 2);
  expect_error(run_program({"study", "heads", "--width", "3"}), {"--width"}, 2);
  expect_error(run_program({"study", "width"}), {"width"}, 2);
}

// What every study has that trains the demonstration model: for each entry accuracies of its seeds.
void expect_trained(const nlohmann::json& entries, std::size_t count) {
  ASSERT_EQ(entries.size(), count);
  for (const nlohmann::json& entry : entries) {
    ASSERT_EQ(entry.at("seeds").size(), 2u);
    EXPECT_GT(entry.at("parameters").get<int>(), 1000);
    EXPECT_EQ(entry.at("seeds").at(1).at("seed").get<int>(), entry.at("seeds").at(0).at("seed").get<int>() + 1);
    for (const nlohmann::json& seed : entry.at("seeds")) {
      EXPECT_GT(seed.at("loss").get<double>(), 0);
      EXPECT_GE(seed.at("seconds").get<double>(), seed.at("seconds_per_step").get<double>());
      EXPECT_EQ(seed.at("steps_not_taken"), 0);
      ASSERT_EQ(seed.at("accuracy").size(), 7u);
      for (const nlohmann::json& share : seed.at("accuracy")) {
        EXPECT_GE(share.get<double>(), 0);
        EXPECT_LE(share.get<double>(), 1);
      }
    }
    const nlohmann::json& accuracy = entry.at("accuracy");
    EXPECT_LE(accuracy.at("least").get<double>(), accuracy.at("mean").get<double>() + 1e-12);
    EXPECT_LE(accuracy.at("mean").get<double>(), accuracy.at("most").get<double>() + 1e-12);
  }
}

TEST_F(Study, FULL_MergeTrainsEveryWayToPutHeadsTogether) {
  const Finished finished = run({"merge", "--steps", "2"});
  expect_caveat_below_chart();
  for (const char* words :
       {"weighted-by-input", "gated-by-element", "23,424", "FLOP a token", "Quick", "Half-learned"}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  const nlohmann::json merges = document_.at("merges");
  expect_trained(merges, 6);
  // Width 32 in four heads: W_O, and with a gate for each element as much again.
  EXPECT_EQ(merges.at(0).at("weights"), 32 * 32);
  EXPECT_EQ(merges.at(0).at("flops_per_token"), 2.0 * 32 * 32);
  EXPECT_EQ(merges.at(1).at("row_flops_per_token"), 32.0);
  EXPECT_EQ(merges.at(5).at("flops_per_token"), 4.0 * 32 * 32);
  // Another seed begins elsewhere; the same one trains the same model.
  const double second = merges.at(0).at("seeds").at(1).at("loss").get<double>();
  run({"merge", "--steps", "2", "--seed", "2"});
  EXPECT_EQ(document_.at("merges").at(0).at("seeds").at(0).at("seed"), 2);
  EXPECT_EQ(document_.at("merges").at(0).at("seeds").at(0).at("loss"), second);
  expect_error(run_program({"study", "merge", "--seed", "-1"}), {"--seed"}, 2);
}

TEST_F(Study, ActivationsTrainsInBothTypes) {
  const Finished finished = run({"activations", "--steps", "30"});
  expect_caveat_below_chart();
  for (const char* words : {"float32", "bfloat16", "2 to 3", "apart", "Kept: between the passes", "Half-learned"}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  const nlohmann::json types = document_.at("types");
  expect_trained(types, 2);
  EXPECT_LT(types.at(1).at("saved_bytes"), types.at(0).at("saved_bytes"));
  const nlohmann::json &floats = types.at(0).at("curve"), &narrow = types.at(1).at("curve");
  ASSERT_EQ(floats.size(), 20u);
  ASSERT_EQ(narrow.size(), 20u);
  EXPECT_EQ(floats.at(0).at("first_step"), 1);
  EXPECT_EQ(floats.at(19).at("last_step"), 30);
  // Before anything is learned the weights are the same, and the losses are off by the roundings of a forward pass.
  const double first = floats.at(0).at("loss").get<double>();
  EXPECT_NE(narrow.at(0).at("loss"), first);
  EXPECT_NEAR(narrow.at(0).at("loss").get<double>(), first, 0x1p-5 * first);
  EXPECT_LT(narrow.at(19).at("loss").get<double>(), first);
}

TEST_F(Study, FULL_DiversityAsksHeadsToDiffer) {
  const Finished finished = run({"diversity", "--steps", "30", "--layers", "1"});
  expect_caveat_below_chart();
  for (const char* words : {"subspaces of W_Q, W_K", "outputs: less CKA", "1 layer of width 32"}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  const nlohmann::json& runs = document_.at("asked_for");
  expect_trained(runs, 8);
  // Thirty steps do not find a relation, but part W_Q and W_K of heads.
  const auto overlap = [&](std::size_t run) {
    return runs.at(run).at("seeds").at(0).at("subspace_overlap").get<double>();
  };
  EXPECT_LT(overlap(1), overlap(0));
  EXPECT_LT(overlap(4), overlap(0));
  for (const std::size_t run : {std::size_t{2}, std::size_t{3}}) {
    EXPECT_GT(runs.at(run).at("weights").at("orthogonality"), 0);
    EXPECT_EQ(runs.at(run).at("orthogonal_start"), run == 3);
  }
  // And what asks for less CKA gets less.
  const auto cka = [&](std::size_t run) { return runs.at(run).at("cka").at("mean").get<double>(); };
  EXPECT_LT(cka(5), cka(0));
  EXPECT_LT(cka(7), cka(0));
}

TEST_F(Study, RelationsTrainsWithMoreAndMoreHeads) {
  const Finished finished = run({"relations", "--steps", "2"});
  expect_caveat_below_chart();
  for (const char* words : {"coreference", "neighbour", "8 heads", "1 layer of width 32"}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  const nlohmann::json& runs = document_.at("heads");
  expect_trained(runs, 4);
  for (const nlohmann::json& entry : runs) EXPECT_EQ(entry.at("parameters"), runs.at(0).at("parameters"));
  EXPECT_EQ(runs.at(0).at("seeds").at(0).at("cka"), nullptr);  // one head has no other
  expect_error(run_program({"study", "relations", "--width", "33"}), {"--width"}, 2);
}

}  // namespace headlight::test::study_test
