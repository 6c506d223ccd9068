#include "headlight/layers/transformer.h"
#include "layers/gradient_places.h"
#include "layers/transformer_training_steps.h"
#include "ops/attention/check.h"

namespace headlight {

// What is kept: of each attention its own, of each step what it names, and what lies between the steps.
struct TransformerDecoderLayer::Buffers {
  // Of the state what it was made with alone counts.
  Buffers(const TransformerDecoderLayer& layer, const SavedState::Call& call, const SavedState& saved,
          std::byte* memory = nullptr)
      : Buffers(layer, call.shape, saved.attention().kept_columns(call.shape[1], call.options[0]),
                saved.attention().of_memory().kept_columns(call.shape[2], call.options[1]), saved.activations(),
                memory) {}
  // `shape` is [B, L, Lm].
  Buffers(const TransformerDecoderLayer& layer, const std::array<std::int64_t, 3>& shape, std::int64_t kept_columns,
          std::int64_t kept_memory_columns, NumberType activations, std::byte* memory)
      : place(memory),
        self_attention(place.block(layer.self_attention_.saved_bytes({shape[0], shape[1], shape[1], SharedInputs::all},
                                                                     kept_columns, activations))),
        memory_attention(place.block(layer.memory_attention_.saved_bytes(
            {shape[0], shape[1], shape[2], SharedInputs::key_and_value}, kept_memory_columns, activations))),
        hidden(place.typed_rows(shape[0], shape[1], layer.feed_forward_.hidden_width(), activations)) {
    for (View<float, 3>* rows : {&inner1, &between1, &inner2, &between2, &inner3}) {
      *rows = place.rows(shape[0], shape[1], layer.self_attention_.options().width);
    }
  }

