#include "files/json_value.h"

#include "files/compact_json.h"
#include "files/json_number.h"
#include "headlight/models/errors.h"

namespace headlight::files {

using models::FileError;
using models::in_quotes;
using models::printable;

struct JsonValue::Document {
  std::string path;
  CompactJson json;
};

JsonValue JsonValue::parse(const std::string& path, std::string text) {
  if (text.size() > kLargestFile) {
    throw FileError(path,
                    "has " + std::to_string(text.size()) + " bytes, expected at most " + std::to_string(kLargestFile));
  }
  if (text.find('\0') != std::string::npos) throw FileError(path, "holds a zero byte");
  CompactJson json(path, std::move(text));
  return {std::make_shared<const Document>(Document{path, std::move(json)}), 0};
}

JsonValue JsonValue::parse_object(const std::string& path, std::string text) {
  JsonValue value = parse(path, std::move(text));
  if (!value.is_object()) throw FileError(path, "is no JSON object");
  return value;
}

JsonValue JsonValue::parse_array(const std::string& path, std::string text) {
  JsonValue value = parse(path, std::move(text));
  if (!value.is_array()) throw FileError(path, "is no JSON array");
  return value;
}

char JsonValue::kind() const noexcept { return document_->json.text()[at_]; }

std::string_view JsonValue::spelt() const noexcept {
  return std::string_view(document_->json.text()).substr(at_, document_->json.end_of(at_) - at_);
}

std::uint32_t JsonValue::first_child() const noexcept {
  const std::string& text = document_->json.text();
  const char first = text[std::size_t{at_} + 1];
  if (first == ']' || first == '}') return 0;
  return is_array() ? at_ + 1 : document_->json.end_of(at_ + 1);
}

std::uint32_t JsonValue::child_behind(std::uint32_t child) const noexcept {
  const std::uint32_t end = document_->json.end_of(child);
  if (document_->json.text()[end] != ',') return 0;
  return is_array() ? end + 1 : document_->json.end_of(end + 1);
}

// It lies right before the value, and no byte of it is one that begins a string.
std::string_view JsonValue::key_of(std::uint32_t child) const noexcept {
  const std::string_view before = std::string_view(document_->json.text()).substr(0, child - 1);
  return before.substr(before.rfind(CompactJson::kStringBegin) + 1);
}

std::uint32_t JsonValue::child_of(std::string_view key) const noexcept {
  if (!is_object()) return 0;
  std::uint32_t child = first_child();
  while (child != 0 && key_of(child) != key) child = child_behind(child);
  return child;
}

bool JsonValue::contains(std::string_view key) const { return child_of(key) != 0; }

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  const std::uint32_t child = child_of(key);
  if (child == 0) return std::nullopt;
  JsonValue value(document_, child);
  return value.is_null() ? std::nullopt : std::optional(std::move(value));
}

std::optional<std::int64_t> JsonValue::integer(std::string_view key) const {
  const auto value = find(key);
  if (value && !value->as_integer()) value->fail("is no integer of 64 bits");
  return value ? value->as_integer() : std::nullopt;
}

std::optional<double> JsonValue::number(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  if (const auto number = value->as_number()) return number;
  value->fail("is no number");
}

std::optional<bool> JsonValue::boolean(std::string_view key) const {
  const auto value = find(key);
  if (value && !value->as_boolean()) value->fail("is neither true nor false");
  return value ? value->as_boolean() : std::nullopt;
}

std::optional<std::string> JsonValue::string(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  if (const auto text = value->as_string()) return std::string(*text);
  value->fail("is no text");
}

std::optional<JsonValue> JsonValue::object(std::string_view key) const {
  auto value = find(key);
  if (value && !value->is_object()) value->fail("is no object");
  return value;
}

std::optional<JsonValue> JsonValue::array(std::string_view key) const {
  auto value = find(key);
  if (value && !value->is_array()) value->fail("is no list");
  return value;
}

JsonChildren<JsonValue::Member> JsonValue::members() const { return {*this, is_object() ? first_child() : 0}; }
JsonChildren<JsonValue> JsonValue::elements() const { return {*this, is_array() ? first_child() : 0}; }

std::vector<JsonValue> JsonValue::few_elements(std::size_t most) const {
  std::vector<JsonValue> few;
  for (JsonValue element : elements()) {
    if (few.size() > most) break;
    few.push_back(std::move(element));
  }
  return few;
}

bool JsonValue::is_null() const noexcept { return kind() == 'n'; }
bool JsonValue::is_object() const noexcept { return kind() == '{'; }
bool JsonValue::is_array() const noexcept { return kind() == '['; }

std::optional<std::int64_t> JsonValue::as_integer() const noexcept {
  return is_number() ? integer_of(spelt()) : std::nullopt;
}

std::optional<double> JsonValue::as_number() const noexcept {
  return is_number() ? std::optional(number_of(spelt())) : std::nullopt;
}

std::optional<bool> JsonValue::as_boolean() const noexcept {
  return kind() == 't' || kind() == 'f' ? std::optional(kind() == 't') : std::nullopt;
}

std::optional<std::string_view> JsonValue::as_string() const noexcept {
  return kind() == CompactJson::kStringBegin ? std::optional(document_->json.string_at(at_)) : std::nullopt;
}

std::string JsonValue::described() const {
  switch (kind()) {
    case 'n':
      return "null";
    case 't':
      return "true";
    case 'f':
      return "false";
    case CompactJson::kStringBegin:
      return in_quotes(*as_string());
    case '[':
      return first_child() == 0 ? "[]" : "a list";
    case '{':
      return first_child() == 0 ? "{}" : "an object";
    default:
      const auto integer = as_integer();
      return integer ? std::to_string(*integer) : std::to_string(*as_number());
  }
}

const std::string& JsonValue::path() const noexcept { return document_->path; }
std::size_t JsonValue::file_bytes() const noexcept { return document_->json.file_bytes(); }
std::size_t JsonValue::memory() const noexcept { return document_->json.memory(); }

std::string JsonValue::place() const {
  std::string place;
  for (JsonValue around(document_, 0); around.at_ != at_;) {
    // The child that begins last of those that do not begin behind this value.
    std::uint32_t child = around.first_child(), number = 0;
    for (std::uint32_t next = child; next != 0 && next <= at_; next = around.child_behind(next)) {
      if (next != child) ++number;
      child = next;
    }
    if (around.is_array()) {
      place.append("[").append(std::to_string(number)) += ']';
    } else {
      if (!place.empty()) place += '.';
      place += printable(around.key_of(child));
    }
    around.at_ = child;
  }
  return place;
}

std::string JsonValue::place_of(std::string_view key) const {
  const std::string where = place();
  return (where.empty() ? where : where + ".") + printable(key);
}

void JsonValue::fail(const std::string& message) const {
  const std::string where = place();
  throw FileError(path(), where.empty() ? message : where + " " + message);
}

void JsonValue::fail(std::string_view key, const std::string& message) const {
  throw FileError(path(), place_of(key) + " " + message);
}

}  // namespace headlight::files
