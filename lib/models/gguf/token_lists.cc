#include "models/gguf/token_lists.h"

#include <cmath>

#include "headlight/models/errors.h"
#include "text/utf8.h"

namespace headlight::models {

GgufTokenLists::GgufTokenLists(const GgufTokens& tokens, std::string_view model, GgufTokenForm form,
                               bool mask_takes_space)
    : tokens_(tokens), form_(form), count_(tokens.size()) {
  std::size_t number = 0;
  for (const std::string_view token : tokens.texts()) {
    if (text::first_invalid(token) != token.size()) {
      fail(List::tokens, number, {}, "is " + in_quotes(token) + ", expected UTF-8");
    }
    ++number;
  }
  if (mask_takes_space) mask_ = tokens.id_of(kGgufMask);
  if (form == GgufTokenForm::scored) {
    read_scores(model);
    return;
  }
  while (count_ > 0 && tokens.is_added(count_ - 1)) --count_;
  merges_ = tokens.metadata().texts(kGgufMerges);
}

// One for each token; they are sorted by, so each is finite.
void GgufTokenLists::read_scores(std::string_view model) {
  const GgufMetadata& metadata = tokens_.metadata();
  scores_ = metadata.numbers(kGgufScores);
  if (scores_.empty()) metadata.fail(kGgufScores, "is missing beside the model " + std::string(model));
  tokens_.check_count(kGgufScores, scores_.size());
  for (std::size_t n = 0; n < scores_.size(); ++n) {
    const double score = *scores_.number(n);
    if (std::isfinite(score)) continue;
    metadata.fail(kGgufScores, "has the score " + std::to_string(score) + " of token " + std::to_string(n) +
                                   ", expected finite numbers");
  }
}

void GgufTokenLists::for_each_token(const TakeToken& take) const {
  std::size_t number = 0;
  for (const std::string_view token : tokens_.texts()) {
    if (number == count_) break;
    take(number, token, static_cast<std::int64_t>(number));
    ++number;
  }
}

void GgufTokenLists::for_each_score(const TakeScore& take) const {
  std::size_t number = 0;
  for (const std::string_view token : tokens_.texts()) {
    take(number, token, *scores_.number(number));
    ++number;
  }
}

void GgufTokenLists::for_each_merge(const TakeMerge& take) const {
  std::size_t number = 0;
  for (const std::string_view merge : merges_.strings()) {
    if (!text::is_version(merge)) {
      const auto two = text::two_tokens(merge);
      if (!two) fail(List::merges, number, {}, "is " + in_quotes(merge) + ", expected two tokens");
      take(number, two->first, two->second);
    }
    ++number;
  }
}

void GgufTokenLists::for_each_added(const TakeAdded& take) const {
  std::size_t number = 0;
  for (const std::string_view token : tokens_.texts()) {
    if (tokens_.is_added(number)) {
      take(number, {.content = token,
                    .id = static_cast<std::int64_t>(number),
                    .lstrip = mask_ == number,
                    .special = tokens_.is_special(number)});
    }
    ++number;
  }
}

void GgufTokenLists::fail(List list, std::size_t number, std::string_view key, const std::string& message) const {
  std::string place(list == List::merges ? kGgufMerges : kGgufTokens);
  place.append("[").append(std::to_string(number)).append("]").append(key.empty() ? "" : ".").append(key);
  tokens_.metadata().fail(place, message);
}

void GgufTokenLists::fail(List list, const std::string& message) const {
  tokens_.metadata().fail(list == List::merges ? kGgufMerges : kGgufTokens, message);
}

}  // namespace headlight::models
