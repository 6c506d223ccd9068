// The first half of BERT's tokenizer: from text to words.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/tokenizer.h"

namespace headlight::models {

// Takes the code points of one normalised word; returns whether more words are wanted.
using WordSink = std::function<bool(std::u32string_view)>;

// Cleans (controls, U+FFFD and private use go, every white space is a space), sets ideographs apart, strips accents
// (canonical decomposition without nonspacing marks), lower-cases, and splits at spaces and around every punctuation
// mark, as Hugging Face's BertNormalizer and BertPreTokenizer do; with whole_words at spaces alone. `text` must be
// UTF-8. Returns false when `sink` asked to stop.
bool split_words(std::string_view text, const TokenizerOptions& options, const WordSink& sink);

// What BERT calls an ideograph and a mark.
[[nodiscard]] bool is_ideograph(char32_t codepoint);
[[nodiscard]] bool is_punctuation(char32_t codepoint);

}  // namespace headlight::models
