#include <algorithm>
#include <array>

#include "headlight/layers/encoder.h"
#include "headlight/normalization.h"
#include "layers/layer_names.h"
#include "layers/layer_outputs.h"
#include "layers/parameter_list.h"
#include "layers/saved_state.h"
#include "layers/segments.h"
#include "layers/transformer_training_steps.h"
#include "ops/check.h"
#include "ops/rows/embedding_ids.h"
#include "simd/integers.h"

namespace headlight {

namespace {

// The embeddings' only dropout.
constexpr std::uint32_t kEmbeddings = 0;

std::int64_t segment_length(const SavedState& saved, std::int64_t layers) noexcept {
  return layers::segment_length(saved.checkpoint(), saved.k(), layers);
}

std::int64_t kept_columns_of(const EncoderInput& input, const SavedState& saved, std::int64_t tokens) noexcept {
  return saved.attention().kept_columns(tokens, {.query_offsets = input.offsets});
}

View<float, 2> rows_of(const View<float, 3>& x) noexcept { return layers::one_matrix(x); }

// embed_backward(), whose sums over rows go as the visitor does.
void embed_rows_backward(Engine& engine, const View<const float, 2>& gradient,
                         std::span<const EmbeddingGradient> tables, const layers::RowVisitor& rows) {
  std::array<std::span<float>, 3> gradients{};
  for (std::size_t t = 0; t < tables.size(); ++t) gradients[t] = layers::values_of(tables[t].table);
  rows.sum_ranges(engine, gradients, gradient.extent(0), [&](std::int64_t first, std::int64_t count) {
    std::array<EmbeddingGradient, 3> of_range{};
    for (std::size_t t = 0; t < tables.size(); ++t) {
      of_range[t] = {tables[t].table,
                     tables[t].ids.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count))};
    }
    embed_backward(engine, layers::some_rows(gradient, first, count), std::span(of_range).first(tables.size()));
  });
}

}  // namespace

// What is kept: the sum of the embeddings where it is normalised, the inputs of layers, and of those that are not
// computed again everything.
struct Encoder::Buffers {
  // `segment`: the input of every segment-th layer alone; 0: all inputs, and each layer's own.
  Buffers(const Encoder& encoder, std::int64_t tokens, std::int64_t segment, std::int64_t kept_columns,
          NumberType activations, std::byte* memory = nullptr)
      : place(memory), tokens_(tokens), width_(encoder.options_.width), every_(std::max<std::int64_t>(segment, 1)) {
    if (encoder.options_.norm == Norm::post) embedded = place.rows(1, tokens, width_);
    const std::int64_t layers = encoder.options_.layers;
    inputs_ = place.block(row_bytes() * static_cast<std::size_t>(divide_up(layers, every_)));
    last = place.rows(1, tokens, width_);
    if (layers == 0 || segment != 0) return;
    layer_bytes_ = encoder.layers_.front().saved_bytes(1, tokens, kept_columns, activations);
    states_ = place.block(layer_bytes_ * static_cast<std::size_t>(layers));
  }

  // The input of a layer; only of those that are kept.
  [[nodiscard]] View<float, 3> input(std::int64_t layer) const noexcept { return row(inputs_, layer / every_); }
  [[nodiscard]] std::byte* state(std::int64_t layer) const noexcept {
    return states_ == nullptr ? nullptr : states_ + layer_bytes_ * static_cast<std::size_t>(layer);
  }
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    layers::Placement size;
    size.rows(1, tokens_, width_);
    return size.bytes();
  }
  [[nodiscard]] View<float, 3> row(std::byte* from, std::int64_t index) const noexcept {
    return layers::Placement(from == nullptr ? nullptr : from + row_bytes() * static_cast<std::size_t>(index))
        .rows(1, tokens_, width_);
  }

  layers::Placement place;
  View<float, 3> embedded{};
  View<float, 3> last{};  // what the last layer gives

 private:
  std::int64_t tokens_;
  std::int64_t width_;
  std::int64_t every_;
  std::byte* inputs_ = nullptr;
  std::byte* states_ = nullptr;
  std::size_t layer_bytes_ = 0;
};

TransformerEncoderLayer::Kept Encoder::kept_of(const EncoderInput& input, const SavedState& saved,
                                               const TrainingStep& step, std::int64_t layer, std::byte* memory) const {
  TransformerEncoderLayer::Kept kept = {.memory = memory, .step = step_of(step, layer)};
  kept.options.query_offsets = input.offsets;
  kept.attention = &saved.attention();
  kept.activations = saved.activations();
  return kept;
}

