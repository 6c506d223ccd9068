#include "headlight/layers/transformer.h"
#include "layers/transformer_training_steps.h"
#include "ops/attention/check.h"

namespace headlight {

// What is kept: of the attention its own, of each step what it names, and what lies between the two.
struct TransformerEncoderLayer::Buffers {
  Buffers(const TransformerEncoderLayer& layer, std::int64_t batch, std::int64_t length, std::int64_t kept_columns,
          NumberType activations, std::byte* memory = nullptr)
      : place(memory),
        attention(place.block(
            layer.self_attention_.saved_bytes({batch, length, length, SharedInputs::all}, kept_columns, activations))),
        inner1(place.rows(batch, length, layer.self_attention_.options().width)),
        between(place.rows(batch, length, layer.self_attention_.options().width)),
        hidden(place.typed_rows(batch, length, layer.feed_forward_.hidden_width(), activations)),
        inner2(place.rows(batch, length, layer.self_attention_.options().width)) {}

  layers::Placement place;
  std::byte* attention;
  View<float, 3> inner1;
  View<float, 3> between;
  MutableTypedView<3> hidden;
  View<float, 3> inner2;
};

std::size_t TransformerEncoderLayer::saved_bytes(std::int64_t batch, std::int64_t length, std::int64_t kept_columns,
                                                 NumberType activations) const {
  return Buffers(*this, batch, length, kept_columns, activations).place.bytes();
}

void TransformerEncoderLayer::forward(Engine& engine, View<const float, 3> x, View<float, 3> y, SavedState& saved,
                                      const TrainingStep& step, const AttentionOptions& options) const {
  layers::check_training_states(type_name(), x, y, self_attention_.options().width);
  layers::check_training_options(type_name(), options);
  layers::check_rows(type_name(), saved.attention(), x.extent(0), x.extent(1));
  layers::OutputPlaces(type_name()).writes(layers::kOptions, options).apart_from("x", x).apart_from("y", y);
  const bool keeps = layers::keeps_linear(saved);
  const std::size_t bytes =
      saved_bytes(x.extent(0), x.extent(1), saved.attention().kept_columns(x.extent(1), options), saved.activations());
  std::byte* memory = saved.begin(keeps ? bytes : 0);
  const runtime::Scratch scratch(engine, keeps ? 0 : bytes, type_name());
  forward_from(engine, x, y, {keeps ? memory : scratch.data(), options, step, &saved.attention(), saved.activations()});
  saved.commit({.layer = this,
                .made_with = layers::made_with(options_),
                .shape = {x.extent(0), x.extent(1), 0},
                .step = step,
                .options = {options}});
}

void TransformerEncoderLayer::forward_from(Engine& engine, View<const float, 3> x, View<float, 3> y,
                                           const Kept& kept) const {
  const std::int64_t kept_columns = kept.attention->kept_columns(x.extent(1), kept.options);
  const Buffers buffers(*this, x.extent(0), x.extent(1), kept_columns, kept.activations, kept.memory);
  const auto dropout = [&](layers::Place place) { return kept.step.dropout(options_.dropout, place); };
  layers::training_step(
      engine, options_.norm, norm1_, x, buffers.inner1, buffers.between, dropout(layers::kSelfOutput),
      layers::rows_of_x(*kept.attention),
      [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
        self_attention_.forward_from(
            engine, in, in, in, out,
            {buffers.attention, kept.options, dropout(layers::kSelfAttention), kept.attention, kept.activations},
            residual);
      });
  layers::training_step(engine, options_.norm, norm2_, buffers.between, buffers.inner2, y,
                        dropout(layers::kFeedForward), layers::rows_of_x(*kept.attention),
                        [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
                          feed_forward_.forward_from(engine, in, out, buffers.hidden, dropout(layers::kActivation),
                                                     residual, layers::rows_of_x(*kept.attention));
                        });
}

void TransformerEncoderLayer::backward(Engine& engine, View<const float, 3> x, const SavedState& saved,
                                       View<const float, 3> y_gradient, View<float, 3> x_gradient,
                                       const HeadVisit& visit) {
  layers::check_saved(type_name(), saved, this, layers::made_with(options_), {x.extent(0), x.extent(1), 0});
  layers::check_gradients(type_name(), x, self_attention_.options().width, y_gradient, x_gradient);
  const bool keeps = layers::keeps_linear(saved);
  const AttentionOptions& options = saved.call().options[0];
  const std::size_t bytes =
      saved_bytes(x.extent(0), x.extent(1), saved.attention().kept_columns(x.extent(1), options), saved.activations());
  const runtime::Scratch scratch(engine, keeps ? 0 : bytes, type_name());
  Kept kept = {keeps ? saved.data() : scratch.data(), options, saved.call().step, &saved.attention(),
               saved.activations()};
  kept.options = ops::without_outputs(kept.options);
  if (!keeps) forward_from(engine, x, {}, kept);
  backward_from(engine, x, kept, y_gradient, x_gradient, visit);
}

// The steps of forward_from(), from the last to the first.
void TransformerEncoderLayer::backward_from(Engine& engine, View<const float, 3> x, const Kept& kept,
                                            View<const float, 3> y_gradient, View<float, 3> x_gradient,
                                            const HeadVisit& visit) {
  const std::int64_t kept_columns = kept.attention->kept_columns(x.extent(1), kept.options);
  const Buffers buffers(*this, x.extent(0), x.extent(1), kept_columns, kept.activations, kept.memory);
  const auto dropout = [&](layers::Place place) { return kept.step.dropout(options_.dropout, place); };
  const bool drops = options_.dropout > 0;
  const runtime::Scratch scratch(engine, layers::StepGradients(x, drops).place.bytes(), type_name());
  const layers::StepGradients memory(x, drops, scratch.data());
  layers::training_step_backward(
      engine, options_.norm, norm2_, buffers.between, buffers.inner2, y_gradient, x_gradient,
      dropout(layers::kFeedForward), layers::rows_of_x(*kept.attention), memory,
      [&](View<const float, 3> in, View<const float, 3> from, View<float, 3> to, View<const float, 3> residual) {
        feed_forward_.backward_from(engine, in, buffers.hidden, dropout(layers::kActivation), from, to, residual,
                                    layers::rows_of_x(*kept.attention));
      });
  layers::training_step_backward(
      engine, options_.norm, norm1_, x, buffers.inner1, x_gradient, x_gradient, dropout(layers::kSelfOutput),
      layers::rows_of_x(*kept.attention), memory,
      [&](View<const float, 3> in, View<const float, 3> from, View<float, 3> to, View<const float, 3> residual) {
        self_attention_.backward_from(
            engine, in, in, in,
            {buffers.attention, kept.options, dropout(layers::kSelfAttention), kept.attention, kept.activations}, from,
            {.query = to, .residual = residual, .visit = visit});
      });
}

}  // namespace headlight