  layers::Placement place;
  std::byte* self_attention;
  std::byte* memory_attention;
  MutableTypedView<3> hidden;
  View<float, 3> inner1, between1, inner2, between2, inner3;
};

void TransformerDecoderLayer::forward(Engine& engine, View<const float, 3> x, View<const float, 3> memory,
                                      View<float, 3> y, SavedState& saved, const TrainingStep& step,
                                      const AttentionOptions& self_options,
                                      const AttentionOptions& memory_options) const {
  const std::int64_t width = self_attention_.options().width;
  const ops::Extent y_extent = layers::check_training_states(type_name(), x, y, width).y;
  layers::check_training_options(type_name(), self_options);
  layers::check_training_options(type_name(), memory_options);
  const ops::Extent memory_extent = layers::check_memory(type_name(), memory, x.extent(0), width);
  ops::check_disjoint(type_name(), "y", y_extent, "memory", memory_extent);
  layers::check_decoder_outputs(type_name(), self_options, memory_options, x, memory, y);
  layers::check_rows(type_name(), saved.attention(), x.extent(0), x.extent(1), memory.extent(1));
  const bool keeps = layers::keeps_linear(saved);
  SavedState::Call call = {.layer = this,
                           .made_with = layers::made_with(options_),
                           .shape = {x.extent(0), x.extent(1), memory.extent(1)},
                           .step = step,
                           .options = {self_options, memory_options}};
  const std::size_t bytes = Buffers(*this, call, saved).place.bytes();
  std::byte* kept = saved.begin(keeps ? bytes : 0);
  const runtime::Scratch scratch(engine, keeps ? 0 : bytes, type_name());
  forward_from(engine, x, memory, y, call, keeps ? kept : scratch.data(), saved);
  saved.commit(call);
}

void TransformerDecoderLayer::forward_from(Engine& engine, View<const float, 3> x, View<const float, 3> memory,
                                           View<float, 3> y, const SavedState::Call& call, std::byte* kept,
                                           const SavedState& saved) const {
  const layers::RowVisitor rows = layers::rows_of_x(saved.attention());
  const Buffers buffers(*this, call, saved, kept);
  const auto dropout = [&](layers::Place place) { return call.step.dropout(options_.dropout, place); };
  layers::training_step(
      engine, options_.norm, norm1_, x, buffers.inner1, buffers.between1, dropout(layers::kSelfOutput), rows,
      [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
        self_attention_.forward_from(engine, in, in, in, out,
                                     {buffers.self_attention, call.options[0], dropout(layers::kSelfAttention),
                                      &saved.attention(), saved.activations()},
                                     residual);
      });
  layers::training_step(
      engine, options_.norm, norm2_, buffers.between1, buffers.inner2, buffers.between2, dropout(layers::kMemoryOutput),
      rows, [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
        memory_attention_.forward_from(engine, in, memory, memory, out,
                                       {buffers.memory_attention, call.options[1], dropout(layers::kMemoryAttention),
                                        &saved.attention().of_memory(), saved.activations()},
                                       residual);
      });
  layers::training_step(
      engine, options_.norm, norm3_, buffers.between2, buffers.inner3, y, dropout(layers::kFeedForward), rows,
      [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
        feed_forward_.forward_from(engine, in, out, buffers.hidden, dropout(layers::kActivation), residual, rows);
      });
}

// The steps of forward_from(), from the last to the first.
void TransformerDecoderLayer::backward(Engine& engine, View<const float, 3> x, View<const float, 3> memory,
                                       const SavedState& saved, View<const float, 3> y_gradient,
                                       View<float, 3> x_gradient, View<float, 3> memory_gradient) {
  SavedState::Call call = saved.call();
  layers::check_saved(type_name(), saved, this, layers::made_with(options_),
                      {x.extent(0), x.extent(1), memory.extent(1)});
  const std::int64_t width = self_attention_.options().width;
  layers::check_gradients(type_name(), x, width, y_gradient, x_gradient);
  layers::check_memory(type_name(), memory, x.extent(0), width);
  layers::GradientPlace(type_name(), "x_gradient", x_gradient).apart_from("memory", memory);
  if (memory_gradient) {
    ops::check_shape(type_name(), "memory_gradient", memory_gradient.shape, memory.shape, "the shape of memory");
  }
  layers::GradientPlace(type_name(), "memory_gradient", memory_gradient)
      .apart_from("x", x)
      .apart_from("memory", memory)
      .apart_from("y_gradient", y_gradient)
      .apart_from("x_gradient", x_gradient);
  const bool keeps = layers::keeps_linear(saved);
  const runtime::Scratch again(engine, keeps ? 0 : Buffers(*this, call, saved).place.bytes(), type_name());
  std::byte* kept = keeps ? saved.data() : again.data();
  for (AttentionOptions& options : call.options) options = ops::without_outputs(options);
  if (!keeps) forward_from(engine, x, memory, {}, call, kept, saved);

  const layers::RowVisitor rows = layers::rows_of_x(saved.attention());
  const Buffers buffers(*this, call, saved, kept);
  const auto dropout = [&](layers::Place place) { return call.step.dropout(options_.dropout, place); };
  const bool drops = options_.dropout > 0;
  const runtime::Scratch scratch(engine, layers::StepGradients(x, drops).place.bytes(), type_name());
  const layers::StepGradients gradients(x, drops, scratch.data());
  layers::training_step_backward(
      engine, options_.norm, norm3_, buffers.between2, buffers.inner3, y_gradient, x_gradient,
      dropout(layers::kFeedForward), rows, gradients,
      [&](View<const float, 3> in, View<const float, 3> from, View<float, 3> to, View<const float, 3> residual) {
        feed_forward_.backward_from(engine, in, buffers.hidden, dropout(layers::kActivation), from, to, residual, rows);
      });
  layers::training_step_backward(
      engine, options_.norm, norm2_, buffers.between1, buffers.inner2, x_gradient, x_gradient,
      dropout(layers::kMemoryOutput), rows, gradients,
      [&](View<const float, 3> in, View<const float, 3> from, View<float, 3> to, View<const float, 3> residual) {
        memory_attention_.backward_from(
            engine, in, memory, memory,
            {buffers.memory_attention, call.options[1], dropout(layers::kMemoryAttention),
             &saved.attention().of_memory(), saved.activations()},
            from, {.query = to, .key = memory_gradient, .residual = residual, .accumulate_key_and_value = true});
      });
  layers::training_step_backward(
      engine, options_.norm, norm1_, x, buffers.inner1, x_gradient, x_gradient, dropout(layers::kSelfOutput), rows,
      gradients,
      [&](View<const float, 3> in, View<const float, 3> from, View<float, 3> to, View<const float, 3> residual) {
        self_attention_.backward_from(engine, in, in, in,
                                      {buffers.self_attention, call.options[0], dropout(layers::kSelfAttention),
                                       &saved.attention(), saved.activations()},
                                      from, {.query = to, .residual = residual});
      });
}

}  // namespace headlight
