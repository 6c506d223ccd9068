#include <algorithm>
#include <array>
#include <span>

#include "headlight/layers/encoder.h"
#include "layers/encoder_state.h"
#include "layers/layer_names.h"
#include "layers/layer_outputs.h"
#include "layers/row_visitor.h"
#include "layers/saved_state.h"
#include "ops/check.h"
#include "ops/rows/embedding_ids.h"

namespace headlight {

void Encoder::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, SavedState& saved,
                      const TrainingStep& step) const {
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  layers::check_rows(layers::kEncoderName, saved.attention(), 1, tokens);
  layers::check_token_offsets(layers::kEncoderName, input, layers::rows_of_x(saved.attention()).whole_length(tokens));
  check(input, hidden, {}, {});
  state_->graph.forward(engine, {.tokens = input}, layers::one_sample(hidden), saved, step);
  saved.commit({.layer = this,
                .made_with = layers::made_with(options_),
                .shape = {1, tokens, 0},
                .step = step,
                .options = {AttentionOptions{.query_offsets = input.offsets}}});
}

void Encoder::backward(Engine& engine, const EncoderInput& input, const SavedState& saved,
                       View<const float, 2> hidden_gradient, HeadVisitor* visitor) {
  state_->graph.parameters().check_training();
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  layers::check_saved(layers::kEncoderName, saved, this, layers::made_with(options_), {1, tokens, 0});
  // What is kept is laid out by the sequences, and a wrong id would be found when the layers have learned already.
  if (!std::ranges::equal(saved.call().options[0].query_offsets, input.offsets)) {
    ops::fail(layers::kEncoderName, "offsets are not those that forward() was given, expected the same");
  }
  const std::array<std::span<const std::int64_t>, 3> ids = {input.ids, input.positions, input.token_types};
  const std::array<std::int64_t, 3> rows = {options_.vocabulary, options_.max_positions, options_.token_types};
  for (std::size_t t = 0; t < (options_.token_types > 0 ? 3u : 2u); ++t) {
    ops::check_embedding_ids(layers::kEncoderName, "hidden", ids[t], t, tokens, rows[t]);
  }
  ops::check_view(layers::kEncoderName, "hidden_gradient", hidden_gradient);
  const std::array<std::int64_t, 2> expected = {tokens, options_.width};
  ops::check_shape(layers::kEncoderName, "hidden_gradient", hidden_gradient.shape, expected, "[N, E]");
  state_->graph.backward(engine, {.tokens = input}, saved, layers::one_sample(hidden_gradient), {}, {visitor});
}

}  // namespace headlight
