// The texts of `headlight heads` as batches of tokens, as many at a time as memory allows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/token_batch.h"
#include "tools/headlight/support/model_network.h"
#include "tools/headlight/support/text_source.h"

namespace headlight::program {

// For whoever gives no texts: sentences of the demonstration's language, which its model was not trained on, or the
// example texts.
[[nodiscard]] TextSource usual_texts(bool is_demonstration);

// Some texts in a row, as tokens laid end to end.
struct TextBatch {
  std::size_t first = 0;                // number of the first text
  std::vector<models::Sequence> texts;  // the words between what stands around them: [CLS], the words, [SEP]
  std::int64_t tokens = 0;
  std::int64_t longest = 0;
  std::int64_t cut = 0;  // texts that were longer than the model takes

  TokensAround around{};  // each of them

  // How many words a text of so many tokens has.
  [[nodiscard]] std::int64_t words_of(std::int64_t length) const noexcept {
    return std::max<std::int64_t>(0, length - around.count());
  }
  [[nodiscard]] models::TokenBatch packed() const { return {texts, 0, static_cast<std::size_t>(tokens)}; }
};

// Hands out all texts from the first one on. A batch has at most 1024 tokens, and few enough that one float for each
// layer, head, token and token of its longest text fits into 16 MiB; but at least one text.
class TextBatches {
 public:
  TextBatches(const models::TextEncoder& model, TextSource& texts)
      : model_(model), texts_(texts), around_(tokens_around(model)) {
    texts_.rewind();
  }

  // False when there are no more.
  [[nodiscard]] bool next(TextBatch& batch);

 private:
  // The tokens of the next text; null when there is none.
  [[nodiscard]] const models::Sequence* sequence();

  const models::TextEncoder& model_;
  TextSource& texts_;
  TokensAround around_;
  std::size_t at_ = 0;
  std::string text_;
  models::Sequence waiting_;  // text at_, where it has been read
  bool was_cut_ = false;
};

}  // namespace headlight::program
