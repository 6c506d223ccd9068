#include "headlight/models/tokenizer.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "files/input_file.h"
#include "headlight/models/errors.h"
#include "models/tokenizers/tokenizer_files.h"
#include "models/tokenizers/vocabulary.h"
#include "models/tokenizers/vocabulary_pieces.h"
#include "models/tokenizers/whole_words.h"
#include "text/added_tokens.h"
#include "text/bert_words.h"
#include "text/cut.h"
#include "text/normalizers.h"
#include "text/scratch.h"
#include "text/table_limit.h"
#include "text/token_list.h"

namespace headlight::models {

using text::AddedTokens;
using text::kLongestWord;

namespace {

text::BertRules rules_of(const TokenizerOptions& options) {
  return {.cleans = options.clean_text,
          .sets_apart = options.split_ideographs && !options.whole_words,
          .strips = options.strip_accents.value_or(options.lower_case),
          .lowers = options.lower_case};
}

// The five tokens that have names, where a vocabulary has them, found in the text as they are spelt.
std::vector<AddedToken> named_tokens(const VocabularyPieces& pieces, const TokenizerOptions& options) {
  std::vector<AddedToken> found;
  for (const std::string& name :
       {options.pad_token, options.unk_token, options.cls_token, options.sep_token, options.mask_token}) {
    const bool again =
        std::any_of(found.begin(), found.end(), [&](const AddedToken& token) { return token.content == name; });
    const auto id = pieces.id(name);
    if (id && !name.empty() && !again) found.push_back({.content = name, .id = *id});
  }
  return found;
}

}  // namespace

struct Tokenizer::State {
  State(text::TokenList vocabulary, const TokenizerOptions& given, std::string_view source, text::TableLimit& limit)
      : pieces(std::move(vocabulary), given.subword_prefix, limit),
        options(given),
        rules(rules_of(given)),
        normalizer(rules) {
    if (options.longest_word < 1 || options.longest_word > static_cast<std::int64_t>(kLongestWord)) {
      throw FileError(source, "has words of at most " + std::to_string(options.longest_word) +
                                  " code points, expected 1 to " + std::to_string(kLongestWord));
    }
    size = static_cast<std::int64_t>(pieces.tokens().size());
    const std::vector<AddedToken> named =
        options.added_tokens ? std::vector<AddedToken>() : named_tokens(pieces, options);
    for (const AddedToken& token : options.added_tokens ? *options.added_tokens : named) add(token, source);
    for (AddedTokens* const tokens : {&raw, &normalized}) {
      if (const auto twice = tokens->sort()) {
        throw FileError(source, "has two added tokens that are found as " + in_quotes(*twice) + ", expected one");
      }
    }
    splits_at_cuts = !normalized.may_cross(" ");
    pad = options.pad_token.empty() ? -1 : needed(options.pad_token, source);
    unknown = needed(options.unk_token, source);
    begin = needed(options.cls_token, source);
    end = needed(options.sep_token, source);
  }

  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const {
    if (const auto found = added_ids.find(token); found != added_ids.end()) return found->second;
    return pieces.id(token);
  }

  class Ids;

  VocabularyPieces pieces;
  TokenizerOptions options;
  text::BertRules rules;
  text::BertNormalizer normalizer;
  AddedTokens raw, normalized;  // found in the text as it is, and in what is left of it
  bool splits_at_cuts = false;  // no normalized token lies across a cut (text/cut.h)
  std::map<std::string, std::int64_t, std::less<>> added_ids;
  std::map<std::int64_t, std::string> added_names;  // of ids that no piece has
  // What somebody has asked for as strings. No std::once_flag: what a lack of memory throws would have to pass through
  // the C library.
  mutable std::mutex spells;
  mutable std::map<std::int64_t, std::string> spelt_tokens;
  mutable std::optional<std::vector<std::string>> spelt_pieces;
  std::int64_t size = 0;
  std::int64_t pad = -1, unknown = -1, begin = -1, end = -1;

