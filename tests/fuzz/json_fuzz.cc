// A JSON file of any bytes: refused by a FileError exactly where another parser refuses it, or where it nests deep or
// repeats a key; else its values are those that the other parser finds. Reading it takes no more memory than twice the
// file.
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "files/json_value.h"
#include "fuzz/bytes.h"
#include "headlight/models/errors.h"
#include "support/heap_watch.h"

namespace headlight::fuzz::json_fuzz {
namespace {

using files::JsonValue;
using Json = nlohmann::json;

void check_number(const JsonValue& value, const Json& other) {
  const auto integer = value.as_integer();
  const bool fits =
      other.is_number_integer() && !(other.is_number_unsigned() && other.get<std::uint64_t>() > INT64_MAX);
  must(integer.has_value() == fits && (!fits || *integer == other.get<std::int64_t>()), "the same integer");
  must(value.as_number() == other.get<double>(), "the same number");
}

void check_same(const JsonValue& value, const Json& other) {
  must(value.is_null() == other.is_null() && value.is_object() == other.is_object() &&
           value.is_array() == other.is_array() && value.as_boolean().has_value() == other.is_boolean() &&
           value.as_string().has_value() == other.is_string() && value.as_number().has_value() == other.is_number(),
       "the same kind");
  if (other.is_boolean()) must(value.as_boolean() == other.get<bool>(), "the same truth value");
  if (other.is_string()) must(*value.as_string() == other.get_ref<const std::string&>(), "the same text");
  if (other.is_number()) check_number(value, other);
  must(value.elements().size() == (other.is_array() ? other.size() : 0), "as many elements");
  must(value.members().size() == (other.is_object() ? other.size() : 0), "as many members");
  std::size_t number = 0;
  for (const JsonValue& element : value.elements()) {
    must(element.place().ends_with("[" + std::to_string(number) + "]"), "an element's place");
    check_same(element, other[number++]);
  }
  for (const auto& [key, member] : value.members()) {
    must(value.contains(key), "a member is found");
    check_same(member, other.at(std::string(key)));
  }
}

std::optional<JsonValue> read(const std::string& text, bool& may_refuse) {
  try {
    const test::HeapLimit limit(2 * text.size() + kFewBytes);
    return JsonValue::parse_object("fuzz", text);
  } catch (const models::FileError& error) {
    const std::string_view message = error.what();
    may_refuse = message.find("nests deeper") != std::string_view::npos ||
                 message.find("twice") != std::string_view::npos ||
                 message.find("no JSON object") != std::string_view::npos;
    return std::nullopt;
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  bool may_refuse = false;
  const auto value = read(text, may_refuse);
  // The other parser takes a zero byte for the end.
  const Json other =
      text.find('\0') != std::string::npos ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
  if (!value) {
    must(other.is_discarded() || may_refuse, "what is refused is no JSON");
    return;
  }
  must(!other.is_discarded(), "what is read is JSON");
  check_same(*value, other);
}

}  // namespace headlight::fuzz::json_fuzz
