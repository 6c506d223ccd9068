// headlight study memory: foretold, and run in child processes.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/sanitizer.h"
#include "tools/program.h"
#include "tools/well_formed.h"

namespace headlight::test::study_memory_test {

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return (std::ostringstream() << file.rdbuf()).str();
}

TEST(StudyMemory, ForetellsWithoutRunning) {
  const Finished finished = run_program({"study", "memory", "--threads", "1", "--over-out"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  for (const char* words : {"1 GiB", "unfused", "recomputing", "dq over out", "8 L²", "L = 1,000", "100,000"}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  EXPECT_EQ(finished.error, "");
}

// The promise of recomputing, by the ledger: 80 times as long for heads of 32, 95 with dq over out, 40 for 64.
TEST(StudyMemory, RecomputingTakesLongerSequences) {
  const auto ratio_of = [](const char* head_dim, std::size_t method) {
    const Finished finished =
        run_program({"study", "memory", "--threads", "1", "--over-out", "--head-dim", head_dim, "--json", "-"});
    const auto methods = nlohmann::json::parse(finished.out).at("methods");
    return methods.at(method).at("longest_foretold").get<double>() / methods.at(0).at("longest_foretold").get<double>();
  };
  EXPECT_GE(ratio_of("32", 1), 80);
  EXPECT_GE(ratio_of("32", 2), 95);
  EXPECT_GE(ratio_of("64", 1), 40);
}

// --quick chooses a budget only where nobody else does.
TEST(StudyMemory, AQuickStudyKeepsTheBudget) {
  const auto heading = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"study", "memory", "--quick"});
    const std::string out = run_program(more).out;
    return out.substr(0, out.find('\n'));
  };
  EXPECT_NE(heading({}).find("in 32 MiB (--quick"), std::string::npos) << heading({});
  const std::string large = heading({"--budget", "2GiB"});
  EXPECT_NE(large.find("in 2 GiB (--quick"), std::string::npos) << large;
}

// Within 5 % or 4 MiB of what processes then hold, for every length that fits.
TEST(StudyMemory, ResidentMemoryIsWhatWasForetold) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's memory is resident too";
  const ScratchFolder folder;
  // 1,000 positions take 9 MiB by the unfused method, which leaves 15 for the program itself.
  const Finished finished = run_program({"study", "memory", "--quick", "--measure", "--budget", "24MiB", "--threads",
                                         "2", "--json", folder / "memory.json", "--svg", folder / "memory.svg"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_NE(finished.out.find("--quick"), std::string::npos);
  EXPECT_NE(finished.out.find("≈"), std::string::npos) << finished.out;
  EXPECT_TRUE(is_well_formed(content_of(folder / "memory.svg")));
  const nlohmann::json study = nlohmann::json::parse(content_of(folder / "memory.json"));
  ASSERT_EQ(study.at("methods").size(), 2u);
  int measured = 0;
  for (const nlohmann::json& method : study.at("methods")) {
    std::vector<nlohmann::json> points = method.at("lengths");
    points.push_back(method.at("longest"));
    for (const nlohmann::json& point : points) {
      if (!point.contains("measured")) continue;
      ++measured;
      const double told = point.at("bytes").at("all"), peak = point.at("measured").at("peak");
      EXPECT_LE(std::abs(told - peak), std::max(0.05 * peak, 4.0 * (1 << 20))) << point;
    }
    // 1,000 positions were run; 100,000 get the seconds of the longest run times their operations.
    const nlohmann::json &few = method.at("told").at(0), &many = method.at("told").at(1);
    ASSERT_TRUE(few.contains("measured")) << method;
    ASSERT_TRUE(method.at("longest").contains("measured")) << method;
    EXPECT_LE(method.at("longest").at("measured").at("peak").get<double>(), 24 << 20);
    EXPECT_GT(few.at("measured").at("seconds").get<double>(), 0);
    EXPECT_FALSE(few.contains("seconds_extrapolated"));
    EXPECT_FALSE(many.contains("measured"));
    const nlohmann::json* longest = &method.at("longest");
    for (const nlohmann::json& point : method.at("lengths")) {
      if (point.contains("measured") && point.at("length") > longest->at("length")) longest = &point;
    }
    EXPECT_NEAR(many.at("seconds_extrapolated").get<double>() / longest->at("measured").at("seconds").get<double>(),
                many.at("flops").get<double>() / longest->at("flops").get<double>(),
                1e-6 * many.at("flops").get<double>() / longest->at("flops").get<double>());
  }
  EXPECT_GE(measured, 6);
}

TEST(StudyMemory, WrongUsage) {
  for (const char* budget : {"", "GiB", "-1GiB", "0", "1", "1.5GiB", "1GB", "65TiB", "99999999999999999999"}) {
    expect_error(run_program({"study", "memory", "--budget", budget}), {"--budget"}, 2);
  }
  for (const char* option : {"--heads", "--head-dim"}) {
    for (const char* count : {"0", "-1", "1025", "two"}) {
      expect_error(run_program({"study", "memory", option, count}), {option}, 2);
    }
  }
  // Less than the program itself: nothing fits, and the table says so.
  EXPECT_NE(run_program({"study", "memory", "--quick", "--measure", "--budget", "1MiB"}).out.find("none"),
            std::string::npos);
}

}  // namespace headlight::test::study_memory_test
