// The merges of a BPE whose tokens have scores alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::models {

// SentencePiece merges the two neighbours whose token has the highest score. As merges in the order of their ranks,
// which is that of Hugging Face's converter (generate_merges() in convert_slow_tokenizer.py of Transformers): every
// token as every two tokens that it is made of, by its score, then by the lengths of both parts, the largest first. As
// JSON.
[[nodiscard]] std::optional<std::string> merges_text(const std::vector<std::string_view>& tokens,
                                                     const std::vector<double>& scores);

}  // namespace headlight::models
