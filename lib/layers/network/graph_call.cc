// Where values and gradients lie in a pass.
#include <algorithm>

#include "layers/network/graph.h"
#include "layers/row_visitor.h"
#include "layers/rows.h"
#include "ops/rows/dropout_rows.h"
#include "ops/rows/scale.h"

namespace headlight::layers {

namespace {

MutableTypedView<2> some_columns(const View<float, 2>& rows, const Slice& slice) noexcept {
  return View<float, 2>(rows.data + slice.first, {rows.extent(0), slice.columns}, rows.strides);
}

// Where there are no rows there is no memory, and nothing behind it.
void* numbers_behind(std::byte* memory, std::int64_t numbers, NumberType type) noexcept {
  return memory == nullptr ? nullptr : kernels::numbers_behind(static_cast<void*>(memory), numbers, type);
}

}  // namespace

GraphCall::GraphCall(Engine& engine, const Graph& graph, const GraphInput& input, View<float, 3> y,
                     const BufferPlaces& places, const GraphTraining* training) noexcept
    : engine_(engine),
      graph_(graph),
      input_(input),
      y_(y),
      samples_lie_apart_(!is_one_matrix(y) || !is_one_matrix(input.x) || !is_one_matrix(input.access.scaled_outputs)),
      places_(places),
      training_(training),
      plan_(training == nullptr ? nullptr : &graph.training(*training)) {}

GraphCall::GraphCall(const GraphCall& whole, const GraphInput& input, const RowRange& rows) noexcept
    : GraphCall(whole.engine_, whole.graph_, input, one_sample(some_rows(one_matrix(whole.y_), rows.first, rows.count)),
                whole.places_, nullptr) {
  first_row_ = rows.first;
  memory_ = whole.memory_;
}

std::string_view GraphCall::name() const noexcept { return graph_.name(); }

// Where the next block's input is.
std::byte* GraphCall::output_of_block(int block) const noexcept {
  const std::size_t bytes = plan_->output().bytes(tokens());
  if (const std::int64_t number = plan_->kept_output(training_->segment, block); number >= 0) {
    return training_->kept + plan_->throughout().bytes(tokens()) + static_cast<std::size_t>(number) * bytes;
  }
  const int number = memory_.outputs_take_turns ? block % 2 : block - memory_.first_block;
  return memory_.outputs + static_cast<std::size_t>(number) * bytes;
}

std::byte* GraphCall::kept(int value) const noexcept {
  const TrainingPlan::Place& place = plan_->of(value);
  const int block = graph_.value(value).block;
  switch (place.keeping) {
    case Keeping::none:
      return nullptr;
    case Keeping::throughout:
      return training_->kept + place.before.bytes(tokens());
    case Keeping::of_block: {
      const RowSpace before = plan_->before_block(block) - plan_->before_block(memory_.first_block) + place.before;
      return memory_.of_blocks + before.bytes(tokens());
    }
    case Keeping::output_of_block:
      return output_of_block(block);
    case Keeping::again: {
      std::byte* const local = memory_.gradients[static_cast<std::size_t>(Staying::local)];
      return local == nullptr ? nullptr : local + place.before.bytes(graph_.rows_at_once(tokens()));
    }
  }
  return nullptr;
}

MutableTypedView<2> GraphCall::at(const Slice& slice, const RowRange& rows) const noexcept {
  if (!slice) return {};
  const Value& value = graph_.value(slice.value);
  if (value.is_given) {
    const View<const float, 2> x = rows_of_samples(input_.x, rows.first, rows.count);
    return some_columns({const_cast<float*>(x.data), x.shape, x.strides}, slice);  // which nobody writes
  }
  std::byte* const data = training_ != nullptr ? kept(slice.value) : nullptr;
  const ValuePlace& place = graph_.buffers().of(slice.value);
  if (data == nullptr && place.is_hidden) return some_columns(rows_of_samples(y_, rows.first, rows.count), slice);
  const NumberType type =
      training_ != nullptr ? type_in_training(value, training_->activations) : type_of(value, engine_);
  const auto rows_in = [&](std::byte* first, std::int64_t first_row) -> MutableTypedView<2> {
    const std::int64_t distance = row_distance(value.columns, type);
    return {type,
            numbers_behind(first, first_row * distance + slice.first, type),
            {rows.count, slice.columns},
            {distance, 1}};
  };
  if (data != nullptr) return rows_in(data, plan_->of(slice.value).keeping == Keeping::again ? 0 : rows.first);
  // Of sequences that go through a block by themselves the first one's rows are the first.
  const std::int64_t first = value.is_local ? 0 : value.is_of_sequences ? rows.first : first_row_ + rows.first;
  return rows_in(memory_.buffers + places_.first[static_cast<std::size_t>(place.buffer)], first);
}

View<float, 2> GraphCall::floats(const Slice& slice, const RowRange& rows) const noexcept {
  return slice ? floats_of(at(slice, rows)) : View<float, 2>();
}

std::int64_t GraphCall::whole_rows() const noexcept {
  if (training_ == nullptr) return tokens();
  return shape().batch * rows_of_x(*training_->attention).whole_length(shape().length);
}

// Behind those of the operations before it.
std::byte* GraphCall::beside(const Operation& operation) const noexcept {
  return memory_.beside + graph_.beside_bytes_before(*this, memory_.first_block, operation);
}

AttentionOptions GraphCall::attention_options(std::int64_t block) const {
  if (input_.attention != nullptr) return *input_.attention;
  AttentionOptions options;
  options.query_offsets = input_.tokens.offsets;
  for (const LayerProbabilities& wanted : input_.probabilities) {
    if (wanted.layer == block) options.probabilities = wanted.probabilities;
  }
  return options;
}

HeadAccess GraphCall::heads(std::int64_t block) const noexcept {
  for (const LayerHeads& wanted : input_.heads) {
    if (wanted.layer == block) return {one_sample(wanted.outputs), wanted.silenced, one_sample(wanted.scaled_outputs)};
  }
  return input_.access;
}

MutableTypedView<2> GraphCall::typed_gradient(const Slice& slice, const RowRange& rows) const noexcept {
  const Value& value = graph_.value(slice.value);
  const TrainingPlan::Place& place = plan_->of(slice.value);
  const bool is_local = place.staying == Staying::local;
  const NumberType type = value.handed_on.gradient ? training_->gradients() : NumberType::float32;
  std::byte* const first = memory_.gradients[static_cast<std::size_t>(place.staying)] +
                           place.before_gradient.bytes(is_local ? graph_.rows_at_once(tokens()) : tokens());
  const std::int64_t distance = row_distance(value.columns, type);
  const std::int64_t before = (is_local ? 0 : rows.first) * distance + slice.first;
  return {type, numbers_behind(first, before, type), {rows.count, slice.columns}, {distance, 1}};
}

View<float, 2> GraphCall::gradient(const Slice& slice, const RowRange& rows) const noexcept {
  return floats_of(typed_gradient(slice, rows));
}

// Each part counts as a layer of the step.
Dropout GraphCall::dropout(const DropoutPlace& place) const noexcept {
  if (training_ == nullptr || place.probability == 0) return {};
  const TrainingStep& step = training_->step;
  const std::uint32_t parts = graph_.parts();
  const TrainingStep of_part = {step.seed, step.step, step.layer * parts + place.part, step.layers * parts};
  return of_part.dropout(place.probability, place.place);
}

// Rows draw by their numbers in the whole, of which others may hold a part.
void GraphCall::drop(const Dropout& dropout, const TypedView<2>& x, const TypedView<2>& residual,
                     const MutableTypedView<2>& y, const RowRange& rows) const {
  rows_of_x(*training_->attention)
      .for_each_range(shape().length, rows.first, rows.count,
                      [&](std::int64_t first, std::int64_t count, std::int64_t number) {
                        const std::int64_t from = first - rows.first;
                        ops::dropout_rows(engine_, some_rows(x, from, count), some_rows(y, from, count), dropout,
                                          some_rows(residual, from, count), number);
                      });
}

void Operation::pass_on(const GraphCall& call, std::size_t number, const RowRange& rows) const {
  const View<const float, 2> from = call.gradient(output(), rows);
  const View<float, 2> to = call.gradient(input(number), rows);
  if (to.data == from.data) return;
  ops::scale_rows(call.engine(), from, 1.0f, adds(number) ? View<const float, 2>(to) : View<const float, 2>(), to);
}

}  // namespace headlight::layers
