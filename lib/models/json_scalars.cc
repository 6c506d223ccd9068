#include "models/json_scalars.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 64;

}  // namespace

class JsonScalars::Handler : public nlohmann::json_sax<Json> {
 public:
  explicit Handler(JsonScalars& into) : into_(into) {}

  bool null() override { return take(nullptr); }
  bool boolean(bool value) override { return take(value); }
  bool number_integer(Json::number_integer_t value) override { return take(value); }
  bool number_unsigned(Json::number_unsigned_t value) override {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return take(static_cast<double>(value));
    return take(static_cast<std::int64_t>(value));
  }
  bool number_float(Json::number_float_t value, const std::string&) override { return take(value); }
  bool string(std::string& value) override { return take(std::move(value)); }
  bool binary(Json::binary_t&) override { return take(Nested{}); }

  bool start_object(std::size_t) override { return depth_ == 0 ? descend() : take(Nested{}) && descend(); }
  bool start_array(std::size_t) override { return take(Nested{}) && descend(); }
  bool end_object() override { return ascend(); }
  bool end_array() override { return ascend(); }

  bool key(std::string& text) override {
    if (depth_ != 1) return true;
    if (into_.members_.contains(text)) throw FileError(into_.path_, "holds the key " + in_quotes(text) + " twice");
    key_ = text;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw FileError(into_.path_, "is not valid JSON at its byte " + std::to_string(position));
  }

 private:
  bool take(Value value) {
    if (depth_ == 0) throw FileError(into_.path_, "is no JSON object");
    if (depth_ == 1) into_.members_.insert_or_assign(key_, std::move(value));
    return true;
  }

  bool descend() {
    if (++depth_ > kDeepest) throw FileError(into_.path_, "nests deeper than " + std::to_string(kDeepest));
    return true;
  }

  bool ascend() {
    --depth_;
    return true;
  }

  JsonScalars& into_;
  int depth_ = 0;
  std::string key_;
};

JsonScalars::JsonScalars(const std::string& path, const std::string& text) : path_(path) {
  // The parser takes a zero byte for the end of its input; nothing may hide behind one.
  if (text.find('\0') != std::string::npos) throw FileError(path, "holds a zero byte");
  Handler handler(*this);
  Json::sax_parse(text, &handler);
}

const JsonScalars::Value* JsonScalars::find(std::string_view key) const {
  const auto found = members_.find(key);
  if (found == members_.end() || std::holds_alternative<std::nullptr_t>(found->second)) return nullptr;
  return &found->second;
}

std::optional<std::int64_t> JsonScalars::integer(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<std::int64_t>(value)) return *number;
  fail(key, "is no integer of 64 bits");
}

std::optional<double> JsonScalars::number(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(value)) return static_cast<double>(*number);
  fail(key, "is no number");
}

std::optional<bool> JsonScalars::boolean(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* truth = std::get_if<bool>(value)) return *truth;
  fail(key, "is neither true nor false");
}

std::optional<std::string> JsonScalars::string(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  fail(key, "is no text");
}

std::vector<std::string> JsonScalars::keys() const {
  std::vector<std::string> all;
  for (const auto& [key, value] : members_) all.push_back(key);
  return all;
}

void JsonScalars::fail(std::string_view key, const std::string& message) const {
  throw FileError(path_, printable(key) + " " + message);
}

}  // namespace headlight::models
