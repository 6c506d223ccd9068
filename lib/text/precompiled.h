// SentencePiece's normalizer: a table that says what beginnings of characters become.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/parts.h"
#include "text/table_limit.h"

namespace headlight::text {

class Precompiled final : public Normalizer {
 public:
  Precompiled(const JsonValue& part, TableLimit& limit);
  // Of the table itself; fail(message) throws.
  using Fail = std::function<void(const std::string& message)>;
  Precompiled(std::string_view bytes, const Fail& fail, TableLimit& limit);
  void apply(std::string& text, Spare& spare, bool& whole_front) const override;
  [[nodiscard]] bool passes_cuts() const override { return passes_cuts_; }

 private:
  static std::string bytes_in(const JsonValue& part, TableLimit& limit);
  // What the shortest key becomes that `text` begins with.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view text) const;
  void append(std::string_view cluster, std::string& out) const;

  // What is known of a character below U+10000, whatever stands beside it.
  struct Kind {
    std::uint8_t begins_no_key : 1 = 0;  // so it stays as it is
    std::uint8_t is_no_key : 1 = 0;      // by itself
    // Between two of these a cluster ends and another begins.
    std::uint8_t parts : 1 = 0;
  };
  [[nodiscard]] Kind kind_of(std::int32_t character) const;
  // That of the character at `at`, whose size is given.
  [[nodiscard]] Kind kind_at(std::string_view text, std::size_t at, std::size_t& size) const;
  // Whether what begins with the text may be a key.
  [[nodiscard]] bool may_begin_key(std::string_view text) const;
  // Whether letters of cuts become such letters.
  [[nodiscard]] bool keeps_cut_letters() const;

  std::vector<std::uint32_t> units_;  // of a double array: a tree of bytes
  std::string results_;               // one behind another, a zero byte behind each
  std::vector<Kind> kinds_;           // by character
  bool passes_cuts_ = false;
};

}  // namespace headlight::text
