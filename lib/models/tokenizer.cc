#include "headlight/models/tokenizer.h"

#include <array>
#include <stdexcept>
#include <utility>

#include "headlight/models/errors.h"
#include "models/basic_tokenizer.h"
#include "models/input_file.h"
#include "models/vocabulary.h"
#include "models/wordpiece.h"

namespace headlight::models {
namespace {

constexpr std::size_t kNeeded = 4;  // the first of these must be in the vocabulary
constexpr std::array<std::string_view, 5> kSpecialTokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

}  // namespace

struct Tokenizer::State {
  State(std::vector<std::string> vocabulary, const TokenizerOptions& given, std::string_view source)
      : pieces(std::move(vocabulary)), options(given) {
    for (std::size_t n = 0; n < kSpecialTokens.size(); ++n) {
      const auto found = pieces.id(kSpecialTokens[n]);
      if (!found && n < kNeeded) {
        throw FileError(source, "lacks the token " + std::string(kSpecialTokens[n]) +
                                    ", expected a BERT vocabulary with [PAD], [UNK], [CLS] and [SEP]");
      }
      special[n] = found.value_or(-1);
    }
  }

  [[nodiscard]] std::int64_t pad() const { return special[0]; }
  [[nodiscard]] std::int64_t unknown() const { return special[1]; }
  [[nodiscard]] std::int64_t begin() const { return special[2]; }
  [[nodiscard]] std::int64_t end() const { return special[3]; }

  // The first special token in `text`, spelt exactly; its place is npos when there is none.
  struct Match {
    std::size_t at = std::string_view::npos;
    std::size_t length = 0;
    std::int64_t id = -1;
  };
  [[nodiscard]] Match find_special(std::string_view text) const {
    for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
      for (std::size_t n = 0; n < kSpecialTokens.size(); ++n) {
        if (special[n] >= 0 && text.substr(at).starts_with(kSpecialTokens[n])) {
          return {at, kSpecialTokens[n].size(), special[n]};
        }
      }
    }
    return {};
  }

  class Ids;

  WordPiece pieces;
  TokenizerOptions options;
  std::array<std::int64_t, kSpecialTokens.size()> special{};
};

// Appends the ids of words until there are `most`. Words come one by one, so a long text costs no more than what is
// kept of it.
class Tokenizer::State::Ids final : public WordSink {
 public:
  Ids(const State& state, std::size_t most, std::vector<std::int64_t>& ids) : state_(state), most_(most), ids_(ids) {}

  bool take_word(std::u32string_view word) override {
    state_.pieces.append(word, state_.unknown(), ids_);
    return wants_more();
  }
  bool take_chunk(std::u32string_view part, bool ends, std::size_t& taken) override {
    taken = state_.pieces.append_whole_words(part, ends, state_.unknown(), most_, in_unknown_, ids_);
    return wants_more();
  }
  [[nodiscard]] bool wants_more() const { return ids_.size() < most_; }

 private:
  const State& state_;
  std::size_t most_;
  std::vector<std::int64_t>& ids_;
  bool in_unknown_ = false;
};

Tokenizer Tokenizer::read(const std::string& path, const TokenizerOptions& options) {
  return {vocabulary_lines(read_text(path, kLargestVocabularyFile), path), options, path};
}

Tokenizer::Tokenizer(std::vector<std::string> vocabulary, const TokenizerOptions& options, std::string_view source)
    : state_(std::make_shared<const State>(std::move(vocabulary), options, source)) {}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text, std::int64_t max_length) const {
  std::vector<std::int64_t> ids;
  append(text, max_length, ids);
  return ids;
}

void Tokenizer::append(std::string_view text, std::int64_t max_length, std::vector<std::int64_t>& ids) const {
  if (max_length < 2) {
    throw std::invalid_argument("tokenizer: max_length is " + std::to_string(max_length) +
                                ", expected at least 2 for [CLS] and [SEP]");
  }
  check(text);
  const std::size_t most = ids.size() + static_cast<std::size_t>(max_length) - 1;  // [SEP] comes after them
  ids.push_back(state_->begin());
  State::Ids words(*state_, most, ids);
  while (!text.empty() && words.wants_more()) {
    const State::Match match = state_->find_special(text);
    const bool wants_more = split_words(text.substr(0, match.at), state_->options, words);
    if (match.id < 0 || !wants_more) break;
    ids.push_back(match.id);
    text.remove_prefix(match.at + match.length);
  }
  if (ids.size() > most) ids.resize(most);
  ids.push_back(state_->end());
}

void Tokenizer::check(std::string_view text) {
  if (const std::size_t at = first_invalid(text); at != text.size()) {
    throw std::invalid_argument("tokenizer: the text is not UTF-8 at its byte " + std::to_string(at) + ": " +
                                in_quotes(text.substr(at, 1)));
  }
}

const std::string& Tokenizer::token(std::int64_t id) const {
  if (id < 0 || id >= size()) {
    throw std::invalid_argument("tokenizer: the id is " + std::to_string(id) + ", expected 0 to " +
                                std::to_string(size() - 1));
  }
  return state_->pieces.vocabulary()[static_cast<std::size_t>(id)];
}

std::optional<std::int64_t> Tokenizer::id(std::string_view token) const { return state_->pieces.id(token); }
std::int64_t Tokenizer::size() const noexcept { return static_cast<std::int64_t>(state_->pieces.vocabulary().size()); }
std::int64_t Tokenizer::pad_id() const noexcept { return state_->pad(); }
const TokenizerOptions& Tokenizer::options() const noexcept { return state_->options; }

}  // namespace headlight::models
