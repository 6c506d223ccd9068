// SentencePiece's normalizer: a table that says what beginnings of characters become.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/parts.h"

namespace headlight::text {

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const JsonValue& part);
  void apply(std::string& text, bool& whole_front) const override;
  [[nodiscard]] bool passes_cuts() const override { return passes_cuts_; }

 private:
  // What the shortest key becomes that `text` begins with.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view text) const;
  void append(std::string_view cluster, std::string& out) const;
  // Whether letters of cuts become such letters.
  [[nodiscard]] bool keeps_cut_letters() const;

  std::vector<std::uint32_t> units_;  // of a double array: a tree of bytes
  std::string results_;               // one behind another, a zero byte behind each
  std::array<bool, 128> keeps_{};     // by character of ASCII: it is no key by itself
  bool passes_cuts_ = false;
};

}  // namespace headlight::text
