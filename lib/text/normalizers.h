// What a text becomes before it is split.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "text/bert_words.h"
#include "text/parts.h"
#include "text/regular_expression.h"
#include "text/table_limit.h"

namespace headlight::text {

// `key` of the file: an object with the type BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents,
// Replace, Prepend, Precompiled, Nmt, ByteLevel or Sequence. Refuses others.
[[nodiscard]] std::unique_ptr<Normalizer> read_normalizer(const JsonValue& part, TableLimit& limit);

// BERT's, of whole texts; split_words() follows the same rules.
class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const BertRules& rules) : rules_(rules) {}
  void apply(std::string& text, Spare& spare, bool& whole_front) const override;
  [[nodiscard]] bool passes_cuts() const override { return true; }
  [[nodiscard]] const BertRules& rules() const noexcept { return rules_; }

 private:
  BertRules rules_;
};

// What is replaced in a text: a text, or what matches a regular expression.
class Replacement {
 public:
  Replacement(const JsonValue& part, TableLimit& limit);
  void apply(std::string& text, Spare& spare, bool& whole_front) const;
  [[nodiscard]] bool passes_cuts() const { return passes_cuts_; }

 private:
  std::optional<RegularExpression> expression_;
  std::string pattern_, content_;
  bool passes_cuts_ = true;
};

}  // namespace headlight::text
