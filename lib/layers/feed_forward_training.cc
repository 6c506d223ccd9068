#include <algorithm>
#include <array>

#include "headlight/layers/feed_forward.h"
#include "layers/feed_forward_rows.h"
#include "layers/gradient_places.h"
#include "layers/hidden_states.h"
#include "layers/layer_names.h"
#include "layers/row_visitor.h"
#include "layers/saved_state.h"
#include "layers/segments.h"
#include "layers/sizes.h"
#include "ops/check.h"
#include "ops/rows/dropout_rows.h"

namespace headlight {

namespace {

bool keeps(const SavedState& saved) noexcept { return layers::keeps_linear(saved.checkpoint()); }

// Of `hidden`, rounded where dropout does not come first: what a product would round is stored so.
NumberType type_of_active(NumberType activations, const Dropout& dropout) noexcept {
  return dropout.probability > 0 ? NumberType::float32 : activations;
}

// active = dropout(activation(hidden)), rows counted from `first` on in all of the batch.
void activate_rows(Engine& engine, Activation activation, const TypedView<2>& hidden, const Dropout& dropout,
                   std::int64_t first, const MutableTypedView<2>& active) {
  activate(engine, activation, hidden, active);
  if (dropout.probability == 0) return;
  const View<float, 2> dropped = layers::floats_of(active);
  ops::dropout_rows(engine, dropped, dropped, dropout, {}, first);
}

}  // namespace

void FeedForward::forward(Engine& engine, View<const float, 3> x, View<float, 3> y, SavedState& saved,
                          const TrainingStep& step, View<const float, 3> residual) const {
  layers::check_training_states(layers::kFeedForwardName, x, y, linear1_.in_features(), residual);
  layers::check_rows(layers::kFeedForwardName, saved.attention(), x.extent(0), x.extent(1));
  layers::Placement size;
  size.typed_rows(x.extent(0), x.extent(1), hidden_width(), saved.activations());
  std::byte* memory = saved.begin(keeps(saved) ? size.bytes() : 0);
  const runtime::Scratch scratch(engine, keeps(saved) ? 0 : size.bytes(), layers::kFeedForwardName);
  layers::Placement place(keeps(saved) ? memory : scratch.data());
  forward_from(engine, x, y, place.typed_rows(x.extent(0), x.extent(1), hidden_width(), saved.activations()),
               step.dropout(options_.dropout, 0), residual, layers::rows_of_x(saved.attention()));
  saved.commit(
      {.layer = this, .made_with = layers::made_with(options_), .shape = {x.extent(0), x.extent(1), 0}, .step = step});
}

void FeedForward::forward_from(Engine& engine, View<const float, 3> x, View<float, 3> y,
                               const MutableTypedView<3>& hidden, const Dropout& dropout, View<const float, 3> residual,
                               const layers::RowVisitor& rows) const {
  const NumberType type = type_of_active(hidden.type, dropout);
  const std::int64_t distance = layers::row_distance(hidden_width(), type);
  const std::int64_t at_once = layers::rows_at_once(x.extent(0) * x.extent(1), hidden_width());
  const runtime::Scratch memory(engine, y ? static_cast<std::size_t>(at_once * distance) * bytes_of(type) : 0,
                                layers::kFeedForwardName);
  rows.visit(
      x.extent(0),
      [&](std::int64_t first_row, View<const float, 2> in, const MutableTypedView<2>& to, View<float, 2> out,
          View<const float, 2> added) {
        linear1_.forward_in_training(engine, hidden.type, in, to, {});
        for (std::int64_t first = 0; out && first < in.extent(0); first += at_once) {
          const std::int64_t count = std::min(at_once, in.extent(0) - first);
          const MutableTypedView<2> active(type, memory.data(), {count, hidden_width()}, {distance, 1});
          activate_rows(engine, options_.activation, layers::some_rows(to, first, count), dropout, first_row + first,
                        active);
          linear2_.forward_in_training(engine, hidden.type, active, layers::some_rows(out, first, count),
                                       {.residual = layers::some_rows(added, first, count)});
        }
      },
      x, hidden, y, residual);
}

void FeedForward::backward(Engine& engine, View<const float, 3> x, const SavedState& saved,
                           View<const float, 3> y_gradient, View<float, 3> x_gradient, View<const float, 3> residual) {
  layers::check_saved(layers::kFeedForwardName, saved, this, layers::made_with(options_),
                      {x.extent(0), x.extent(1), 0});
  layers::check_x(layers::kFeedForwardName, x, linear1_.in_features());
  ops::check_shape(layers::kFeedForwardName, "y_gradient", y_gradient.shape, x.shape, "the shape of x");
  if (x_gradient) ops::check_shape(layers::kFeedForwardName, "x_gradient", x_gradient.shape, x.shape, "the shape of x");
  if (residual) ops::check_shape(layers::kFeedForwardName, "residual", residual.shape, x.shape, "the shape of x");
  ops::check_view(layers::kFeedForwardName, "y_gradient", y_gradient);
  layers::GradientPlace(layers::kFeedForwardName, "x_gradient", x_gradient)
      .apart_from("x", x)
      .same_as_or_apart_from("y_gradient", y_gradient)
      .same_as_or_apart_from("residual", residual);
  const Dropout dropout = saved.call().step.dropout(options_.dropout, 0);
  layers::Placement size;
  size.typed_rows(x.extent(0), x.extent(1), hidden_width(), saved.activations());
  const runtime::Scratch scratch(engine, keeps(saved) ? 0 : size.bytes(), layers::kFeedForwardName);
  layers::Placement place(keeps(saved) ? saved.data() : scratch.data());
  const MutableTypedView<3> hidden = place.typed_rows(x.extent(0), x.extent(1), hidden_width(), saved.activations());
  if (!keeps(saved)) forward_from(engine, x, {}, hidden, dropout, {}, layers::rows_of_x(saved.attention()));
  backward_from(engine, x, hidden, dropout, y_gradient, x_gradient, residual, layers::rows_of_x(saved.attention()));
}

// The lines of forward_from(), from the last to the first, some rows at a time.
void FeedForward::backward_from(Engine& engine, View<const float, 3> x, const TypedView<3>& hidden,
                                const Dropout& dropout, View<const float, 3> y_gradient, View<float, 3> x_gradient,
                                View<const float, 3> residual, const layers::RowVisitor& rows) {
  const NumberType type = type_of_active(hidden.type, dropout);
  const std::int64_t at_once = layers::rows_at_once(x.extent(0) * x.extent(1), hidden_width());
  runtime::ScratchLayout layout;
  const auto active_rows = layout.add<float>(at_once, layers::row_floats(hidden_width(), type));
  const auto gradient_rows = layout.add<float>(at_once, layers::row_distance(hidden_width()));
  const runtime::Scratch memory(engine, layout.bytes(), layers::kFeedForwardName);
  const auto [weight1, bias1] = linear1_.gradients();
  const auto [weight2, bias2] = linear2_.gradients();
  rows.sum(
      engine, std::array{weight1, bias1, weight2, bias2}, x.extent(0),
      [&](std::int64_t first_row, View<const float, 2> in, const TypedView<2>& before, View<const float, 2> from,
          View<float, 2> to, View<const float, 2> added) {
        for (std::int64_t first = 0; first < in.extent(0); first += at_once) {
          const std::int64_t count = std::min(at_once, in.extent(0) - first);
          const MutableTypedView<2> active(type, active_rows.in(memory.data()), {count, hidden_width()},
                                           {layers::row_distance(hidden_width(), type), 1});
          const View<float, 2> gradient(gradient_rows.in(memory.data()), active.shape,
                                        {layers::row_distance(hidden_width()), 1});
          const TypedView<2> inactive = layers::some_rows(before, first, count);
          activate_rows(engine, options_.activation, inactive, dropout, first_row + first, active);

          linear2_.backward_in_training(engine, hidden.type, active, layers::some_rows(from, first, count), gradient,
                                        {});
          if (dropout.probability > 0) ops::dropout_rows(engine, gradient, gradient, dropout, {}, first_row + first);
          activate_backward(engine, options_.activation, inactive, gradient, gradient);
          linear1_.backward_in_training(engine, hidden.type, layers::some_rows(in, first, count), gradient,
                                        layers::some_rows(to, first, count), layers::some_rows(added, first, count));
        }
      },
      x, hidden, y_gradient, x_gradient, residual);
}

}  // namespace headlight
