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
  const std::vector<JsonValue> list = value.array("b")->few_elements(3);
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
  const JsonValue inner = value.object("a")->array("b")->few_elements(1)[0];
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
  for (const std::string value : {"01",
                                  "1.",
                                  ".5",
                                  "+1",
                                  "-",
                                  "1e",
                                  "1e400",
                                  "-1E+309",
                                  "tru",
                                  "nulll",
                                  "\"\\x\"",
                                  "\"\\ud800\"",
                                  "\"\\ud800\\u0020\"",
                                  "\"\\udc00\"",
                                  "\"\n\"",
                                  "\"\xff\"",
                                  "\"\xed\xa0\x80\"",
                                  "[1,]",
                                  "{\"b\":1,}",
                                  "{1:2}",
                                  "\""}) {
    EXPECT_TRUE(contains(says("{\"a\":" + value + "}"), "is not valid JSON at its byte")) << value;
  }
}

TEST(JsonValue, GivesTextsAndNumbersAsTheyAreMeant) {
  const JsonValue value = parse(
      "\xEF\xBB\xBF {\"a\\u00e9\\\"\" : \"\\ud83d\\ude00\\/\\b\\u0000\" ,\n\"e\":[1e-400, -1E-400, -0, 0.1e1, "
      "-9223372036854775808,9223372036854775808] }");
  EXPECT_EQ(value.string("a\u00e9\""), std::string("\U0001F600/\b\0", 7));
  const std::vector<JsonValue> numbers = value.array("e")->few_elements(6);
  EXPECT_EQ(numbers[0].as_number(), 0.0);
  EXPECT_EQ(numbers[1].as_number(), 0.0);
  EXPECT_EQ(numbers[2].as_integer(), 0);
  EXPECT_EQ(numbers[2].described(), "0");
  EXPECT_EQ(numbers[3].as_integer(), std::nullopt);
  EXPECT_EQ(numbers[3].as_number(), 1.0);
  EXPECT_EQ(numbers[4].as_integer(), INT64_MIN);
  EXPECT_EQ(numbers[5].as_integer(), std::nullopt);
  EXPECT_EQ(numbers[5].as_number(), 9223372036854775808.0);
  EXPECT_EQ(numbers[5].place(), "e[5]");
  EXPECT_EQ(value.array("e")->few_elements(2).size(), 3u);
}

// Whose end is found without going through them.
TEST(JsonValue, GoesThroughLongValues) {
  std::string text = "{";
  for (int n = 0; n < 20; ++n) {
    const std::string deep =
        "[[\"" + std::string(static_cast<std::size_t>(1000 * n), 'x') + "\"], {\"b\": " + std::to_string(n) + "}]";
    text += (n == 0 ? "\"" : ",\"") + std::to_string(n) + "\":" + deep;
  }
  const JsonValue value = parse(text + "}");
  std::int64_t number = 0;
  for (const auto& [key, list] : value.members()) {
    EXPECT_EQ(key, std::to_string(number));
    const std::vector<JsonValue> both = list.few_elements(2);
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(both[0].few_elements(1)[0].as_string()->size(), static_cast<std::size_t>(1000 * number));
    EXPECT_EQ(both[1].integer("b"), number);
    EXPECT_EQ(both[1].find("b")->place(), std::to_string(number) + "[1].b");
    ++number;
  }
  EXPECT_EQ(number, 20);
  EXPECT_EQ(value.integer("20"), std::nullopt);
}

}  // namespace headlight::models::json_value_test
