// The tokens that tokenizer.json lists beside those of the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "text/added_tokens.h"
#include "text/parts.h"

namespace headlight::text {

class AddedVocabulary {
 public:
  // `added_tokens` of the file, which may be missing. Refuses ids that are not those of the model, or the next ones.
  AddedVocabulary(const JsonValue& document, const Model& model, const Normalizer* normalizer);

  // Found in a text as it is, and in what the normalizer makes of it.
  [[nodiscard]] const AddedTokens& raw() const noexcept { return raw_; }
  [[nodiscard]] const AddedTokens& normalized() const noexcept { return normalized_; }
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const;
  [[nodiscard]] const std::string* token(std::int64_t id) const;
  // Whether a token of that spelling is special.
  [[nodiscard]] bool is_special(const std::string& token) const;
  // One more than the largest id.
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

 private:
  void add(const JsonValue& entry, const Model& model, const Normalizer* normalizer);

  struct Token {
    std::int64_t id;
    bool special;
  };
  AddedTokens raw_, normalized_;
  std::map<std::string, Token, std::less<>> tokens_;
  std::map<std::int64_t, std::string> names_;
  std::int64_t next_ = 0;  // the id of the next token that the model has not
  std::int64_t size_ = 0;
};

}  // namespace headlight::text
