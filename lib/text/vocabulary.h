// The tokens of a model, and their ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/parts.h"
#include "text/token_table.h"

namespace headlight::text {

class Vocabulary {
 public:
  // Refuses an id outside 0 … kMostIds − 1 or of two tokens, and a token of more than kLongestToken bytes.
  void add(std::string_view token, std::int64_t id, const JsonValue& place);
  // After the last add().
  void sort() { table_.sort(); }

  [[nodiscard]] std::uint32_t find(std::string_view token) const noexcept { return table_.find(token); }
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const;
  [[nodiscard]] const std::string* token(std::int64_t id) const;
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(tokens_.size()); }
  // Calls take(token, id) for each.
  template <class Take>
  void for_each(Take take) const {
    for (std::uint32_t id = 0; id < size(); ++id) {
      if (there_[id]) take(tokens_[id], id);
    }
  }

 private:
  std::vector<std::string> tokens_;  // by id
  std::vector<bool> there_;
  std::int64_t count_ = 0;
  TokenTable table_;
};

// A model whose ids are those of its vocabulary.
class VocabularyModel : public Model {
 public:
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const final { return vocabulary_.id(token); }
  [[nodiscard]] const std::string* token(std::int64_t id) const final { return vocabulary_.token(id); }
  [[nodiscard]] std::int64_t count() const final { return vocabulary_.count(); }
  [[nodiscard]] std::int64_t size() const final { return vocabulary_.size(); }

 protected:
  Vocabulary vocabulary_;
};

// `vocab` of WordPiece and BPE: {"a": 0, …}.
[[nodiscard]] Vocabulary read_vocabulary(const JsonValue& model);

}  // namespace headlight::text
