#include <algorithm>

#include "headlight/layers/feed_forward.h"
#include "layers/feed_forward_rows.h"
#include "layers/gradient_places.h"
#include "layers/hidden_states.h"
#include "layers/saved_state.h"
#include "layers/segments.h"
#include "layers/sizes.h"
#include "ops/check.h"
#include "ops/dropout_rows.h"

namespace headlight {

namespace {

constexpr std::string_view kName = "FeedForward";

bool keeps(const SavedState& saved) noexcept { return layers::keeps_linear(saved.checkpoint()); }

}  // namespace

void FeedForward::forward(Engine& engine, View<const float, 3> x, View<float, 3> y, SavedState& saved,
                          const TrainingStep& step, View<const float, 3> residual) const {
  layers::check_training_states(kName, x, y, linear1_.in_features(), residual);
  layers::Placement size;
  size.rows(x.extent(0), x.extent(1), hidden_width());
  std::byte* memory = saved.begin(keeps(saved) ? size.bytes() : 0);
  const runtime::Scratch scratch(engine, keeps(saved) ? 0 : size.bytes(), kName);
  layers::Placement place(keeps(saved) ? memory : scratch.data());
  forward_from(engine, x, y, place.rows(x.extent(0), x.extent(1), hidden_width()), step.dropout(options_.dropout, 0),
               residual);
  saved.commit(
      {.layer = this, .made_with = layers::made_with(options_), .shape = {x.extent(0), x.extent(1), 0}, .step = step});
}

void FeedForward::forward_from(Engine& engine, View<const float, 3> x, View<float, 3> y, View<float, 3> hidden,
                               const Dropout& dropout, View<const float, 3> residual) const {
  const std::int64_t distance = layers::row_distance(hidden_width());
  const std::int64_t at_once = layers::rows_at_once(x.extent(0) * x.extent(1), hidden_width());
  const runtime::Scratch memory(engine, y ? static_cast<std::size_t>(at_once * distance) * sizeof(float) : 0, kName);
  std::int64_t first_row = 0;
  layers::for_each_matrix(
      x.extent(0),
      [&](View<const float, 2> in, View<float, 2> to, View<float, 2> out, View<const float, 2> added) {
        linear1_.forward(engine, in, to);
        for (std::int64_t first = 0; out && first < in.extent(0); first += at_once) {
          const std::int64_t count = std::min(at_once, in.extent(0) - first);
          const View<float, 2> active(reinterpret_cast<float*>(memory.data()), {count, hidden_width()}, {distance, 1});
          activate(engine, options_.activation, layers::some_rows(to, first, count), active);
          if (dropout.probability > 0) {
            ops::dropout_rows(engine, active, active, dropout, {}, first_row + first);
          }
          linear2_.forward(engine, active, layers::some_rows(out, first, count),
                           {.residual = layers::some_rows(added, first, count)});
        }
        first_row += in.extent(0);
      },
      x, hidden, y, residual);
}

void FeedForward::backward(Engine& engine, View<const float, 3> x, const SavedState& saved,
                           View<const float, 3> y_gradient, View<float, 3> x_gradient, View<const float, 3> residual) {
  layers::check_saved(kName, saved, this, layers::made_with(options_), {x.extent(0), x.extent(1), 0});
  layers::check_x(kName, x, linear1_.in_features());
  ops::check_shape(kName, "y_gradient", y_gradient.shape, x.shape, "the shape of x");
  if (x_gradient) ops::check_shape(kName, "x_gradient", x_gradient.shape, x.shape, "the shape of x");
  if (residual) ops::check_shape(kName, "residual", residual.shape, x.shape, "the shape of x");
  ops::check_view(kName, "y_gradient", y_gradient);
  layers::GradientPlace(kName, "x_gradient", x_gradient)
      .apart_from("x", x)
      .same_as_or_apart_from("y_gradient", y_gradient)
      .same_as_or_apart_from("residual", residual);
  const Dropout dropout = saved.call().step.dropout(options_.dropout, 0);
  layers::Placement size;
  size.rows(x.extent(0), x.extent(1), hidden_width());
  const runtime::Scratch scratch(engine, keeps(saved) ? 0 : size.bytes(), kName);
  layers::Placement place(keeps(saved) ? saved.data() : scratch.data());
  const View<float, 3> hidden = place.rows(x.extent(0), x.extent(1), hidden_width());
  if (!keeps(saved)) forward_from(engine, x, {}, hidden, dropout, {});
  backward_from(engine, x, hidden, dropout, y_gradient, x_gradient, residual);
}

// The lines of forward_from(), from the last to the first, some rows at a time.
void FeedForward::backward_from(Engine& engine, View<const float, 3> x, View<const float, 3> hidden,
                                const Dropout& dropout, View<const float, 3> y_gradient, View<float, 3> x_gradient,
                                View<const float, 3> residual) {
  const std::int64_t distance = layers::row_distance(hidden_width());
  const std::int64_t at_once = layers::rows_at_once(x.extent(0) * x.extent(1), hidden_width());
  const auto elements = static_cast<std::size_t>(at_once * distance);
  const runtime::Scratch memory(engine, 2 * elements * sizeof(float), kName);
  auto* numbers = reinterpret_cast<float*>(memory.data());
  std::int64_t first_row = 0;
  layers::for_each_matrix(
      x.extent(0),
      [&](View<const float, 2> in, View<const float, 2> before, View<const float, 2> from, View<float, 2> to,
          View<const float, 2> added) {
        for (std::int64_t first = 0; first < in.extent(0); first += at_once) {
          const std::int64_t count = std::min(at_once, in.extent(0) - first);
          const View<float, 2> active(numbers, {count, hidden_width()}, {distance, 1});
          const View<float, 2> gradient(numbers + elements, active.shape, active.strides);
          const View<const float, 2> inactive = layers::some_rows(before, first, count);
          activate(engine, options_.activation, inactive, active);
          const bool drops = dropout.probability > 0;
          if (drops) ops::dropout_rows(engine, active, active, dropout, {}, first_row + first);

          linear2_.backward(engine, active, layers::some_rows(from, first, count), gradient);
          if (drops) ops::dropout_rows(engine, gradient, gradient, dropout, {}, first_row + first);
          activate_backward(engine, options_.activation, inactive, gradient, gradient);
          linear1_.backward(engine, layers::some_rows(in, first, count), gradient, layers::some_rows(to, first, count),
                            layers::some_rows(added, first, count));
        }
        first_row += in.extent(0);
      },
      x, hidden, y_gradient, x_gradient, residual);
}

}  // namespace headlight
