#include "text/pipeline.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "headlight/models/errors.h"
#include "text/bpe.h"
#include "text/cut.h"
#include "text/decoders.h"
#include "text/json_lists.h"
#include "text/normalizers.h"
#include "text/pair_lengths.h"
#include "text/pre_tokenizers.h"
#include "text/table_limit.h"
#include "text/unigram.h"
#include "text/word_pieces.h"

namespace headlight::text {
namespace {

using models::in_quotes;

std::unique_ptr<Model> read_model(const JsonValue& document, const TokenizerLists& lists, bool& takes_bytes,
                                  TableLimit& limit) {
  const auto model = document.object("model");
  if (!model) document.fail("model", "is missing");
  const std::string type = type_of_model(*model);
  if (type == "BPE") {
    auto bpe = std::make_unique<Bpe>(*model, lists, limit);
    takes_bytes = takes_bytes && bpe->take_bytes();
    bpe->prepare(limit);
    return bpe;
  }
  takes_bytes = false;
  if (type == "Unigram") return std::make_unique<Unigram>(*model, lists, limit);
  if (type == "WordPiece") return std::make_unique<WordPieces>(*model, lists, limit);
  model->fail("type", "is " + in_quotes(type) + ", expected WordPiece, BPE or Unigram");
}

// Appends the ids of a text: of added tokens, and of what the model makes of the pieces between them.
class Ids final : public PieceSink, public WordSink {
 public:
  // Of those behind the ids that there are, `most` at least where there are so many.
  Ids(const Pipeline& pipeline, std::int64_t most, Scratch& scratch, std::vector<std::int64_t>& ids)
      : pipeline_(pipeline), enough_(ids.size() + static_cast<std::size_t>(most)), scratch_(scratch), ids_(ids) {}

  void take_text(std::string_view text) {
    take_matches(pipeline_.added->raw(), text, true,
                 [this](std::string_view part, bool first) { normalize(part, first); });
  }
  void take(std::string_view piece, bool) override {
    // Models keep places in a piece in 32 bits.
    if (piece.size() > UINT32_MAX) throw std::invalid_argument("a piece of the text has 4 GiB or more");
    if (has_enough()) return;
    pipeline_.model->append_first(piece, enough_ - ids_.size(), scratch_, ids_);
  }
  bool take_word(std::string_view word, std::size_t) override {
    pipeline_.model->append(word, scratch_, ids_);
    return !has_enough();
  }
  bool take_chunk(std::u32string_view, bool, std::size_t&) override { return false; }

 private:
  [[nodiscard]] bool has_enough() const noexcept { return ids_.size() >= enough_; }

  // The tokens of a text, and what take_rest(part, first) makes of what lies between them.
  template <class Take>
  void take_matches(const AddedTokens& tokens, std::string_view text, bool first, Take take_rest) {
    std::size_t at = 0;
    const auto take_until = [&](std::size_t end) {
      if (end > at) take_rest(text.substr(at, end - at), first && at == 0);
    };
    if (!tokens.empty()) {
      AddedTokens::Search search(tokens, text);
      for (auto match = search.next(); match.id >= 0; match = search.next()) {
        take_until(match.begin);
        if (has_enough()) return;
        ids_.push_back(match.id);
        at = match.end;
      }
    }
    take_until(text.size());
  }

  void normalize(std::string_view part, bool first) {
    if (pipeline_.bert) return static_cast<void>(split_words(part, *pipeline_.bert, false, *this));
    const auto take_piece = [this](std::string_view piece, bool begins) { split(piece, begins); };
    if (pipeline_.normalizer == nullptr) return take_matches(pipeline_.added->normalized(), part, first, take_piece);
    std::string& normalized = scratch_.normalized;
    normalized = part;
    bool whole_front = true;
    pipeline_.normalizer->apply(normalized, scratch_.spare, whole_front);
    check_growth(part.size(), normalized.size());
    take_matches(pipeline_.added->normalized(), normalized, first && whole_front, take_piece);
  }

