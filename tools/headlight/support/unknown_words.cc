#include "tools/headlight/support/unknown_words.h"

#include <algorithm>
#include <functional>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/text_tokens.h"
#include "tools/headlight/support/word_tokens.h"

namespace headlight::program {
namespace {

constexpr std::size_t kNamed = 5;
constexpr std::size_t kWordColumns = 24;
constexpr std::size_t kMostCounted = std::size_t{1} << 16;

}  // namespace

void UnknownWords::add(std::string_view text, std::int64_t most) {
  most_ = most;
  if (!model_.has_tokenizer()) {
    // Such tokenizers know every word, if only as bytes or letters.
    // One more than it takes tells that there are more.
    const auto tokens = static_cast<std::int64_t>(model_.tokenize(text, most + 1).size());
    cut_ += tokens > most ? 1 : 0;
    empty_ += model_.tokenize("").size() == static_cast<std::size_t>(tokens) ? 1 : 0;
    longest_ = std::max(longest_, std::min(tokens, most));
    return;
  }
  const models::Tokenizer& tokenizer = model_.tokenizer();
  const auto [ids, cut] = first_tokens(tokenizer, text, most);
  cut_ += cut ? 1 : 0;
  empty_ += ids.size() <= 2 ? 1 : 0;
  longest_ = std::max(longest_, static_cast<std::int64_t>(ids.size()));
  const std::int64_t unknown = tokenizer.unknown_id();
  if (std::count(ids.begin(), ids.end(), unknown) == 0) return;
  for (const WordTokens& word : words_of(tokenizer, text, ids, false)) {
    if (std::count(ids.begin() + word.begin, ids.begin() + word.end, unknown) == 0) continue;
    const std::size_t hash = std::hash<std::string_view>()(word.word.text);
    if (hashes_.size() == kMostCounted) {
      uncounted_ = uncounted_ || !hashes_.contains(hash);
      continue;
    }
    if (!hashes_.insert(hash).second || first_.size() == kNamed) continue;
    first_.push_back(models::in_quotes(label(word.word.text, kWordColumns)));
  }
}

void UnknownWords::add(TextSource& texts) {
  texts.rewind();
  for (std::string text; texts.next(text);) add(text);
}

std::string UnknownWords::names() const {
  const std::string names = runtime::list_text(first_);
  return hashes_.size() > first_.size() ? names + ", …" : names;
}

void UnknownWords::warn(bool is_demonstration) const {
  if (hashes_.empty()) return;
  print_warning(
      std::string("the ") + (is_demonstration ? "demonstration " : "") + "model does not know " +
      counted(static_cast<std::int64_t>(hashes_.size()), "word") + (uncounted_ ? " and more: " : ": ") + names() +
      (is_demonstration ? " (`" + program_name() + " info --words` lists its words; other texts need --model)" : ""));
}

void UnknownWords::warn_of_texts() const {
  if (cut_ > 0) {
    print_warning(counted(cut_, "text") + (cut_ == 1 ? " has" : " have") + " more than the " + std::to_string(most()) +
                  " tokens that the model takes; the rest is left out");
  }
  if (empty_ > 0) {
    print_warning(counted(empty_, "text") + (empty_ == 1 ? " holds no word: its" : " hold no word: their") +
                  " numbers mean nothing");
  }
}

}  // namespace headlight::program
