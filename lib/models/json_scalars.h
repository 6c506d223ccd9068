// Configuration files: the members of one JSON object.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headlight::models {

// The numbers, texts and truth values that a JSON object holds itself; members that are objects or arrays are checked
// for syntax and passed over. Every getter throws FileError naming the file and the key when the value has another
// type.
class JsonScalars {
 public:
  // From the text of the file; `path` names it in errors. Throws FileError when it is no JSON object, repeats a key or
  // nests deeper than 64.
  JsonScalars(const std::string& path, const std::string& text);

  static constexpr std::uint64_t kLargestFile = std::uint64_t{16} << 20;

  // Nothing when the key is absent or null.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
  [[nodiscard]] std::optional<std::string> string(std::string_view key) const;

  // All of them, in alphabetical order.
  [[nodiscard]] std::vector<std::string> keys() const;

  // Throws FileError("PATH: KEY message").
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;

 private:
  struct Nested {};
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Nested>;
  class Handler;

  [[nodiscard]] const Value* find(std::string_view key) const;

  std::string path_;
  std::map<std::string, Value, std::less<>> members_;
};

}  // namespace headlight::models
