#include "tools/headlight/heads/texts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/headlight/demonstration/grammar.h"
#include "tools/headlight/heads/example_texts.h"
#include "tools/headlight/support/text_tokens.h"

namespace headlight::program {
namespace {

constexpr std::int64_t kTokens = 1024;
constexpr std::int64_t kWeights = (std::int64_t{16} << 20) / static_cast<std::int64_t>(sizeof(float));

}  // namespace

TextSource usual_texts(bool is_demonstration) {
  constexpr std::uint64_t kSeed = 1, kSentences = 400;
  if (!is_demonstration) return TextSource({std::begin(kExampleTexts), std::end(kExampleTexts)});
  std::vector<std::string> texts{"The animal didn't cross the street because it was too tired."};
  for (std::uint64_t number = 0; texts.size() < kSentences; ++number) {
    texts.push_back(text_of(demonstration::Grammar::sentence(kSeed, number, demonstration::Part::held_out)));
  }
  return TextSource(std::move(texts));
}

const models::Sequence* TextBatches::sequence() {
  if (!waiting_.empty()) return &waiting_;
  if (!texts_.next(text_)) return nullptr;
  const TextTokens tokens = first_tokens(model_, text_, model_.options().max_length);
  was_cut_ = tokens.cut;
  const auto length = static_cast<std::int64_t>(tokens.ids.size());
  const std::vector<std::int64_t> offsets = {0, length};
  for (const std::int64_t place : model_.positions(tokens.ids, offsets)) {
    waiting_.push_back({tokens.ids[waiting_.size()], static_cast<std::int64_t>(waiting_.size()), place});
  }
  return &waiting_;
}

bool TextBatches::next(TextBatch& batch) {
  batch = {};
  batch.first = at_;
  batch.around = around_;
  const EncoderOptions& options = model_.options().encoder;
  while (const models::Sequence* const next = sequence()) {
    const auto length = static_cast<std::int64_t>(next->size());
    const std::int64_t tokens = batch.tokens + length;
    const std::int64_t longest = std::max(batch.longest, length);
    const bool fits = tokens <= kTokens && options.layers * options.heads * tokens * longest <= kWeights;
    if (!fits && !batch.texts.empty()) break;
    batch.tokens = tokens;
    batch.longest = longest;
    batch.cut += was_cut_ ? 1 : 0;
    batch.texts.push_back(std::move(waiting_));
    waiting_.clear();
    ++at_;
  }
  return !batch.texts.empty();
}

}  // namespace headlight::program
