#include "files/json_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headlight/models/errors.h"

namespace headlight::files {

using models::FileError;
using models::in_quotes;
using models::printable;

namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 64;
constexpr std::size_t kMostValues = std::size_t{1} << 22;
constexpr std::uint32_t kNone = UINT32_MAX;

}  // namespace

// With a name, because types that have linkage are made of them.
namespace json_nodes {

enum class Kind : std::uint8_t { null, boolean, integer, number, string, array, object };

// A part of Document::texts.
struct Text {
  std::uint32_t begin, size;
};

struct Node {
  Kind kind = Kind::null;
  std::uint32_t parent = kNone;
  std::uint32_t end = 0;  // the node behind this one and all that lies in it
  Text key{};             // of a member of an object
  union {
    bool boolean;
    std::int64_t integer = 0;
    double number;
    Text text;
  };
};

}  // namespace json_nodes

using json_nodes::Kind;
using json_nodes::Node;
using json_nodes::Text;

struct JsonValue::Document {
  [[nodiscard]] std::string_view text(Text part) const { return std::string_view(texts).substr(part.begin, part.size); }

  std::string path;
  std::string texts;        // of all keys and strings
  std::vector<Node> nodes;  // in the order of the file, the document itself first
};

class JsonValue::Handler : public nlohmann::json_sax<Json> {
 public:
  explicit Handler(Document& into) : into_(into) {}

  bool null() override { return add(Kind::null); }
  bool boolean(bool value) override {
    add(Kind::boolean);
    into_.nodes.back().boolean = value;
    return true;
  }
  bool number_integer(Json::number_integer_t value) override {
    add(Kind::integer);
    into_.nodes.back().integer = value;
    return true;
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    if (value <= static_cast<std::uint64_t>(INT64_MAX)) return number_integer(static_cast<std::int64_t>(value));
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(Json::number_float_t value, const std::string&) override {
    add(Kind::number);
    into_.nodes.back().number = value;
    return true;
  }
  bool string(std::string& value) override {
    add(Kind::string);
    into_.nodes.back().text = append(value);
    return true;
  }
  bool binary(Json::binary_t&) override { return add(Kind::null); }  // JSON text has none

  bool start_object(std::size_t) override { return open(Kind::object); }
  bool start_array(std::size_t) override { return open(Kind::array); }
  bool end_object() override {
    check_keys();
    return close();
  }
  bool end_array() override { return close(); }

  bool key(std::string& text) override {
    key_ = append(text);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw FileError(into_.path, "is not valid JSON at its byte " + std::to_string(position));
  }

 private:
  Text append(const std::string& text) {
    const Text part{static_cast<std::uint32_t>(into_.texts.size()), static_cast<std::uint32_t>(text.size())};
    into_.texts += text;
    return part;
  }

  bool add(Kind kind) {
    if (into_.nodes.size() == kMostValues) {
      throw FileError(into_.path, "has more than " + std::to_string(kMostValues) + " values");
    }
    Node& node = into_.nodes.emplace_back();
    node.kind = kind;
    node.parent = open_;
    node.end = static_cast<std::uint32_t>(into_.nodes.size());
    node.key = key_;
    return true;
  }

  bool open(Kind kind) {
    if (++depth_ > kDeepest) throw FileError(into_.path, "nests deeper than " + std::to_string(kDeepest));
    add(kind);
    open_ = static_cast<std::uint32_t>(into_.nodes.size()) - 1;
    return true;
  }

  bool close() {
    --depth_;
    Node& node = into_.nodes[open_];
    node.end = static_cast<std::uint32_t>(into_.nodes.size());
    open_ = node.parent;
    return true;
  }

  // By sorting: keys of a stranger's file that share one hash would cost a hash table the square of them.
  void check_keys() {
    std::vector<std::string_view> keys;
    const auto end = static_cast<std::uint32_t>(into_.nodes.size());
    for (std::uint32_t child = open_ + 1; child < end; child = into_.nodes[child].end) {
      keys.push_back(into_.text(into_.nodes[child].key));
    }
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) throw FileError(into_.path, "holds the key " + in_quotes(*twice) + " twice");
  }

  Document& into_;
  std::uint32_t open_ = kNone;
  int depth_ = 0;
  Text key_{};
};

JsonValue JsonValue::parse(const std::string& path, const std::string& text) {
  if (text.size() > kLargestFile) {
    throw FileError(path,
                    "has " + std::to_string(text.size()) + " bytes, expected at most " + std::to_string(kLargestFile));
  }
  // The parser takes a zero byte for the end of its input; nothing may hide behind one.
  if (text.find('\0') != std::string::npos) throw FileError(path, "holds a zero byte");
  auto document = std::make_shared<Document>();
  document->path = path;
  Handler handler(*document);
  Json::sax_parse(text, &handler);
  return {std::move(document), 0};
}

