#include "files/json_value.h"

#include <gtest/gtest.h>

#include <string>

#include "models/scratch_folder.h"

namespace headlight::models::json_value_test {

using files::JsonValue;
using test::contains;
using test::file_error;

JsonValue parse(const std::string& text) { return JsonValue::parse_object("f.json", text); }

TEST(JsonValue, GivesWhatIsThere) {
  const JsonValue value =
      parse(R"({"a": 1, "b": [true, {"c": "x\u00e9"}, []], "n": null, "d": 2.5, "e": 18446744073709551615})");
  EXPECT_EQ(value.integer("a"), 1);
  EXPECT_EQ(value.number("a"), 1.0);
  EXPECT_EQ(value.number("d"), 2.5);
  EXPECT_EQ(value.number("e"), 18446744073709551615.0);
  EXPECT_EQ(value.integer("n"), std::nullopt);
  EXPECT_TRUE(value.contains("n"));
  EXPECT_FALSE(value.contains("z"));
  EXPECT_EQ(value.members().size(), 5u);
  const std::vector<JsonValue> list = value.array("b")->elements();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].as_boolean(), true);
  EXPECT_EQ(list[1].string("c"), "x\u00e9");
  EXPECT_EQ(list[1].find("c")->place(), "b[1].c");
  EXPECT_EQ(list[2].described(), "[]");
  EXPECT_EQ(list[1].described(), "an object");
  EXPECT_EQ(JsonValue::parse_array("f", "[1, 2]").elements().size(), 2u);
}

TEST(JsonValue, NamesFileAndPlace) {
  const JsonValue value = parse(R"({"a": {"b": [{"c": "x"}]}})");
  const JsonValue inner = value.object("a")->array("b")->elements()[0];
  EXPECT_EQ(file_error([&] { (void)inner.integer("c"); }), "f.json: a.b[0].c is no integer of 64 bits");
  EXPECT_EQ(file_error([&] { (void)inner.boolean("c"); }), "f.json: a.b[0].c is neither true nor false");
  EXPECT_EQ(file_error([&] { (void)inner.number("c"); }), "f.json: a.b[0].c is no number");
  EXPECT_EQ(file_error([&] { (void)inner.object("c"); }), "f.json: a.b[0].c is no object");
  EXPECT_EQ(file_error([&] { (void)inner.array("c"); }), "f.json: a.b[0].c is no list");
  EXPECT_EQ(file_error([&] { (void)value.string("a"); }), "f.json: a is no text");
  EXPECT_EQ(file_error([&] { inner.fail("d", "is missing"); }), "f.json: a.b[0].d is missing");
}

TEST(JsonValue, RefusesWhatIsNoSuchDocument) {
  const auto says = [](const std::string& text) { return file_error([&] { (void)parse(text); }); };
  EXPECT_TRUE(contains(says("{"), "is not valid JSON at its byte"));
  EXPECT_TRUE(contains(says("[]"), "is no JSON object"));
  EXPECT_TRUE(contains(says(R"({"a": {"b": 1, "c": 2, "b": 3}})"), "holds the key 'b' twice"));
  EXPECT_TRUE(contains(says("{\"a\":" + std::string(1'000'000, '[')), "nests deeper than 64"));
  EXPECT_TRUE(contains(says(std::string("{}\0", 3)), "holds a zero byte"));
  EXPECT_TRUE(contains(file_error([] { (void)JsonValue::parse_array("f", "{}"); }), "is no JSON array"));
  std::string many = "{\"a\":[0";
  for (int n = 0; n < (1 << 22); ++n) many += ",0";
  EXPECT_TRUE(contains(says(many + "]}"), "has more than 4194304 values"));
}

}  // namespace headlight::models::json_value_test