// A step of the encoder as its part number `layer` sees it; the embeddings come behind the layers.
TrainingStep Encoder::step_of(const TrainingStep& step, std::int64_t layer) const noexcept {
  const auto parts = static_cast<std::uint32_t>(options_.layers + 1);
  return {step.seed, step.step, step.layer * parts + static_cast<std::uint32_t>(layer), step.layers * parts};
}

void Encoder::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, SavedState& saved,
                      const TrainingStep& step) const {
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  const layers::RowVisitor row_visitor = layers::rows_of_x(saved.attention());
  layers::check_rows(layers::kEncoderName, saved.attention(), 1, tokens);
  layers::check_token_offsets(layers::kEncoderName, input, row_visitor.whole_length(tokens));
  check(input, hidden, {}, {});
  const std::int64_t segment = segment_length(saved, options_.layers);
  const std::int64_t kept_columns = kept_columns_of(input, saved, tokens);
  const NumberType activations = saved.activations();
  const std::size_t bytes = Buffers(*this, tokens, segment, kept_columns, activations).place.bytes();
  const Buffers buffers(*this, tokens, segment, kept_columns, activations, saved.begin(bytes));
  // Where layers are computed again, two buffers take turns as the inputs that are not kept, and one holds what a layer
  // would keep.
  const std::size_t again = segment == 0 ? 0 : layers_.front().saved_bytes(1, tokens, kept_columns, activations);
  const std::size_t between = segment <= 1 ? 0 : 2 * buffers.row_bytes();
  const runtime::Scratch scratch(engine, again + between, layers::kEncoderName);
  const auto input_of = [&](std::int64_t layer) {
    if (layer == options_.layers) return buffers.last;
    return segment <= 1 || layer % segment == 0 ? buffers.input(layer) : buffers.row(scratch.data() + again, layer % 2);
  };

  const View<float, 3> first = input_of(0);
  const View<float, 3> embedded = options_.norm == Norm::post ? buffers.embedded : first;
  embed_tokens(engine, input, rows_of(embedded));
  if (options_.norm == Norm::post) norm_.forward(engine, rows_of(embedded), rows_of(first));
  const Dropout dropout = step_of(step, options_.layers).dropout(options_.dropout, kEmbeddings);
  if (dropout.probability > 0) layers::drop(engine, dropout, first, first, {}, row_visitor);
  for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
    std::byte* memory = segment == 0 ? buffers.state(layer) : scratch.data();
    layers_[static_cast<std::size_t>(layer)].forward_from(engine, input_of(layer), input_of(layer + 1),
                                                          kept_of(input, saved, step, layer, memory));
  }
  const View<const float, 2> last = rows_of(buffers.last);
  if (options_.norm == Norm::pre) {
    norm_.forward(engine, last, hidden);
  } else {
    for (std::int64_t n = 0; n < tokens; ++n) std::copy_n(&last(n, 0), options_.width, &hidden(n, 0));
  }
  saved.commit({.layer = this,
                .made_with = layers::made_with(options_),
                .shape = {1, tokens, 0},
                .step = step,
                .options = {AttentionOptions{.query_offsets = input.offsets}}});
}

