#include <gtest/gtest.h>

#include "report/json_report.h"
#include "report/losses.h"
#include "report/text.h"

namespace headlight::bench::report::report_test {

using nlohmann::json;

json suite_file() {
  return json::parse(R"({
    "context": {"date": "2026-01-02", "cpu_name": "A|B <cpu>", "l2_bytes": "2097152", "host_name": "secret",
                "load_avg": [0.5]},
    "benchmarks": [
      {"name": "gemm/packed/8x8x8/avx512/threads:1/iterations:1/manual_time", "iterations": 1, "real_time": 1.0,
       "seconds_best": 1e-6, "seconds_median": 2e-6, "gflops_best": 200.0, "peak_share": 0.9,
       "peer|OpenBLAS|0.3 X|ratio": 0.5, "peer|OpenBLAS|0.3 X|seconds_best": 2e-6,
       "peer|OpenBLAS|0.3 X|seconds_median": 4e-6, "peer|oneDNN|2.6|ratio": 1.25,
       "peer|oneDNN|2.6|seconds_best": 0.8e-6, "peer|oneDNN|2.6|seconds_median": 1.6e-6},
      {"name": "gemm/packed/8x8x8/avx512/threads:2/iterations:1/manual_time", "error_occurred": true,
       "error_message": "the result is not the reference's", "seconds_best": 0.0}
    ]})");
}

Measured measured() {
  Measured all;
  add_suite(suite_file(), all);
  return all;
}

TEST(Report, ReadsASuite) {
  const Measured all = measured();
  ASSERT_EQ(all.rows.size(), 2u);
  const Row& row = all.rows[0];
  EXPECT_EQ(row.suite, "gemm");
  EXPECT_EQ(row.name, "packed/8x8x8");
  EXPECT_EQ(row.isa, "avx512");
  EXPECT_EQ(row.threads, 1);
  EXPECT_EQ(row.figure("peak_share"), 0.9);
  EXPECT_FALSE(row.figures.contains("real_time"));
  ASSERT_EQ(row.peers.size(), 2u);
  EXPECT_EQ(row.peers[0].name, "oneDNN");  // the strongest first
  EXPECT_EQ(row.peers[0].speed, 0.8);
  EXPECT_EQ(row.peers[1].version, "0.3 X");
  EXPECT_EQ(row.peers[1].speed, 2);
  EXPECT_EQ(all.rows[1].error, "the result is not the reference's");
  EXPECT_FALSE(all.context.contains("host_name"));
}

TEST(Report, AddsPeersToTheirRows) {
  Measured all = measured();
  add_peers(json::parse(R"([
    {"suite": "gemm", "case": "packed/8x8x8", "peer": "headlight", "version": "0", "threads": 1, "seconds_best": 1e-6,
     "seconds_median": 2e-6, "ours_seconds_best": 1e-6, "ours_seconds_median": 2e-6},
    {"suite": "gemm", "case": "packed/8x8x8", "peer": "PyTorch", "version": "2", "threads": 1, "seconds_best": 1e-6,
     "seconds_median": 3e-6, "ours_seconds_best": 1e-6, "ours_seconds_median": 2e-6},
    {"suite": "other", "case": "alone", "peer": "PyTorch", "version": "2", "threads": 2, "seconds_best": 1,
     "seconds_median": 2, "ours_seconds_best": 3, "ours_seconds_median": 4}])"),
            all);
  ASSERT_EQ(all.rows.size(), 3u);
  ASSERT_EQ(all.rows[0].peers.size(), 3u);
  EXPECT_EQ(all.rows[0].peers[1].name, "PyTorch");
  EXPECT_EQ(all.rows[0].peers[1].speed, 1.5);
  EXPECT_EQ(all.rows[2].full_name(), "other/alone");
  EXPECT_EQ(all.rows[2].figure("seconds_median"), 4);
}

