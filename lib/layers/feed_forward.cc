#include "headlight/layers/feed_forward.h"

#include <algorithm>
#include <string>

#include "headlight/out_of_memory.h"
#include "layers/checked_options.h"
#include "layers/feed_forward_rows.h"
#include "layers/handed_on.h"
#include "layers/hidden_states.h"
#include "layers/layer_names.h"
#include "layers/rows.h"
#include "layers/sizes.h"
#include "runtime/parallel.h"

namespace headlight {

FeedForwardOptions layers::checked(FeedForwardOptions options) {
  layers::at_least(1, layers::kFeedForwardName, "width", options.width);
  if (options.hidden_width == 0 && __builtin_mul_overflow(4, options.width, &options.hidden_width)) {
    throw OutOfMemory(std::string(layers::kFeedForwardName) + " of width " + std::to_string(options.width), SIZE_MAX);
  }
  layers::at_least(1, layers::kFeedForwardName, "hidden_width", options.hidden_width);
  layers::probability(layers::kFeedForwardName, "dropout", options.dropout);
  return options;
}

FeedForward::FeedForward(const FeedForwardOptions& options)
    : options_(layers::checked(options)),
      linear1_(options_.width, options_.hidden_width, options_.bias),
      linear2_(options_.hidden_width, options_.width, options_.bias) {}

void FeedForward::forward(Engine& engine, View<const float, 3> x, View<float, 3> y,
                          View<const float, 3> residual) const {
  layers::check_hidden_states(layers::kFeedForwardName, x, y, linear1_.in_features(), residual);

  const std::int64_t hidden_width = linear1_.out_features();
  const std::int64_t at_once =
      layers::rows_at_once(layers::row_count(layers::kFeedForwardName, x.extent(0), x.extent(1)), hidden_width);
  const NumberType type = hidden_type(engine);
  const runtime::Scratch memory(engine, hidden_bytes(engine, at_once), layers::kFeedForwardName);
  layers::for_each_matrix(
      x.extent(0),
      [&](View<const float, 2> in, View<float, 2> out, View<const float, 2> added) {
        for (std::int64_t first = 0; first < in.extent(0); first += at_once) {
          const std::int64_t count = std::min(at_once, in.extent(0) - first);
          const MutableTypedView<2> hidden(type, memory.data(), {count, hidden_width},
                                           {layers::row_distance(hidden_width, type), 1});
          linear1_.forward_typed(engine, layers::some_rows(in, first, count), hidden,
                                 {.activation = options_.activation});
          linear2_.forward_typed(engine, hidden, layers::some_rows(out, first, count),
                                 {.residual = layers::some_rows(added, first, count)});
        }
      },
      x, y, residual);
}

NumberType FeedForward::hidden_type(const Engine& engine) const noexcept {
  return layers::handed_to_product(engine, linear1_.product_type(), linear2_.product_type());
}

std::size_t FeedForward::hidden_bytes(const Engine& engine, std::int64_t rows) const noexcept {
  return static_cast<std::size_t>(rows * layers::row_floats(linear1_.out_features(), hidden_type(engine))) *
         sizeof(float);
}

std::size_t FeedForward::workspace_bytes(const Engine& engine, std::int64_t batch, std::int64_t length) const {
  const std::int64_t at_once =
      layers::rows_at_once(layers::row_count(layers::kFeedForwardName, batch, length), linear1_.out_features());
  return hidden_bytes(engine, at_once) +
         std::max(linear1_.workspace_bytes(engine, at_once), linear2_.workspace_bytes(engine, at_once));
}

void FeedForward::reserve(Engine& engine, std::int64_t batch, std::int64_t length) const {
  const std::int64_t at_once =
      layers::rows_at_once(layers::row_count(layers::kFeedForwardName, batch, length), linear1_.out_features());
  const runtime::Scratch memory(engine, hidden_bytes(engine, at_once), layers::kFeedForwardName);
  linear1_.reserve(engine, at_once);
  linear2_.reserve(engine, at_once);
}

void FeedForward::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                    const Weights* named) {
  linear1_.append_parameters(prefix + "linear1.", list, named);
  linear2_.append_parameters(prefix + "linear2.", list, named);
}

void FeedForward::initialize_from(layers::Initializer& initializer) {
  linear1_.initialize_from(initializer);
  linear2_.initialize_from(initializer);
}

void FeedForward::set_open(bool open) noexcept {
  linear1_.set_open(open);
  linear2_.set_open(open);
}

void FeedForward::make_gradients(bool wanted) {
  linear1_.make_gradients(wanted);
  linear2_.make_gradients(wanted);
}

}  // namespace headlight
