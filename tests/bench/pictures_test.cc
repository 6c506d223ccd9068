#include "report/pictures.h"

#include <gtest/gtest.h>

#include "report/chart.h"

namespace headlight::bench::report::pictures_test {

// That tags close in the order in which they opened, and that no bare '<' or '&' is left.
void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = svg.find('<', at)) != std::string::npos;) {
    const std::size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
  for (std::size_t at = 0; (at = svg.find('&', at)) != std::string::npos; ++at)
    EXPECT_LT(svg.find(';', at) - at, 7u) << svg.substr(at, 20);
}

TEST(Pictures, Escape) {
  const std::string svg = bar_chart("<title> & \"more\"", {{"a<b", {{"headlight", 0.9}, {"</svg>", 1.2}}}});
  expect_well_formed(svg);
  EXPECT_NE(svg.find("&lt;title&gt; &amp; &quot;more&quot;"), std::string::npos);
  EXPECT_NE(svg.find("90 %"), std::string::npos);
  EXPECT_NE(svg.find("120 %"), std::string::npos);
}

TEST(Pictures, HoldNothingToo) {
  expect_well_formed(bar_chart("empty", {}));
  expect_well_formed(histogram_chart("empty", {}));
  expect_well_formed(histogram_chart("no calls", {{"none", {}}}));
  expect_well_formed(histogram_chart("one call", {{"one", {{1e-6, 1}}}}));
}

TEST(Pictures, OneForEachSuiteAndCaseOfLatency) {
  Measured measured;
  Row row;
  row.suite = "decode";
  row.name = "x";
  row.isa = "avx2";
  row.figures = {{"read_share", 0.8}, {"peak_share", 0.1}};
  row.peers = {{"BLIS", "1", 1, 1, 2.0}};
  measured.rows = {row};
  LatencyRow latency;
  latency.name = "a/b <c>";
  latency.beside = "nothing";
  latency.caches = "warm";
  latency.calls = 3;
  latency.buckets = {{1e-6, 2}, {1e-3, 1}};
  measured.latency = {latency, latency};
  const std::vector<Picture> pictures = pictures_of(measured);
  ASSERT_EQ(pictures.size(), 2u);
  EXPECT_EQ(pictures[0].file, "decode-1.svg");
  EXPECT_EQ(pictures[0].title, "decode: share of the read bandwidth, 1 thread, avx2");
  EXPECT_NE(pictures[0].svg.find("40 %"), std::string::npos);  // half as fast, half the share
  EXPECT_EQ(pictures[1].file, "latency-a-b--c--1.svg");
  for (const Picture& picture : pictures) expect_well_formed(picture.svg);
}

}  // namespace headlight::bench::report::pictures_test
