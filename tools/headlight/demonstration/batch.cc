#include "tools/headlight/demonstration/batch.h"

namespace headlight::demonstration {

QuestionCounts count_questions(std::span<const Sentence> sentences) {
  QuestionCounts counts{};
  for (const Sentence& sentence : sentences) {
    for (const Link& link : sentence.links) ++counts[static_cast<std::size_t>(link.relation)];
  }
  return counts;
}

Batch::Batch(std::span<const Sentence> sentences) {
  offsets_.push_back(0);
  for (const Sentence& sentence : sentences) {
    const std::int64_t begin = tokens();
    ids_.push_back(Grammar::id("[CLS]"));
    for (const std::string_view word : sentence.words) ids_.push_back(Grammar::id(word));
    ids_.push_back(Grammar::id("[SEP]"));
    for (std::int64_t token = begin; token < tokens(); ++token) positions_.push_back(token - begin);
    offsets_.push_back(tokens());
    for (const Link& link : sentence.links) {
      Questions& questions = questions_[static_cast<std::size_t>(link.relation)];
      questions.tokens.push_back(begin + 1 + static_cast<std::int64_t>(link.from));
      questions.words.push_back(Grammar::id(sentence.words[link.to]));
    }
  }
}

}  // namespace headlight::demonstration
