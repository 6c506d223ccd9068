// The lists of a GGUF file's tokenizer, where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/gguf/array.h"
#include "models/gguf/tokens.h"
#include "text/tokenizer_lists.h"

namespace headlight::models {

// The tokens of a model: without those that stand behind its last one, which were added, or all of them, with scores.
enum class GgufTokenForm : std::uint8_t { pieces, scored };

class GgufTokenLists final : public text::TokenizerLists {
 public:
  // `tokens` outlives this. `mask_takes_space`: the mask token takes the space before it.
  // Refuses tokens that are not UTF-8, and scores that are missing or not finite.
  GgufTokenLists(const GgufTokens& tokens, std::string_view model, GgufTokenForm form, bool mask_takes_space);

  void for_each_token(const TakeToken& take) const override;
  void for_each_score(const TakeScore& take) const override;
  [[nodiscard]] bool merges_by_scores() const override { return form_ == GgufTokenForm::scored; }
  void for_each_merge(const TakeMerge& take) const override;
  [[nodiscard]] std::size_t count_merges() const override { return merges_.size(); }
  void for_each_added(const TakeAdded& take) const override;
  [[noreturn]] void fail(List list, std::size_t number, std::string_view key,
                         const std::string& message) const override;
  [[noreturn]] void fail(List list, const std::string& message) const override;

 private:
  void read_scores(std::string_view model);

  const GgufTokens& tokens_;
  GgufTokenForm form_;
  std::size_t count_;  // of the model's tokens
  std::optional<std::size_t> mask_{};
  GgufArray scores_, merges_;
};

}  // namespace headlight::models