void Encoder::backward(Engine& engine, const EncoderInput& input, const SavedState& saved,
                       View<const float, 2> hidden_gradient, HeadVisitor* visitor) {
  layers::check_training(layers::kEncoderName, word_embeddings_.gradient());
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  layers::check_saved(layers::kEncoderName, saved, this, layers::made_with(options_), {1, tokens, 0});
  const std::span<const std::int64_t> forward_offsets = saved.call().options[0].query_offsets;
  // What is kept is laid out by the sequences, and a wrong id would be found when the layers have learned already.
  if (!std::equal(forward_offsets.begin(), forward_offsets.end(), input.offsets.begin(), input.offsets.end())) {
    ops::fail(layers::kEncoderName, "offsets are not those that forward() was given, expected the same");
  }
  const std::array<EmbeddingGradient, 3> every_table = {
      EmbeddingGradient{word_embeddings_.gradient(), input.ids},
      EmbeddingGradient{position_embeddings_.gradient(), input.positions},
      EmbeddingGradient{token_type_embeddings_.gradient(), input.token_types}};
  const auto tables = std::span(every_table).first(options_.token_types > 0 ? 3 : 2);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    ops::check_embedding_ids(layers::kEncoderName, "hidden", tables[t].ids, t, tokens, tables[t].table.extent(0));
  }
  ops::check_view(layers::kEncoderName, "hidden_gradient", hidden_gradient);
  const std::array<std::int64_t, 2> expected = {tokens, options_.width};
  ops::check_shape(layers::kEncoderName, "hidden_gradient", hidden_gradient.shape, expected, "[N, E]");
  const std::int64_t segment = segment_length(saved, options_.layers);
  const Buffers buffers(*this, tokens, segment, kept_columns_of(input, saved, tokens), saved.activations(),
                        saved.data());

  const layers::RowVisitor row_visitor = layers::rows_of_x(saved.attention());
  layers::Placement size;
  size.rows(1, tokens, options_.width);
  const runtime::Scratch scratch(engine, size.bytes(), layers::kEncoderName);
  const View<float, 3> gradient = layers::Placement(scratch.data()).rows(1, tokens, options_.width);
  const View<float, 2> rows = rows_of(gradient);
  if (options_.norm == Norm::pre) {
    layers::normalize_backward(engine, norm_, buffers.last, layers::one_sample(hidden_gradient), gradient, {},
                               row_visitor);
  } else {
    for (std::int64_t n = 0; n < tokens; ++n) std::copy_n(&hidden_gradient(n, 0), options_.width, &rows(n, 0));
  }
  if (segment == 0) {
    for (std::int64_t layer = options_.layers - 1; layer >= 0; --layer) {
      const auto kept = kept_of(input, saved, saved.call().step, layer, buffers.state(layer));
      layers_[static_cast<std::size_t>(layer)].backward_from(engine, buffers.input(layer), kept, gradient, gradient,
                                                             {visitor, layer});
    }
  } else {
    for (std::int64_t first = (options_.layers - 1) / segment * segment; first >= 0; first -= segment) {
      segment_backward(engine, input, saved, buffers.input(first), gradient, first,
                       std::min(first + segment, options_.layers), visitor);
    }
  }

  const Dropout dropout = step_of(saved.call().step, options_.layers).dropout(options_.dropout, kEmbeddings);
  if (dropout.probability > 0) layers::drop(engine, dropout, gradient, gradient, {}, row_visitor);
  if (options_.norm == Norm::post) {
    layers::normalize_backward(engine, norm_, buffers.embedded, gradient, gradient, {}, row_visitor);
  }
  embed_rows_backward(engine, rows, tables, row_visitor);
}

// Layers [first, end) forward again from x, the input of the first one, and then backward.
void Encoder::segment_backward(Engine& engine, const EncoderInput& input, const SavedState& saved,
                               View<const float, 3> x, View<float, 3> gradient, std::int64_t first, std::int64_t end,
                               HeadVisitor* visitor) {
  const std::size_t state =
      layers_.front().saved_bytes(1, x.extent(1), kept_columns_of(input, saved, x.extent(1)), saved.activations());
  layers::Placement row;
  row.rows(1, x.extent(1), options_.width);
  const auto count = static_cast<std::size_t>(end - first);
  const runtime::Scratch scratch(engine, count * state + (count - 1) * row.bytes(), layers::kEncoderName);
  const auto state_of = [&](std::int64_t layer) {
    return kept_of(input, saved, saved.call().step, layer,
                   scratch.data() + static_cast<std::size_t>(layer - first) * state);
  };
  const auto input_of = [&](std::int64_t layer) -> View<const float, 3> {
    if (layer == first) return x;
    const std::size_t offset = count * state + static_cast<std::size_t>(layer - first - 1) * row.bytes();
    return layers::Placement(scratch.data() + offset).rows(1, x.extent(1), options_.width);
  };
  for (std::int64_t layer = first; layer < end; ++layer) {
    const View<const float, 3> next = layer + 1 < end ? input_of(layer + 1) : View<const float, 3>();
    layers_[static_cast<std::size_t>(layer)].forward_from(
        engine, input_of(layer), {const_cast<float*>(next.data), next.shape, next.strides}, state_of(layer));
  }
  for (std::int64_t layer = end - 1; layer >= first; --layer) {
    layers_[static_cast<std::size_t>(layer)].backward_from(engine, input_of(layer), state_of(layer), gradient, gradient,
                                                           {visitor, layer});
  }
}

}  // namespace headlight
