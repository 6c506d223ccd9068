// The table that headlight heads prints, of numbers that are given.
#include <gtest/gtest.h>

#include <string>

#include "tools/headlight/heads/heads.h"

namespace headlight::test::heads_summary_test {

// Whatever the longest name in it, the columns of what heads look at stand apart. Terms are those that the report has.
TEST(HeadsSummary, ColumnsStandApart) {
  program::HeadsReport report;
  report.layers = report.heads = 1;
  report.head_dim = report.merged_width = 4;
  report.texts = report.tokens = report.rows = 100;
  analysis::HeadAttention& head = report.attention.emplace_back();
  head.rows = 100;
  head.entropy = head.confidence = head.distance = 0.5;
  head.peaks_previous = head.peaks_next = head.peaks_itself = head.peaks_first = head.peaks_separator = 0.0;
  head.weight_first = head.weight_separators = 0.45;
  head.weight_local = head.even_no_op = head.even_local = 0.1;
  report.cka.resize(1);
  report.by_layer.resize(1);
  report.by_layer[0].query_overlap.resize(1);
  report.by_layer[0].key_overlap.resize(1);
  const std::string text = program::heads_summary("x", report, nullptr);
  EXPECT_NE(text.find("\n  [CLS] and [SEP], at no word: no-op  0.0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  nothing in particular               0 heads\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  no-op            80 % of the weight"), std::string::npos) << text;
  EXPECT_EQ(text.find("(94 %)"), std::string::npos) << text;

  report.attention[0].weight_first = report.attention[0].weight_separators = 0.1;
  report.relations.push_back({.weights = {0.75}});
  const std::string other = program::heads_summary("x", report, nullptr);
  EXPECT_EQ(other.find("no-op"), std::string::npos) << other;
  EXPECT_NE(other.find("0.0 (75 %)\n"), std::string::npos) << other;
  EXPECT_NE(other.find("\n  (94 %)           mean weight that the word left of the colon"), std::string::npos) << other;
}

}  // namespace headlight::test::heads_summary_test
