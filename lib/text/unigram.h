// Unigram (Kudo 2018): of all ways to build a piece of tokens the one whose scores have the largest sum.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/parts.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace headlight::text {

class Unigram final : public Model {
 public:
  explicit Unigram(const JsonValue& model);

  void append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const override;
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const override { return vocabulary_.id(token); }
  [[nodiscard]] const std::string* token(std::int64_t id) const override { return vocabulary_.token(id); }
  [[nodiscard]] std::int64_t count() const override { return vocabulary_.count(); }
  [[nodiscard]] std::int64_t size() const override { return vocabulary_.size(); }

 private:
  void search(std::string_view piece, Scratch& scratch) const;
  void append_unknown(std::string_view text, std::vector<std::int64_t>& ids) const;

  Vocabulary vocabulary_;
  Trie tokens_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0.0;
  std::uint32_t unknown_ = 0;
  bool falls_back_ = false;
  std::array<std::uint32_t, 256> fallback_{};  // of "<0x00>" …
};

}  // namespace headlight::text
