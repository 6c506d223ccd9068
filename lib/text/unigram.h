// Unigram (Kudo 2018): of all ways to build a piece of tokens the one whose scores have the largest sum.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/byte_fallback.h"
#include "text/parts.h"
#include "text/table_limit.h"
#include "text/tokenizer_lists.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace headlight::text {

class Unigram final : public VocabularyModel {
 public:
  // `model` says all but the tokens.
  Unigram(const JsonValue& model, const TokenizerLists& lists, TableLimit& limit);

  void append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const override;
  void append_first(std::string_view piece, std::size_t most, Scratch& scratch,
                    std::vector<std::int64_t>& ids) const override;

 private:
  [[nodiscard]] std::uint32_t find(std::string_view token) const noexcept override { return tokens_.find(token); }
  // The last place that no token lies across, whatever follows the piece, and before which no unknown character stands;
  // 0: there is none.
  std::size_t search(std::string_view piece, Scratch& scratch) const;
  // Of what search() found.
  void append_path(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const;
  void append_unknown(std::string_view text, std::vector<std::int64_t>& ids) const;

  Trie tokens_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0.0;
  std::uint32_t unknown_ = 0;
  std::size_t longest_ = 0;  // bytes of a token
  ByteFallback fallback_;
};

}  // namespace headlight::text
