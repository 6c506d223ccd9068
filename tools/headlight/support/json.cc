#include "tools/headlight/support/json.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace headlight::program {
namespace {

// So deep may a document be that is read: Json destroys itself by recursion.
constexpr std::size_t kDeepest = 64;

// Of a text or a number.
template <class Value>
std::string scalar_text(const Value& value, bool ascii) {
  try {
    return nlohmann::json(value).dump(-1, ' ', ascii);
  } catch (const nlohmann::json::type_error&) {
    throw std::invalid_argument("a text for JSON is not UTF-8");
  }
}

}  // namespace

// Calls of the library's parser, as it goes through a text: names and signatures are its own.
class JsonReader {
 public:
  explicit JsonReader(Json& root) : root_(root) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string& /*as_written*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*count*/) { return open(Json::Object()); }
  bool start_array(std::size_t /*count*/) { return open(Json::List()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    name_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const nlohmann::json::exception& /*error*/) {
    return false;
  }

 private:
  // Where the next value goes.
  Json& place() {
    if (open_.empty()) return root_;
    if (auto* const list = std::get_if<Json::List>(&open_.back()->value_)) return list->emplace_back();
    return std::get<Json::Object>(open_.back()->value_).emplace_back(Json::Member{std::move(name_), {}}).value;
  }
  template <class Value>
  bool add(Value&& value) {
    place() = Json(std::forward<Value>(value));
    return true;
  }
  template <class Container>
  bool open(Container empty) {
    if (open_.size() == kDeepest) return false;
    Json& container = place();
    container.value_ = std::move(empty);
    open_.push_back(&container);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json& root_;
  std::vector<Json*> open_;  // no value moves while one inside it is being read
  std::string name_;
};

struct Json::Layout {
  bool lines = false;
  std::size_t indent = 0;
  bool ascii = false;

  void line(std::string& out, std::size_t level) const {
    if (lines) out.append("\n").append(level * indent, ' ');
  }
};

Json& Json::operator[](std::string_view name) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Object();
  auto& members = std::get<Object>(value_);
  for (Member& member : members) {
    if (member.name == name) return member.value;
  }
  return members.emplace_back(Member{std::string(name), {}}).value;
}

Json& Json::push_back(Json value) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = List();
  return std::get<List>(value_).emplace_back(std::move(value));
}

Json& Json::back() { return std::get<List>(value_).back(); }

const Json* Json::find(std::string_view name) const noexcept {
  const auto* const members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  for (auto member = members->rbegin(); member != members->rend(); ++member) {
    if (member->name == name) return &member->value;
  }
  return nullptr;
}

template <class Number>
std::optional<Number> Json::number() const noexcept {
  return std::visit(
      [](const auto& value) -> std::optional<Number> {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::int64_t> || std::is_same_v<Value, std::uint64_t>) {
          if constexpr (std::is_integral_v<Number>) {
            if (!std::in_range<Number>(value)) return std::nullopt;
          }
          return static_cast<Number>(value);
        } else if constexpr (std::is_same_v<Value, double> && std::is_same_v<Number, double>) {
          return value;
        } else {
          return std::nullopt;
        }
      },
      value_);
}

template std::optional<std::int64_t> Json::number() const noexcept;
template std::optional<std::uint64_t> Json::number() const noexcept;
template std::optional<double> Json::number() const noexcept;

void Json::write(std::string& out, const Layout& layout, std::size_t level) const {
  const auto separate = [&](bool first) {
    if (!first) out += ",";
    layout.line(out, level + 1);
  };
  if (const auto* const list = std::get_if<List>(&value_)) {
    out += "[";
    for (const Json& value : *list) {
      separate(&value == list->data());
      value.write(out, layout, level + 1);
    }
    if (!list->empty()) layout.line(out, level);
    out += "]";
  } else if (const auto* const members = std::get_if<Object>(&value_)) {
    out += "{";
    for (const Member& member : *members) {
      separate(&member == members->data());
      out.append(scalar_text(member.name, layout.ascii)).append(layout.lines ? ": " : ":");
      member.value.write(out, layout, level + 1);
    }
    if (!members->empty()) layout.line(out, level);
    out += "}";
  } else {
    std::visit(
        [&](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (!std::is_same_v<Value, List> && !std::is_same_v<Value, Object>) {
            out += scalar_text(value, layout.ascii);
          }
        },
        value_);
  }
}

std::string Json::dump() const {
  std::string out;
  write(out, {}, 0);
  return out;
}

std::string Json::dump(std::size_t indent) const {
  std::string out;
  write(out, {.lines = true, .indent = indent}, 0);
  return out;
}

std::string Json::dump_for_script() const {
  std::string plain, out;
  write(plain, {.ascii = true}, 0);
  out.reserve(plain.size());
  for (const char letter : plain) {
    if (letter == '<') {
      out += "\\u003c";
    } else if (letter == '>') {
      out += "\\u003e";
    } else if (letter == '&') {
      out += "\\u0026";
    } else {
      out += letter;
    }
  }
  return out;
}

std::optional<Json> Json::parse(std::string_view text) {
  Json root;
  JsonReader reader(root);
  if (!nlohmann::json::sax_parse(text, &reader)) return std::nullopt;
  return root;
}

std::string json_text(std::string_view text) { return scalar_text(text, false); }

std::string json_number(float value) {
  if (!std::isfinite(value)) return "null";
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

bool is_utf8(std::string_view text) {
  try {
    static_cast<void>(json_text(text));
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

}  // namespace headlight::program
