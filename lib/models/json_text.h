// JSON text, member by member.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headlight::models {

// A value as JSON: text, a number, a truth value, null. Containers are put together from such: destroying one of
// nlohmann's asks for memory, and where there is none, ends the program.
template <class Scalar>
[[nodiscard]] std::string json_text(const Scalar& value) {
  return nlohmann::json(value).dump();
}

// The members of one object, in the order in which they are added.
class JsonObject {
 public:
  // What stands behind a key, and between two members.
  JsonObject(std::string_view colon, std::string_view comma) : colon_(colon), comma_(comma) {}

  // `text`: the value as JSON.
  void add_text(std::string_view key, std::string_view text) {
    if (!members_.empty()) members_ += comma_;
    members_ += json_text(key);
    members_ += colon_;
    members_ += text;
  }
  template <class Scalar>
  void add(std::string_view key, const Scalar& value) {
    add_text(key, json_text(value));
  }

  [[nodiscard]] const std::string& members() const noexcept { return members_; }
  // A file that holds them alone.
  [[nodiscard]] std::string document() const {
    return members_.empty() ? std::string("{}\n") : "{\n  " + members_ + "\n}\n";
  }

 private:
  std::string_view colon_;
  std::string_view comma_;
  std::string members_;
};

}  // namespace headlight::models