 private:
  void add(const AddedToken& token, std::string_view source) {
    const auto fail = [&](const std::string& message) {
      throw FileError(source, "has the added token " + in_quotes(token.content) + message);
    };
    if (token.content.empty()) fail(", expected one that is not empty");
    if (token.content.size() > AddedTokens::kLongest || first_invalid(token.content) != token.content.size()) {
      fail(", expected at most " + std::to_string(AddedTokens::kLongest) + " bytes of UTF-8");
    }
    if (token.id < 0 || token.id >= kMostIds) {
      fail(" with the id " + std::to_string(token.id) + ", expected 0 to " + std::to_string(kMostIds - 1));
    }
    if (token.normalized && options.whole_words) fail(", which is normalized, expected none with whole_words");
    std::string content = token.content;
    bool whole_front = true;
    text::Spare spare;
    if (token.normalized) normalizer.apply(content, spare, whole_front);
    if (content.empty()) fail(", of which normalising leaves nothing");
    (token.normalized ? normalized : raw).add(content, {token.id, token.single_word, token.lstrip, token.rstrip});
    added_ids.insert_or_assign(token.content, token.id);
    const auto pieces_count = static_cast<std::int64_t>(pieces.tokens().size());
    if (token.id >= pieces_count || pieces.tokens()[static_cast<std::uint32_t>(token.id)].empty()) {
      added_names.insert_or_assign(token.id, token.content);
    }
    size = std::max(size, token.id + 1);
  }

  [[nodiscard]] std::int64_t needed(const std::string& token, std::string_view source) const {
    const auto found = id(token);
    if (!found) {
      throw FileError(source, "lacks the token " + printable(token) + ", expected a BERT vocabulary with " +
                                  printable(options.unk_token) + ", " + printable(options.cls_token) + " and " +
                                  printable(options.sep_token));
    }
    return *found;
  }
};

// Hidden, for a class within one that is shown is shown. Appends the ids of words until there are `most`. Words come
// one by one, so a long text costs no more than what is kept of it.
class [[gnu::visibility("hidden")]] Tokenizer::State::Ids final : public text::WordSink {
 public:
  Ids(const State& state, std::size_t most, text::Scratch& scratch, std::vector<std::int64_t>& ids)
      : state_(state), most_(most), scratch_(scratch), ids_(ids) {}

  bool take_word(std::string_view word, std::size_t code_points) override {
    const bool known = code_points <= static_cast<std::size_t>(state_.options.longest_word);
    if (!known || !state_.pieces.trie().append(word, ids_)) ids_.push_back(state_.unknown);
    return wants_more();
  }
  bool take_chunk(std::u32string_view part, bool ends, std::size_t& taken) override {
    taken = append_whole_words(state_.pieces.trie().words(), part, ends, state_.unknown, most_, in_unknown_, ids_);
    return wants_more();
  }
  // All words of a part of the text in which no raw token is. False: no more are wanted.
  bool take_text(std::string_view text) {
    if (state_.normalized.empty()) return text::split_words(text, state_.rules, state_.options.whole_words, *this);
    const std::size_t before = ids_.size();
    for (std::size_t bytes = text::first_bytes(most_ - before, 0); state_.splits_at_cuts && bytes < text.size() / 4;
         bytes *= 4) {
      const std::size_t cut = text::find_cut(text, bytes, 2 * bytes);
      if (cut > 0 && !take_normalized(text.substr(0, cut))) return false;
      ids_.resize(before);
    }
    return take_normalized(text);
  }
  // The tokens of a text, and what take_rest(part) makes of what lies between them.
  template <class Take>
  bool take_matches(const AddedTokens& tokens, std::string_view text, Take take_rest) {
    AddedTokens::Search search(tokens, text);
    for (std::size_t at = 0;;) {
      const AddedTokens::Match match = search.next();
      const std::size_t found = std::min(match.begin, text.size());
      if (found > at && !take_rest(text.substr(at, found - at))) return false;
      if (match.id < 0) return wants_more();
      ids_.push_back(match.id);
      if (!wants_more()) return false;
      at = match.end;
    }
  }

  [[nodiscard]] bool wants_more() const { return ids_.size() < most_; }

 private:
  // The same where there are normalized tokens.
  bool take_normalized(std::string_view text) {
    std::string& rest = scratch_.normalized;
    rest = text;
    bool whole_front = true;
    state_.normalizer.apply(rest, scratch_.spare, whole_front);
    return take_matches(state_.normalized, rest,
                        [this](std::string_view part) { return text::split_normalized(part, *this); });
  }