  void split(std::string_view piece, bool first) {
    if (pipeline_.pre_tokenizer == nullptr) return take(piece, first);
    pipeline_.pre_tokenizer->split(piece, first, scratch_, *this);
  }

  const Pipeline& pipeline_;
  std::size_t enough_;
  Scratch& scratch_;
  std::vector<std::int64_t>& ids_;
};

constexpr std::int64_t kAll = INT64_MAX / 2;

// What normalizers make of the space of a cut; nothing where cuts do not pass them.
std::optional<std::string> space_of_cuts(const Normalizer* normalizer) {
  if (normalizer == nullptr) return " ";
  if (!normalizer->passes_cuts()) return std::nullopt;
  std::string text = "xy xy";
  bool whole_front = true;
  Spare spare;
  normalizer->apply(text, spare, whole_front);
  for (const std::string_view space : {std::string_view(" "), kMetaspace}) {
    if (text.ends_with("xy" + std::string(space) + "xy")) return std::string(space);
  }
  return std::nullopt;
}

// Whether the ids of a text up to a cut are the first ids of the text.
bool cuts_tell(const Pipeline& pipeline) {
  const auto space = space_of_cuts(pipeline.normalizer.get());
  return space && !pipeline.added->raw().may_cross(" ") && !pipeline.added->normalized().may_cross(*space) &&
         pipeline.pre_tokenizer != nullptr && pipeline.pre_tokenizer->at_cut(*space) == AtCut::splits;
}

std::optional<BertRules> bert_rules(const Pipeline& pipeline) {
  const auto* const normalizer = dynamic_cast<const BertNormalizer*>(pipeline.normalizer.get());
  const auto* const splitter = dynamic_cast<const BertSplitter*>(pipeline.pre_tokenizer.get());
  const auto* const model = dynamic_cast<const WordPieces*>(pipeline.model.get());
  if (normalizer == nullptr || splitter == nullptr || model == nullptr) return std::nullopt;
  const bool fits = pipeline.added->normalized().empty() && model->longest_word() <= kLongestWord;
  return fits ? std::optional(normalizer->rules()) : std::nullopt;
}

}  // namespace

Pipeline::Pipeline(const JsonValue& document, const ReplacedParts& replaced)
    : Pipeline(document, TableLimit(document), replaced) {}

Pipeline::Pipeline(const JsonValue& document, TableLimit limit, const ReplacedParts& replaced)
    : Pipeline(document, JsonLists(document), nullptr, limit, replaced) {}

Pipeline::Pipeline(const JsonValue& document, const TokenizerLists& lists, std::unique_ptr<Normalizer> normalizer_,
                   TableLimit& limit, const ReplacedParts& replaced)
    : normalizer(std::move(normalizer_)) {
  if (!document.contains("model")) document.fail("has no key 'model', expected a tokenizer.json");
  expect_keys(document, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                         "post_processor", "decoder", "model"});
  if (const auto version = document.string("version"); version && *version != "1.0") {
    document.fail("version", "is " + in_quotes(*version) + ", expected 1.0");
  }
  const auto part = [&](const char* key) {
    auto found = document.object(key);
    if (found) expect_few_parts(*found);
    return found;
  };
  // Small parts first: a file of another kind is refused before its vocabulary is read.
  const auto of_normalizer = replaced.replaces_normalizer ? replaced.normalizer : part("normalizer");
  if (of_normalizer) normalizer = read_normalizer(*of_normalizer, limit);
  const auto of_pre_tokenizer = replaced.pre_tokenizer ? replaced.pre_tokenizer : part("pre_tokenizer");
  if (of_pre_tokenizer) pre_tokenizer = read_pre_tokenizer(*of_pre_tokenizer, limit);
  if (const auto found = part("decoder")) decoder = read_decoder(*found, limit);
  bool takes_bytes = pre_tokenizer != nullptr && pre_tokenizer->writes_bytes();
  model = read_model(document, lists, takes_bytes, limit);
  if (takes_bytes) pre_tokenizer->keep_bytes();
  added.emplace(lists, *model, normalizer.get(), limit);
  if (const auto found = part("post_processor")) {
    processor = read_post_processor(*found, [this](std::int64_t id) { return token(id).has_value(); });
  }
  bert = bert_rules(*this);
  splits_at_cuts = cuts_tell(*this);
}