JsonValue JsonValue::parse_object(const std::string& path, const std::string& text) {
  JsonValue value = parse(path, text);
  if (!value.is_object()) throw FileError(path, "is no JSON object");
  return value;
}

JsonValue JsonValue::parse_array(const std::string& path, const std::string& text) {
  JsonValue value = parse(path, text);
  if (!value.is_array()) throw FileError(path, "is no JSON array");
  return value;
}

template <class Take>
void JsonValue::for_each_child(Take take) const {
  const std::vector<Node>& nodes = document_->nodes;
  if (nodes[node_].kind != Kind::object && nodes[node_].kind != Kind::array) return;
  for (std::uint32_t child = node_ + 1; child < nodes[node_].end; child = nodes[child].end) {
    if (!take(child)) return;
  }
}

std::uint32_t JsonValue::child_of(std::string_view key) const {
  std::uint32_t found = 0;
  if (!is_object()) return found;
  for_each_child([&](std::uint32_t child) {
    if (document_->text(document_->nodes[child].key) != key) return true;
    found = child;
    return false;
  });
  return found;
}

bool JsonValue::contains(std::string_view key) const { return child_of(key) != 0; }

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  const std::uint32_t child = child_of(key);
  if (child == 0 || document_->nodes[child].kind == Kind::null) return std::nullopt;
  return JsonValue(document_, child);
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

std::vector<std::pair<std::string_view, JsonValue>> JsonValue::members() const {
  std::vector<std::pair<std::string_view, JsonValue>> all;
  if (!is_object()) return all;
  for_each_child([&](std::uint32_t child) {
    all.emplace_back(document_->text(document_->nodes[child].key), JsonValue(document_, child));
    return true;
  });
  return all;
}

std::vector<JsonValue> JsonValue::elements() const {
  std::vector<JsonValue> all;
  if (!is_array()) return all;
  for_each_child([&](std::uint32_t child) {
    all.push_back(JsonValue(document_, child));
    return true;
  });
  return all;
}

bool JsonValue::is_null() const noexcept { return document_->nodes[node_].kind == Kind::null; }
bool JsonValue::is_object() const noexcept { return document_->nodes[node_].kind == Kind::object; }
bool JsonValue::is_array() const noexcept { return document_->nodes[node_].kind == Kind::array; }

std::optional<std::int64_t> JsonValue::as_integer() const noexcept {
  const Node& node = document_->nodes[node_];
  return node.kind == Kind::integer ? std::optional(node.integer) : std::nullopt;
}

std::optional<double> JsonValue::as_number() const noexcept {
  const Node& node = document_->nodes[node_];
  if (node.kind == Kind::integer) return static_cast<double>(node.integer);
  return node.kind == Kind::number ? std::optional(node.number) : std::nullopt;
}

std::optional<bool> JsonValue::as_boolean() const noexcept {
  const Node& node = document_->nodes[node_];
  return node.kind == Kind::boolean ? std::optional(node.boolean) : std::nullopt;
}

std::optional<std::string_view> JsonValue::as_string() const noexcept {
  const Node& node = document_->nodes[node_];
  return node.kind == Kind::string ? std::optional(document_->text(node.text)) : std::nullopt;
}

std::string JsonValue::described() const {
  const Node& node = document_->nodes[node_];
  const bool empty = node.end == node_ + 1;
  switch (node.kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return node.boolean ? "true" : "false";
    case Kind::integer:
      return std::to_string(node.integer);
    case Kind::number:
      return std::to_string(node.number);
    case Kind::string:
      return in_quotes(document_->text(node.text));
    case Kind::array:
      return empty ? "[]" : "a list";
    default:
      return empty ? "{}" : "an object";
  }
}

const std::string& JsonValue::path() const noexcept { return document_->path; }

std::string JsonValue::place() const {
  const Node& node = document_->nodes[node_];
  if (node.parent == kNone) return "";
  const JsonValue parent(document_, node.parent);
  std::string place = parent.place();
  if (parent.is_object()) {
    if (!place.empty()) place += '.';
    return place + printable(document_->text(node.key));
  }
  std::int64_t number = 0;
  parent.for_each_child([&](std::uint32_t child) {
    if (child == node_) return false;
    ++number;
    return true;
  });
  return place + "[" + std::to_string(number) + "]";
}

void JsonValue::fail(const std::string& message) const {
  const std::string where = place();
  throw FileError(path(), where.empty() ? message : where + " " + message);
}

void JsonValue::fail(std::string_view key, const std::string& message) const {
  const std::string where = place();
  throw FileError(path(), (where.empty() ? "" : where + ".") + printable(key) + " " + message);
}

}  // namespace headlight::files