  const State& state_;
  std::size_t most_;
  text::Scratch& scratch_;
  std::vector<std::int64_t>& ids_;
  bool in_unknown_ = false;
};

Tokenizer Tokenizer::read(const std::string& path, const TokenizerOptions& options) {
  return {vocabulary_lines(files::read_text(path, kLargestVocabularyFile), path), options, path};
}

Tokenizer::Tokenizer(std::vector<std::string> vocabulary, const TokenizerOptions& options, std::string_view source) {
  if (const auto excess = vocabulary_excess(vocabulary)) {
    throw std::invalid_argument("tokenizer: vocabulary " + *excess);
  }
  text::TableLimit none;
  state_ = std::make_shared<const State>(text::TokenList::of(std::move(vocabulary)), options, source, none);
}

Tokenizer TokenizerFiles::tokenizer() && {
  return Tokenizer(std::make_shared<const Tokenizer::State>(std::move(vocabulary), options, path, limit));
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text, std::int64_t max_length) const {
  std::vector<std::int64_t> ids;
  append(text, max_length, ids);
  return ids;
}

void Tokenizer::append(std::string_view text, std::int64_t max_length, std::vector<std::int64_t>& ids) const {
  text::Scratch scratch;
  append(text, max_length, scratch, ids);
}

void Tokenizer::append(std::string_view text, std::int64_t max_length, text::Scratch& scratch,
                       std::vector<std::int64_t>& ids) const {
  if (max_length < 2) {
    throw std::invalid_argument("tokenizer: max_length is " + std::to_string(max_length) +
                                ", expected at least 2 for [CLS] and [SEP]");
  }
  check(text);
  const std::size_t most = ids.size() + static_cast<std::size_t>(max_length) - 1;  // [SEP] comes after them
  ids.push_back(state_->begin);
  State::Ids words(*state_, most, scratch, ids);
  if (words.wants_more()) {
    static_cast<void>(
        words.take_matches(state_->raw, text, [&words](std::string_view part) { return words.take_text(part); }));
  }
  if (ids.size() > most) ids.resize(most);
  ids.push_back(state_->end);
}

void Tokenizer::check(std::string_view text) {
  if (const std::size_t at = first_invalid(text); at != text.size()) {
    throw std::invalid_argument("tokenizer: the text is not UTF-8 at its byte " + std::to_string(at) + ": " +
                                in_quotes(text.substr(at, 1)));
  }
}

const std::string& Tokenizer::token(std::int64_t id) const {
  const std::string_view found = find_token(id);
  const std::lock_guard lock(state_->spells);
  return state_->spelt_tokens.try_emplace(id, found).first->second;
}

std::string_view Tokenizer::find_token(std::int64_t id) const {
  if (id < 0 || id >= size()) {
    throw std::invalid_argument("tokenizer: the id is " + std::to_string(id) + ", expected 0 to " +
                                std::to_string(size() - 1));
  }
  const auto found = state_->added_names.find(id);
  if (found != state_->added_names.end()) return found->second;
  const text::TokenList& pieces = state_->pieces.tokens();
  return id < std::int64_t{pieces.size()} ? pieces[static_cast<std::uint32_t>(id)] : std::string_view("");
}

std::optional<std::int64_t> Tokenizer::id(std::string_view token) const { return state_->id(token); }
std::int64_t Tokenizer::size() const noexcept { return state_->size; }
std::int64_t Tokenizer::pad_id() const noexcept { return state_->pad; }
std::int64_t Tokenizer::unknown_id() const noexcept { return state_->unknown; }
const std::vector<std::string>& Tokenizer::vocabulary() const {
  const State& state = *state_;
  const std::lock_guard lock(state.spells);
  if (!state.spelt_pieces) {
    std::vector<std::string> spelt;
    const text::TokenList& pieces = state.pieces.tokens();
    spelt.reserve(pieces.size());
    for (std::uint32_t id = 0; id < pieces.size(); ++id) spelt.emplace_back(pieces[id]);
    state.spelt_pieces = std::move(spelt);
  }
  return *state.spelt_pieces;
}
const TokenizerOptions& Tokenizer::options() const noexcept { return state_->options; }

}  // namespace headlight::models
