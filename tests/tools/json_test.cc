// JSON that the program puts together, held against the library that it is written by.
#include "tools/headlight/support/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/allocation_counter.h"

namespace headlight::program {
namespace json_test {

Json document() {
  Json all;
  all["nothing"] = nullptr;
  all["yes"] = true;
  all["least"] = std::numeric_limits<std::int64_t>::min();
  all["most"] = std::numeric_limits<std::uint64_t>::max();
  all["narrow"] = 0.1f;
  all["wide"] = 1e-300;
  all["whole"] = 3.0;
  all["text"] = "a \"quote\", a\nline, 机器人, \x01";
  all["list"] = std::vector<std::vector<int>>{{1, 2}, {}};
  all["empty"] = Json::list();
  all["object"] = {{"b", 1}, {"a", {{"deep", "er"}}}};
  all["pushed"].push_back({{"first", 1}});
  all["pushed"].back()["second"] = 2;
  return all;
}

nlohmann::ordered_json twin() {
  nlohmann::ordered_json all;
  all["nothing"] = nullptr;
  all["yes"] = true;
  all["least"] = std::numeric_limits<std::int64_t>::min();
  all["most"] = std::numeric_limits<std::uint64_t>::max();
  all["narrow"] = 0.1f;
  all["wide"] = 1e-300;
  all["whole"] = 3.0;
  all["text"] = "a \"quote\", a\nline, 机器人, \x01";
  all["list"] = std::vector<std::vector<int>>{{1, 2}, {}};
  all["empty"] = nlohmann::ordered_json::array();
  all["object"] = {{"b", 1}, {"a", {{"deep", "er"}}}};
  all["pushed"].push_back({{"first", 1}});
  all["pushed"].back()["second"] = 2;
  return all;
}

TEST(Json, IsWrittenAsTheLibraryWritesIt) {
  EXPECT_EQ(document().dump(), twin().dump());
  EXPECT_EQ(document().dump(1), twin().dump(1));
  EXPECT_EQ(document().dump(2), twin().dump(2));
}

TEST(Json, NumbersThatJsonDoesNotKnowAreNull) {
  const Json list =
      std::vector<double>{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  EXPECT_EQ(list.dump(), "[null,null]");
}

TEST(Json, ForScriptsHoldsNothingThatHtmlLooksFor) {
  const Json text = "</script>&机";
  EXPECT_EQ(text.dump_for_script(), R"("\u003c/script\u003e\u0026\u673a")");
}

TEST(Json, RefusesWhatIsNotUtf8) {
  EXPECT_THROW(static_cast<void>(Json("\xff").dump()), std::invalid_argument);
  EXPECT_FALSE(is_utf8("\xc3("));
  EXPECT_TRUE(is_utf8("é"));
}

TEST(Json, IsReadAsItWasWritten) {
  const auto read = Json::parse(document().dump(2));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->dump(), document().dump());
}

TEST(Json, GivesNumbersThatTheTypeHolds) {
  const auto read = Json::parse(R"({"n": -1, "big": 18446744073709551615, "half": 0.5, "text": "x", "n": 7})");
  ASSERT_TRUE(read && read->is_object());
  EXPECT_EQ(read->find("n")->number<std::int64_t>(), 7) << "of two members the last counts";
  EXPECT_EQ(read->find("big")->number<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(read->find("big")->number<std::int64_t>(), std::nullopt);
  EXPECT_EQ(read->find("half")->number<double>(), 0.5);
  EXPECT_EQ(read->find("half")->number<std::int64_t>(), std::nullopt);
  EXPECT_EQ(read->find("text")->number<double>(), std::nullopt);
  EXPECT_EQ(*read->find("text")->text(), "x");
  EXPECT_EQ(read->find("absent"), nullptr);
}

TEST(Json, RefusesTextThatIsNoneOrDeeperThanAStack) {
  for (const char* text : {"", "{", "[1,]", "{} x", "nul", "{\"a\":1,}"}) EXPECT_FALSE(Json::parse(text)) << text;
  EXPECT_TRUE(Json::parse(std::string(60, '[') + std::string(60, ']')));
  EXPECT_FALSE(Json::parse(std::string(1'000'000, '[') + std::string(1'000'000, ']')));
}

TEST(Json, ACopyForWhichThereIsNoMemoryLeavesNothing) {
  if (!test::AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  const Json all = document();
  const test::AllocationCounter counter;
  const Json whole = all;
  const std::int64_t allocations = counter.count();
  int refused = 0;
  for (std::int64_t granted = 0; granted < allocations; ++granted) {
    const test::AllocationLimit limit(granted);
    try {
      const Json copy = all;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
  }
  EXPECT_GE(allocations, 5);
  EXPECT_EQ(refused, allocations);
  EXPECT_EQ(all.dump(), whole.dump());
}

}  // namespace json_test
}  // namespace headlight::program
