// Unigram (Kudo 2018): of all ways to build a piece of tokens the one whose scores have the largest sum.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/byte_fallback.h"
#include "text/parts.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace headlight::text {

class Unigram final : public VocabularyModel {
 public:
  explicit Unigram(const JsonValue& model);

  void append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const override;

 private:
  void search(std::string_view piece, Scratch& scratch) const;
  void append_unknown(std::string_view text, std::vector<std::int64_t>& ids) const;

  Trie tokens_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0.0;
  std::uint32_t unknown_ = 0;
  ByteFallback fallback_;
};

}  // namespace headlight::text
