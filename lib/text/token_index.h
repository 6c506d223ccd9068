// Ids of a vocabulary's tokens, by their spelling.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "text/table_limit.h"
#include "text/token_table.h"
#include "text/vocabulary.h"

namespace headlight::text {

// Or by the bytes that ByteLevel writes as a token: the vocabulary's texts stay as they are spelt, and there is one
// table for both.
class TokenIndex {
 public:
  static constexpr std::uint32_t kNone = TokenTable::kNone;

  // `vocabulary` must outlive this, and is not moved. The place of a token that stands at another one, too, if there is
  // one.
  [[nodiscard]] std::optional<std::uint32_t> build(const Vocabulary& vocabulary, TableLimit& limit);
  // After build(): find_bytes() and find() work from now on, and find_joined() does not.
  void go_by_bytes();

  // kNone where there is none.
  [[nodiscard]] std::uint32_t find(std::string_view spelling) const noexcept;
  // That of the token whose characters stand for these bytes.
  [[nodiscard]] std::uint32_t find_bytes(std::string_view bytes) const noexcept;
  // That of a spelling in two parts.
  [[nodiscard]] std::uint32_t find_joined(std::string_view front, std::string_view back) const noexcept;

 private:
  void fill();
  [[nodiscard]] std::uint32_t tag_of(std::string_view spelling) const noexcept;
  [[nodiscard]] std::uint32_t id_at(std::uint32_t place) const noexcept {
    return place == kNone ? kNone : vocabulary_->id_at(place);
  }

  const Vocabulary* vocabulary_ = nullptr;
  TokenTable table_;
  bool by_bytes_ = false;
};

}  // namespace headlight::text