TEST(Report, ComparesBuildsByShares) {
  Measured all = measured();
  json other = suite_file();
  other["benchmarks"][0]["peak_share"] = 0.36;
  add_build("headlight over xsimd", suite_file(), other, all);
  // The second turn came when both were slower.
  json slow = suite_file();
  slow["benchmarks"][0]["peak_share"] = 0.54;
  add_build("headlight over xsimd", slow, other, all);
  ASSERT_EQ(all.rows[0].peers.size(), 3u);
  EXPECT_EQ(all.rows[0].peers[2].name, "headlight over xsimd");
  EXPECT_EQ(all.rows[0].peers[2].speed, 2);
  EXPECT_TRUE(all.rows[1].peers.empty());
  const std::vector<BuildComparison> builds = build_comparisons(all);
  ASSERT_EQ(builds.size(), 1u);
  EXPECT_EQ(builds[0].rows, 1u);
  EXPECT_EQ(builds[0].median, 2);
  ASSERT_EQ(builds[0].differing.size(), 1u);
  EXPECT_EQ(builds[0].differing[0].row, &all.rows[0]);

  // Faster than this build by far, and no loss to anybody.
  all.rows[0].peers[2].speed = 0.1;
  ASSERT_EQ(losses_of(all).size(), 1u);
  EXPECT_EQ(losses_of(all)[0].peer->name, "oneDNN");
  EXPECT_NE(markdown_page(PageInput{all}).find("| gemm/packed/8x8x8/avx512 | 1 | 0.10× |"), std::string::npos);
}

TEST(Report, RefusesOtherFiles) {
  Measured all;
  EXPECT_THROW(add_suite(json::parse(R"({"context": {}})"), all), std::runtime_error);
  EXPECT_THROW(add_suite(json::parse(R"({"context": {}, "benchmarks": [{"name": "nonsense"}]})"), all),
               std::runtime_error);
  EXPECT_THROW(add_latency(json::parse(R"({"latency": [{"case": 3}]})"), all), std::runtime_error);
  EXPECT_THROW(add_peers(json::parse(R"([{"suite": "gemm"}])"), all), std::runtime_error);
}

TEST(Report, LosesWhereSomebodyIsFaster) {
  const Measured all = measured();
  const std::vector<Loss> losses = losses_of(all);
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].peer->name, "oneDNN");
}

TEST(Report, NamesTheNearerLimit) {
  Measured all = measured();
  all.rows[0].figures["read_share"] = 0.2;
  EXPECT_NE(markdown_page(PageInput{all}).find("| 90.0 % of peak | 112.5 % of peak |"), std::string::npos);
  all.rows[0].figures["read_share"] = 0.96;
  EXPECT_NE(markdown_page(PageInput{all}).find("| 96.0 % of reading | 120.0 % of reading |"), std::string::npos);
}

TEST(Report, GoalsAreHeldAgainstRows) {
  const Measured all = measured();
  const json goals = json::parse(R"([{"cases": ["gemm/packed/8x8x8", "gemm/absent"],
    "one": {"peak_share": 0.95, "seconds": 3e-6, "against": {"OpenBLAS": 1.1, "*": 1.0, "absent": 2.0}}}])");
  const std::vector<GoalResult> results = goal_results(goals, all);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].wanted, "≥ 95 % of peak");
  EXPECT_EQ(results[0].reached, "90.0 %");
  EXPECT_FALSE(results[0].met);
  EXPECT_TRUE(results[1].met);  // seconds
  EXPECT_EQ(results[2].wanted, "≥ 1.00× oneDNN");
  EXPECT_FALSE(results[2].met);
  EXPECT_TRUE(results[3].met);  // OpenBLAS
  json either = goals;
  either[0]["one"]["either"] = true;
  for (const GoalResult& result : goal_results(either, all)) EXPECT_TRUE(result.met);
}

TEST(Report, GoalsOfThreadsAndLesserInstructionSets) {
  Measured all = measured();
  all.rows[1].figures = {{"seconds_median", 2.5e-6}, {"busy_share", 0.002}};
  all.rows.push_back(all.rows[0]);
  all.rows[2].isa = "avx2";
  all.rows[2].figures["peak_share"] = 0.885;
  const json goals = json::parse(R"([{"cases": ["gemm/packed/8x8x8"], "one": {"peak_share": 0.95, "seconds": 3e-6},
    "all": {"speedup": 0.95, "busy_share": 0.001}}])");
  const std::vector<GoalResult> results = goal_results(goals, all);
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[2].wanted, "≥ 0.95× one thread");
  EXPECT_EQ(results[2].reached, "0.80×");
  EXPECT_FALSE(results[2].met);
  EXPECT_EQ(results[3].wanted, "≤ 0.1 % of a core");
  EXPECT_FALSE(results[3].met);
  EXPECT_EQ(results[4].row->isa, "avx2");
  EXPECT_EQ(results[4].wanted, "≥ 89 % of peak");  // and no seconds
  EXPECT_FALSE(results[4].met);
}

