// Scores of pairs of texts.
#include <stdexcept>
#include <string>
#include <utility>

#include "headlight/models/errors.h"
#include "headlight/models/text_encoder.h"
#include "models/out_view.h"
#include "models/score_head.h"
#include "models/text_encoder_check.h"
#include "models/text_network.h"
#include "models/text_vectors.h"
#include "models/tokenizers/text_tokenizer.h"
#include "models/workspace.h"

namespace headlight::models {
namespace {

[[noreturn]] void refuse_score(const std::string& message) { fail_call("score: " + message); }

}  // namespace

std::int64_t TextEncoder::score_width() const noexcept { return head_ == nullptr ? 0 : head_->labels; }

Tensor<float, 2> TextEncoder::score(Engine& engine, std::span<const TextPair> pairs) const {
  Tensor<float, 2> out({static_cast<std::int64_t>(pairs.size()), score_width()});
  score(engine, pairs, out);
  return out;
}

void TextEncoder::score(Engine& engine, std::span<const TextPair> pairs, View<float, 2> out) const {
  if (head_ == nullptr) {
    refuse_score(
        "the model has no head for classification, expected architectures of config.json that end in "
        "ForSequenceClassification, or cls.output.weight and pooling_type 4 of a GGUF file");
  }
  if (!head_->unread.empty()) refuse_score(head_->unread);
  check_out(out, {static_cast<std::int64_t>(pairs.size()), head_->labels});
  if (options_.embed_max_length < tokenizer_->tokens_around(true)) {
    refuse_score("embed_max_length is " + std::to_string(options_.embed_max_length) + ", expected room for the " +
                 std::to_string(tokenizer_->tokens_around(true)) + " tokens around two texts");
  }
  for (std::size_t number = 0; number < pairs.size(); ++number) {
    for (const std::string_view text : {pairs[number].first, pairs[number].second}) {
      try {
        Tokenizer::check(text);
      } catch (const std::invalid_argument& error) {
        refuse_score("pair " + std::to_string(number) + ": " + error.what());
      }
    }
  }
  const auto workspace = workspaces_->take();
  const auto add = [&](std::size_t number, TokenBatch& batch) {
    batch.add_ids(network_->positions(), [&](std::vector<std::int64_t>& ids, std::vector<std::int64_t>& types) {
      tokenizer_->append_pair(pairs[number].first, pairs[number].second, options_.embed_max_length, workspace->text(),
                              ids, types);
    });
  };
  workspace->run(engine, *network_, pairs.size(), add,
                 [&](std::size_t first, const EncoderInput& input, View<const float, 2> hidden) {
                   const View<float, 2> rows = rows_of_batch(out, first, input);
                   hidden = through_layers(engine, head_->of_tokens, hidden, workspace->vectors());
                   make_vectors(engine, head_->pooled, 0, false, input, hidden, rows, workspace->vectors(),
                                head_->padding);
                   apply_function(head_->function, rows);
                 });
}

}  // namespace headlight::models
