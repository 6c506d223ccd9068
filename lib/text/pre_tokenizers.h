// How a text is split into pieces.
#pragma once

#include <memory>
#include <string_view>

#include "text/parts.h"
#include "text/table_limit.h"

namespace headlight::text {

// At white space, and around every punctuation mark; split_words() does the same.
class BertSplitter final : public PreTokenizer {
 public:
  [[nodiscard]] AtCut at_cut(std::string_view space) const override;
  void split(std::string_view piece, bool first, Scratch& scratch, PieceSink& out) const override;
};

// `part` of the file: an object with the type BertPreTokenizer, ByteLevel, Metaspace, Digits, Punctuation, Split,
// Whitespace, WhitespaceSplit or Sequence. Refuses others.
[[nodiscard]] std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonValue& part, TableLimit& limit);

}  // namespace headlight::text