TEST(Report, WritesThePage) {
  Measured all = measured();
  add_latency(json::parse(R"({"latency": [{"case": "a/b", "isa": "avx2", "threads": 1, "beside": "nothing",
    "caches": "warm", "calls": 2000, "p50": 1e-6, "p99": 2e-6, "p999": 5e-6, "max": 1e-3, "buckets": [[1e-6, 2000]]},
    {"case": "a/c", "isa": "avx2", "threads": 1, "beside": "nothing", "caches": "cold, swept", "calls": 900,
    "ended_after_seconds": 15, "p50": 1e-3, "p99": 2e-3, "p999": 5e-3, "max": 1e-2, "buckets": [[1e-3, 900]]}]})"),
              all);
  PageInput input{all};
  input.reasons = {{"gemm", "packing"}, {"gemm/packed", "tiles"}};
  input.charts = {{"gemm: shares", "gemm-1.svg"}};
  const std::string page = markdown_page(input);
  const auto has = [&](const std::string& text) { return page.find(text) != std::string::npos; };
  EXPECT_TRUE(has("| processor | A\\|B &lt;cpu&gt; |\n")) << page;
  EXPECT_TRUE(has("| level 2 cache | 2 MiB |\n")) << page;
  EXPECT_FALSE(has("secret"));
  EXPECT_TRUE(
      has("| case | threads | against | headlight takes | headlight | the other | why |\n"
          "| --- | --- | --- | --- | --- | --- | --- |\n"
          "| gemm/packed/8x8x8/avx512 | 1 | oneDNN 2.6 | 1.25× | 90.0 % of peak | 112.5 % of peak | tiles |\n"))
      << page;
  EXPECT_TRUE(
      has("## gemm, avx512\n\n"
          "| case | threads | best | median | GFLOP/s | of peak | times as fast as |\n"
          "| --- | --- | --- | --- | --- | --- | --- |\n"
          "| packed/8x8x8 | 1 | 1.00 µs | 2.00 µs | 200.0 | 90.0 % | 0.80× oneDNN, 2.00× OpenBLAS |\n"
          "| packed/8x8x8 | 2 |  |  |  |  | **the result is not the reference's** |\n"
          "\n![gemm: shares](gemm-1.svg)\n"))
      << page;
  // 2,000 calls say something about one in a hundred, nothing about one in a thousand.
  EXPECT_TRUE(has("| a/b | 1 | nothing | warm | 2000 | 1.00 µs | 2.00 µs | 1.00 ms |\n")) << page;
  EXPECT_TRUE(has("| a/c | 1 | nothing | cold, swept | 900 (15 s) | 1.00 ms | – | 10.0 ms |\n")) << page;
}

TEST(Report, WritesJson) {
  const Measured all = measured();
  const json report = json_report({all});
  EXPECT_EQ(report.at("rows").size(), 2u);
  EXPECT_EQ(report.at("rows")[0].at("peers")[1].at("speed"), 2);
  EXPECT_EQ(report.at("losses")[0].at("headlight_takes"), 1.25);
  EXPECT_EQ(report.at("rows")[1].at("error"), "the result is not the reference's");
}

TEST(Text, FitsTheNumber) {
  EXPECT_EQ(time_text(117e-9), "117 ns");
  EXPECT_EQ(time_text(5.016e-6), "5.02 µs");
  EXPECT_EQ(time_text(0.0251), "25.1 ms");
  EXPECT_EQ(time_text(2), "2.00 s");
  EXPECT_EQ(percent_text(0.8768), "87.7 %");
  EXPECT_EQ(percent_text(0), "–");
  EXPECT_EQ(bytes_text(49152), "48 KiB");
  EXPECT_EQ(bytes_text(100), "100 B");
}

TEST(Text, Escapes) {
  EXPECT_EQ(markdown_cell("a|b\nc"), "a\\|b c");
  EXPECT_EQ(markdown_cell("<b>*x*</b> & `y`"), "&lt;b&gt;\\*x\\*&lt;/b&gt; &amp; \\`y\\`");
  EXPECT_EQ(markdown_cell("by_head _x_"), "by_head \\_x\\_");
  EXPECT_EQ(xml_text("<a b=\"c\">'&\x01"), "&lt;a b=&quot;c&quot;&gt;&#39;&amp;?");
}

}  // namespace headlight::bench::report::report_test
