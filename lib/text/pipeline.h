// The parts of a tokenizer, one behind another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "text/added_vocabulary.h"
#include "text/bert_words.h"
#include "text/parts.h"
#include "text/post_processor.h"
#include "text/table_limit.h"
#include "text/tokenizer_lists.h"

namespace headlight::text {

// Parts in place of those of a tokenizer.json.
struct ReplacedParts {
  bool replaces_normalizer = false;  // by none where `normalizer` is not there
  std::optional<JsonValue> normalizer{};
  std::optional<JsonValue> pre_tokenizer{};
};

// Its members are made in this order.
struct Pipeline {
  // Of a tokenizer.json.
  explicit Pipeline(const JsonValue& document, const ReplacedParts& replaced = {});
  // Of one whose lists are elsewhere: `document` says all else. `normalizer`: one that it does not say, or null.
  Pipeline(const JsonValue& document, const TokenizerLists& lists, std::unique_ptr<Normalizer> normalizer,
           TableLimit& limit, const ReplacedParts& replaced = {});

  void append(std::string_view text, Scratch& scratch, std::vector<std::int64_t>& ids) const;
  // The first ids of the text, `most` at least where there are so many, in time and memory that do not grow with what
  // lies behind them, as far as there are cuts (text/cut.h).
  void append_first(std::string_view text, std::int64_t most, Scratch& scratch, std::vector<std::int64_t>& ids) const;
  // The ids of texts as a template of the post-processor has them.
  void append_around(const std::vector<TemplatePart>& parts, SpecialTokens special, std::string_view first,
                     std::string_view second, Scratch& scratch, std::vector<std::int64_t>& ids) const;
  // The same, but cut: at most `room` ids of both texts together. `types`: of each id, or null.
  void append_within(const std::vector<TemplatePart>& parts, std::int64_t room, std::string_view first,
                     std::string_view second, Scratch& scratch, std::vector<std::int64_t>& ids,
                     std::vector<std::int64_t>* types) const;
  // A zero byte stands behind it; nothing for an id that no token has.
  [[nodiscard]] std::optional<std::string_view> token(std::int64_t id) const noexcept {
    const auto found = added->token(id);
    return found ? found : model->token(id);
  }

  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const {
    const auto found = added->id(token);
    return found ? found : model->id(token);
  }

  std::unique_ptr<Normalizer> normalizer{};
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<Model> model;
  std::optional<AddedVocabulary> added;
  PostProcessor processor;
  std::unique_ptr<Decoder> decoder;
  // Where normalizer and pre_tokenizer are BERT's, and nothing lies between them, split_words() does their work.
  std::optional<BertRules> bert{};
  bool splits_at_cuts = false;

 private:
  Pipeline(const JsonValue& document, TableLimit limit, const ReplacedParts& replaced);
};

}  // namespace headlight::text
