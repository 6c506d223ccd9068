// Sentences as the encoder takes them, and what is to be found out about them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "headlight/layers/encoder.h"
#include "tools/headlight/demonstration/grammar.h"

namespace headlight::demonstration {

// What a relation asks: at each of these tokens, for this word.
struct Questions {
  std::vector<std::int64_t> tokens;  // rows of the encoder's output
  std::vector<std::int64_t> words;   // ids of the answers
};

// How many of them each relation has.
using QuestionCounts = std::array<std::int64_t, kRelations>;
[[nodiscard]] QuestionCounts count_questions(std::span<const Sentence> sentences);

// Sentences one behind another, [CLS] before and [SEP] behind each.
class Batch {
 public:
  explicit Batch(std::span<const Sentence> sentences);

  [[nodiscard]] EncoderInput input() const { return {.ids = ids_, .positions = positions_, .offsets = offsets_}; }
  [[nodiscard]] std::int64_t tokens() const noexcept { return static_cast<std::int64_t>(ids_.size()); }
  // The row of the first word of a sentence.
  [[nodiscard]] std::int64_t first_word(std::size_t sentence) const { return offsets_[sentence] + 1; }
  [[nodiscard]] const Questions& questions(Relation relation) const {
    return questions_[static_cast<std::size_t>(relation)];
  }

 private:
  std::vector<std::int64_t> ids_, positions_, offsets_;
  std::array<Questions, kRelations> questions_;
};

}  // namespace headlight::demonstration
