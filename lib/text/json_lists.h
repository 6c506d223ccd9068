// The lists of a tokenizer.json.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "text/parts.h"
#include "text/tokenizer_lists.h"

namespace headlight::text {

class JsonLists final : public TokenizerLists {
 public:
  // Looks for each list when it is asked for.
  explicit JsonLists(JsonValue document) : document_(std::move(document)) {}

  void for_each_token(const TakeToken& take) const override;
  void for_each_score(const TakeScore& take) const override;
  void for_each_merge(const TakeMerge& take) const override;
  [[nodiscard]] std::size_t count_merges() const override;
  void for_each_added(const TakeAdded& take) const override;
  [[noreturn]] void fail(List list, std::size_t number, std::string_view key,
                         const std::string& message) const override;
  [[noreturn]] void fail(List list, const std::string& message) const override;

 private:
  [[nodiscard]] JsonValue model() const;
  [[nodiscard]] JsonValue merges() const;
  // That of a number.
  [[nodiscard]] JsonValue entry(List list, std::size_t number) const;

  JsonValue document_;
};

}  // namespace headlight::text
