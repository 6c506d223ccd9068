// The tokens that the file of a tokenizer lists beside those of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/parts.h"
#include "text/table_limit.h"
#include "text/token_list.h"
#include "text/tokenizer_lists.h"

namespace headlight::text {

class AddedVocabulary {
 public:
  // Refuses ids that are not those of the model, or the next ones.
  AddedVocabulary(const TokenizerLists& lists, const Model& model, const Normalizer* normalizer, TableLimit& limit);

  // Found in a text as it is, and in what the normalizer makes of it.
  [[nodiscard]] const AddedTokens& raw() const noexcept { return raw_; }
  [[nodiscard]] const AddedTokens& normalized() const noexcept { return normalized_; }
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const noexcept;
  // A zero byte stands behind it; nothing for an id that none of them has.
  [[nodiscard]] std::optional<std::string_view> token(std::int64_t id) const noexcept;
  // Whether a token of that spelling is special.
  [[nodiscard]] bool is_special(std::string_view token) const noexcept;
  // One more than the largest id.
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

 private:
  void reserve(const TokenizerLists& lists, TableLimit& limit);
  // fail(key, message) throws.
  using Fail = std::function<void(std::string_view key, const std::string& message)>;
  void add(const AddedEntry& entry, const Model& model, const Normalizer* normalizer, const Fail& fail,
           TableLimit& limit);
  // After the last add(). The place of one whose content another one has, too, if there is one.
  [[nodiscard]] std::optional<std::uint32_t> sort();
  // The place of a token; nothing where there is none.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view token) const noexcept;

  struct Token {
    std::uint32_t id;
    bool special;
  };
  AddedTokens raw_, normalized_;
  TokenList contents_;         // in the order of the file
  std::vector<Token> tokens_;  // beside them
  std::vector<std::uint32_t> by_content_, by_id_;
  std::int64_t next_ = 0;  // the id of the next token that the model has not
  std::int64_t size_ = 0;
};

}  // namespace headlight::text
