// JSON documents, put together, written and read, over nlohmann/json. Only json.cc sees that library: its headers cost
// a compiler several seconds in every file that reads them, and destroying one of its trees allocates, so that memory
// that runs out would end the program there. Destroying one of these does not.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace headlight::program {

// A member of an object. A template, so that it becomes complete where a Json is.
template <class Value>
struct NamedValue {
  std::string name;
  Value value;
};

// A value of any kind; null at first. Members of an object keep the order in which they came.
class Json {
 public:
  using Member = NamedValue<Json>;

  Json() noexcept = default;
  Json(std::nullptr_t) noexcept {}
  Json(bool value) noexcept : value_(value) {}
  template <std::signed_integral Number>
  Json(Number value) noexcept : value_(static_cast<std::int64_t>(value)) {}
  template <std::unsigned_integral Number>
  Json(Number value) noexcept : value_(static_cast<std::uint64_t>(value)) {}
  // What is not finite is written as null, for JSON knows no such numbers.
  Json(double value) noexcept : value_(value) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(std::string text) noexcept : value_(std::move(text)) {}
  template <class Value>
  Json(const std::vector<Value>& values) : value_(List(values.begin(), values.end())) {}
  template <class Value, std::size_t count>
  Json(const std::array<Value, count>& values) : value_(List(values.begin(), values.end())) {}
  // An object: {{"name", name}, {"count", 3}}.
  Json(std::initializer_list<Member> members);
  Json(const Json& other);
  Json(Json&&) noexcept = default;
  Json& operator=(const Json&) = default;
  Json& operator=(Json&&) noexcept = default;
  ~Json() = default;

  [[nodiscard]] static Json list() { return Json(std::vector<Json>()); }

  // The member of that name, made where there is none. Of an object, or of null, which becomes one.
  Json& operator[](std::string_view name);
  // Of a list, or of null, which becomes one; the new element.
  Json& push_back(Json value);
  Json& back();

  [[nodiscard]] bool is_object() const noexcept { return std::holds_alternative<Object>(value_); }
  // Null where it is no object, or has no such member; of several the last.
  [[nodiscard]] const Json* find(std::string_view name) const noexcept;
  // Nothing where it is no number, or one that Number does not hold; whole numbers are doubles too.
  template <class Number>
  [[nodiscard]] std::optional<Number> number() const noexcept;
  [[nodiscard]] const std::string* text() const noexcept { return std::get_if<std::string>(&value_); }

  // In one line, or with a line for each value and so many spaces a level. Throws std::invalid_argument where a text is
  // not UTF-8.
  [[nodiscard]] std::string dump() const;
  [[nodiscard]] std::string dump(std::size_t indent) const;
  // In one line of ASCII, with every letter that HTML looks for in a script spelled out.
  [[nodiscard]] std::string dump_for_script() const;

  // Nothing where the text is no JSON, or nests deeper than documents of ours do.
  [[nodiscard]] static std::optional<Json> parse(std::string_view text);

 private:
  struct Layout;
  friend class JsonReader;
  using List = std::vector<Json>;
  using Object = std::vector<Member>;

  void write(std::string& out, const Layout& layout, std::size_t level) const;

  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, List, Object> value_ = nullptr;
};

// From null on, by assignment: where memory ends in the copy constructor of such a variant, libstdc++ 12 takes the new
// one for made and destroys what was never there.
inline Json::Json(const Json& other) { value_ = other.value_; }

inline Json::Json(std::initializer_list<Member> members) : value_(Object(members)) {}

// A text in quotes, as JSON has it. Throws std::invalid_argument where it is not UTF-8.
[[nodiscard]] std::string json_text(std::string_view text);

// The shortest digits that read back as the same float; null where it is not finite, for JSON knows no such numbers.
[[nodiscard]] std::string json_number(float value);

// The strict writer is the judge.
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace headlight::program
