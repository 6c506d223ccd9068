#include "text/parts.h"

#include <algorithm>
#include <stdexcept>

#include "headlight/models/errors.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

constexpr std::size_t kMostParts = 64;
// No published tokenizer makes more of a text.
constexpr std::size_t kMostGrowth = 64;
constexpr std::size_t kFewBytes = 4096;

struct Counts {
  std::size_t parts = 0, writers = 0;
};

void count(const JsonValue& part, Counts& counts) {
  const auto type = part.string("type");
  counts.writers += type == "ByteLevel" || type == "Metaspace" ? 1 : 0;
  if (++counts.parts > kMostParts) part.fail("is one of more than " + std::to_string(kMostParts) + " parts");
  for (const char* const key : {"normalizers", "pretokenizers", "decoders", "processors"}) {
    const auto list = part.array(key);
    if (!list) continue;
    for (const JsonValue& one : list->elements()) count(one, counts);
  }
}

}  // namespace

std::string type_of(const JsonValue& part) {
  auto type = part.string("type");
  if (!type) part.fail("type", "is missing");
  return *std::move(type);
}

std::string type_of_model(const JsonValue& model) {
  const std::string type = model.string("type").value_or("");
  if (!type.empty()) return type;
  const auto vocabulary = model.find("vocab");
  const bool is_list = vocabulary && vocabulary->is_array();
  return model.contains("merges") ? "BPE" : is_list ? "Unigram" : "WordPiece";
}

void expect_keys(const JsonValue& part, std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : part.members()) {
    if (key == "type" || std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    value.fail("is not known");
  }
}

std::string needed_string(const JsonValue& part, std::string_view key) {
  auto value = part.string(key);
  if (!value) part.fail(key, "is missing, expected a text");
  return *std::move(value);
}

bool needed_boolean(const JsonValue& part, std::string_view key) {
  const auto value = part.boolean(key);
  if (!value) part.fail(key, "is missing, expected true or false");
  return *value;
}

char32_t needed_character(const JsonValue& part, std::string_view key) {
  const std::string value = needed_string(part, key);
  std::size_t at = 0;
  const char32_t character = value.empty() ? U'\0' : next_code_point(value, at);
  if (value.empty() || at != value.size()) part.fail(key, "is " + models::in_quotes(value) + ", expected a character");
  return character;
}

void expect_few_parts(const JsonValue& part) {
  Counts counts;
  count(part, counts);
  if (counts.writers > kMostWriters) part.fail("has more than " + std::to_string(kMostWriters) + " parts that write");
}

void check_growth(std::size_t before, std::size_t after) {
  if (after <= kMostGrowth * before + kFewBytes) return;
  throw std::invalid_argument("a text of " + std::to_string(before) + " bytes becomes one of " + std::to_string(after) +
                              ", expected no such tokenizer");
}

std::vector<JsonValue> needed_parts(const JsonValue& sequence, std::string_view key) {
  const auto list = sequence.array(key);
  if (!list) sequence.fail(key, "is missing, expected a list");
  std::vector<JsonValue> parts = list->few_elements(kMostParts);
  if (parts.size() > kMostParts) {
    list->fail("has " + std::to_string(list->elements().size()) + " parts, expected at most " +
               std::to_string(kMostParts));
  }
  return parts;
}

std::vector<JsonValue> flat_parts(const JsonValue& sequence, std::string_view key) {
  expect_keys(sequence, {key});
  std::vector<JsonValue> flat;
  for (const JsonValue& one : needed_parts(sequence, key)) {
    if (type_of(one) != "Sequence") {
      flat.push_back(one);
      continue;
    }
    for (const JsonValue& inner : flat_parts(one, key)) flat.push_back(inner);
  }
  return flat;
}

}  // namespace headlight::text
