// Configuration files: values of one JSON document.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headlight::files {

// A value of a document, which lives as long as a value of it does. Getters by key are those of an object; each throws
// FileError naming the file and the key, with those of the objects around it ("model.unk_token"), when the value has
// another type.
//
// The values lie in one list, without a tree of containers: a file of 32 MiB takes at most some 300 MB, and nothing is
// deep.
class JsonValue {
 public:
  static constexpr std::uint64_t kLargestFile = std::uint64_t{32} << 20;

  // The text of a file, which `path` names in errors. Throw FileError when it is no JSON, repeats a key within an
  // object, nests deeper than 64 or has more than 2²² values; and when it is not an object, or not an array.
  [[nodiscard]] static JsonValue parse_object(const std::string& path, const std::string& text);
  [[nodiscard]] static JsonValue parse_array(const std::string& path, const std::string& text);

  // Nothing when the key is absent or null.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
  [[nodiscard]] std::optional<std::string> string(std::string_view key) const;
  [[nodiscard]] std::optional<JsonValue> object(std::string_view key) const;
  [[nodiscard]] std::optional<JsonValue> array(std::string_view key) const;

  // Whether it is there, if only as null.
  [[nodiscard]] bool contains(std::string_view key) const;
  // In the order of the file.
  [[nodiscard]] std::vector<std::pair<std::string_view, JsonValue>> members() const;
  [[nodiscard]] std::vector<JsonValue> elements() const;

  [[nodiscard]] bool is_null() const noexcept;
  [[nodiscard]] bool is_object() const noexcept;
  [[nodiscard]] bool is_array() const noexcept;
  // What this value is, where it is that.
  [[nodiscard]] std::optional<std::int64_t> as_integer() const noexcept;
  [[nodiscard]] std::optional<double> as_number() const noexcept;
  [[nodiscard]] std::optional<bool> as_boolean() const noexcept;
  [[nodiscard]] std::optional<std::string_view> as_string() const noexcept;

  // In a few words, for messages: true, 7, 'gelu', an object; [] and {} are empty ones.
  [[nodiscard]] std::string described() const;
  [[nodiscard]] const std::string& path() const noexcept;
  // Where this value is in its file: "added_tokens[3].id", "" for the whole.
  [[nodiscard]] std::string place() const;

  // Throw FileError("PATH: PLACE message"), of this value and of a member of it.
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;

 private:
  struct Document;
  class Handler;

  JsonValue(std::shared_ptr<const Document> document, std::uint32_t node)
      : document_(std::move(document)), node_(node) {}
  [[nodiscard]] static JsonValue parse(const std::string& path, const std::string& text);
  // The node of a member, 0 (the document's own) where there is none.
  [[nodiscard]] std::uint32_t child_of(std::string_view key) const;
  // Calls take(node) for each child until it returns false.
  template <class Take>
  void for_each_child(Take take) const;

  std::shared_ptr<const Document> document_;
  std::uint32_t node_;
};

}  // namespace headlight::files
