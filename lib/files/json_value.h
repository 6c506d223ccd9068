// Configuration files: values of one JSON document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace headlight::files {

template <class Child>
class JsonChildren;

// A value of a document, which lives as long as a value of it does. Getters by key are those of an object; each throws
// FileError naming the file and the key, with those of the objects around it ("model.unk_token"), when the value has
// another type.
//
// A value is a place in the text, which is checked when it is parsed and read anew whenever somebody asks: memory is
// the file's text, a few places, and four bytes a key while an object's keys are compared.
class JsonValue {
 public:
  static constexpr std::uint64_t kLargestFile = std::uint64_t{32} << 20;

  // The text of a file, which `path` names in errors. Throw FileError when it is no JSON, repeats a key within an
  // object, nests deeper than 64 or holds a number that no double does; and when it is not an object, or not an array.
  [[nodiscard]] static JsonValue parse_object(const std::string& path, std::string text);
  [[nodiscard]] static JsonValue parse_array(const std::string& path, std::string text);

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
  // In the order of the file; none of a value that is not an object, or not an array.
  using Member = std::pair<std::string_view, JsonValue>;
  [[nodiscard]] JsonChildren<Member> members() const;
  [[nodiscard]] JsonChildren<JsonValue> elements() const;
  // The elements, and where there are more than `most`, the first `most` + 1.
  [[nodiscard]] std::vector<JsonValue> few_elements(std::size_t most) const;

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
  // Bytes of the file, and those that its document holds.
  [[nodiscard]] std::size_t file_bytes() const noexcept;
  [[nodiscard]] std::size_t memory() const noexcept;
  // Where this value is in its file: "added_tokens[3].id", "" for the whole.
  [[nodiscard]] std::string place() const;

  // Throw FileError("PATH: PLACE message"), of this value and of a member of it.
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  // Where a member of that key is, or would be.
  [[nodiscard]] std::string place_of(std::string_view key) const;

 private:
  template <class Child>
  friend class JsonChildren;
  struct Document;

  JsonValue(std::shared_ptr<const Document> document, std::uint32_t at) : document_(std::move(document)), at_(at) {}
  [[nodiscard]] static JsonValue parse(const std::string& path, std::string text);
  // What its text begins with.
  [[nodiscard]] char kind() const noexcept;
  [[nodiscard]] bool is_number() const noexcept { return kind() == '-' || (kind() >= '0' && kind() <= '9'); }
  // Of a number.
  [[nodiscard]] std::string_view spelt() const noexcept;
  // Where the value of a member or an element is; 0, where the document itself is: there is none.
  [[nodiscard]] std::uint32_t first_child() const noexcept;
  [[nodiscard]] std::uint32_t child_behind(std::uint32_t child) const noexcept;
  [[nodiscard]] std::uint32_t child_of(std::string_view key) const noexcept;
  // The key of a member.
  [[nodiscard]] std::string_view key_of(std::uint32_t child) const noexcept;

  std::shared_ptr<const Document> document_;
  std::uint32_t at_;
};

// The children of a value, one after another: `for (const auto& [key, value] : object.members())`.
template <class Child>
class JsonChildren {
 public:
  class Iterator {
   public:
    Iterator(const JsonValue& parent, std::uint32_t child) : parent_(&parent), child_(child) {}
    [[nodiscard]] Child operator*() const {
      JsonValue value(parent_->document_, child_);
      if constexpr (std::is_same_v<Child, JsonValue>) {
        return value;
      } else {
        return {parent_->key_of(child_), std::move(value)};
      }
    }
    Iterator& operator++() {
      child_ = parent_->child_behind(child_);
      return *this;
    }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return child_ == 0; }

   private:
    const JsonValue* parent_;
    std::uint32_t child_;
  };

  JsonChildren(JsonValue parent, std::uint32_t first) : parent_(std::move(parent)), first_(first) {}
  [[nodiscard]] Iterator begin() const { return {parent_, first_}; }
  [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }
  [[nodiscard]] bool empty() const noexcept { return first_ == 0; }
  // By going through them.
  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t count = 0;
    for (std::uint32_t child = first_; child != 0; child = parent_.child_behind(child)) ++count;
    return count;
  }

 private:
  JsonValue parent_;
  std::uint32_t first_;
};

}  // namespace headlight::files