void Pipeline::append(std::string_view text, Scratch& scratch, std::vector<std::int64_t>& ids) const {
  Ids(*this, kAll, scratch, ids).take_text(text);
}

void Pipeline::append_first(std::string_view text, std::int64_t most, Scratch& scratch,
                            std::vector<std::int64_t>& ids) const {
  most = std::clamp<std::int64_t>(most, 0, kAll);
  for (std::size_t size = first_bytes(static_cast<std::size_t>(most), 0); splits_at_cuts && size < text.size() / 4;
       size *= 4) {
    const std::size_t cut = find_cut(text, size, 2 * size);
    if (cut == 0) continue;
    const std::size_t before = ids.size();
    Ids(*this, most, scratch, ids).take_text(text.substr(0, cut));
    if (ids.size() - before >= static_cast<std::size_t>(most)) return;
    ids.resize(before);
  }
  Ids(*this, most, scratch, ids).take_text(text);
}

void Pipeline::append_around(const std::vector<TemplatePart>& parts, SpecialTokens special, std::string_view first,
                             std::string_view second, Scratch& scratch, std::vector<std::int64_t>& ids) const {
  for (const TemplatePart& part : parts) {
    switch (part.kind) {
      case TemplatePart::Kind::first_text:
        append(first, scratch, ids);
        break;
      case TemplatePart::Kind::second_text:
        append(second, scratch, ids);
        break;
      default:
        if (special == SpecialTokens::with) ids.insert(ids.end(), part.ids.begin(), part.ids.end());
    }
  }
}

void Pipeline::append_within(const std::vector<TemplatePart>& parts, std::int64_t room, std::string_view first,
                             std::string_view second, Scratch& scratch, std::vector<std::int64_t>& ids,
                             std::vector<std::int64_t>* types) const {
  using Kind = TemplatePart::Kind;
  // A text that stands in a template more than once is cut in each place.
  const auto times = [&](Kind kind) {
    return std::count_if(parts.begin(), parts.end(), [&](const TemplatePart& part) { return part.kind == kind; });
  };
  const std::int64_t room_of_each =
      room / std::max<std::int64_t>({times(Kind::first_text), times(Kind::second_text), 1});
  std::vector<std::int64_t>&one = scratch.first, &two = scratch.second;
  // Of two texts that are both too long the longer one gets the odd token: then the shorter one is needed to its end.
  for (std::int64_t enough = std::min(room_of_each, kAll / 4) + 1;; enough = std::min(enough, kAll / 4) * 4) {
    one.clear();
    two.clear();
    if (times(Kind::first_text) > 0) append_first(first, enough, scratch, one);
    if (times(Kind::second_text) > 0) append_first(second, enough, scratch, two);
    const auto shorter = static_cast<std::int64_t>(std::min(one.size(), two.size()));
    if (room_of_each % 2 == 0 || shorter < enough) break;
  }
  const auto [n1, n2] =
      pair_lengths(static_cast<std::int64_t>(one.size()), static_cast<std::int64_t>(two.size()), room_of_each);
  for (const TemplatePart& part : parts) {
    const std::vector<std::int64_t>& of_part = part.kind == Kind::first_text    ? one
                                               : part.kind == Kind::second_text ? two
                                                                                : part.ids;
    const std::int64_t count = part.kind == Kind::first_text    ? n1
                               : part.kind == Kind::second_text ? n2
                                                                : static_cast<std::int64_t>(of_part.size());
    ids.insert(ids.end(), of_part.begin(), of_part.begin() + count);
    if (types != nullptr) types->insert(types->end(), static_cast<std::size_t>(count), part.type);
  }
}

}  // namespace headlight::text
