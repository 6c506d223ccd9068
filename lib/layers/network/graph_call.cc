// Where values and gradients lie in a pass.
#include <algorithm>

#include "layers/network/graph.h"
#include "layers/rows.h"
#include "ops/rows/dropout_rows.h"
#include "ops/rows/scale.h"

namespace headlight::layers {

GraphCall::GraphCall(Engine& engine, const Graph& graph, const EncoderInput& input, View<float, 2> hidden,
                     const BufferPlaces& places, const GraphTraining* training, const LayerOutputs& outputs) noexcept
    : engine_(engine),
      graph_(graph),
      input_(input),
      hidden_(hidden),
      places_(places),
      training_(training),
      plan_(training == nullptr ? nullptr : &graph.training(*training)),
      outputs_(outputs) {}

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
  int number = slice.value;
  const Value* value = &graph_.value(number);
  const NumberType type =
      training_ != nullptr ? type_in_training(*value, training_->activations) : type_of(*value, engine_);
  const auto rows_in = [&](std::byte* data, std::int64_t first_row) -> MutableTypedView<2> {
    const std::int64_t distance = row_distance(value->columns, type);
    return {type,
            kernels::numbers_behind(static_cast<void*>(data), first_row * distance + slice.first, type),
            {rows.count, slice.columns},
            {distance, 1}};
  };
  if (training_ != nullptr) {
    std::byte* const data = kept(number);
    if (data != nullptr) return rows_in(data, plan_->of(number).keeping == Keeping::again ? 0 : rows.first);
  }
  const ValuePlace* place = &graph_.buffers().of(number);
  if (place->same_as >= 0 && type == NumberType::float32) {
    number = place->same_as;
    place = &graph_.buffers().of(number);
    value = &graph_.value(number);
  }
  const std::int64_t first_row = value->is_local ? 0 : rows.first;
  if (place->is_hidden) {
    return View<float, 2>(&hidden_(first_row, slice.first), {rows.count, slice.columns}, hidden_.strides);
  }
  std::byte* const block = graph_.buffers().is_local(place->buffer)   ? memory_.within_runs
                           : graph_.buffers().is_apart(place->buffer) ? memory_.outside_runs
                                                                      : memory_.buffers;
  return rows_in(block + places_.first[static_cast<std::size_t>(place->buffer)], first_row);
}

View<float, 2> GraphCall::floats(const Slice& slice, const RowRange& rows) const noexcept {
  return slice ? floats_of(at(slice, rows)) : View<float, 2>();
}

// Behind those of the operations before it.
std::byte* GraphCall::beside(const Operation& operation) const noexcept {
  return memory_.beside + graph_.beside_bytes_before(*this, memory_.first_block, operation);
}

Probabilities GraphCall::probabilities(std::int64_t block) const noexcept {
  for (const LayerProbabilities& wanted : outputs_.probabilities) {
    if (wanted.layer == block) return wanted.probabilities;
  }
  return {};
}

LayerHeads GraphCall::heads(std::int64_t block) const noexcept {
  for (const LayerHeads& wanted : outputs_.heads) {
    if (wanted.layer == block) return wanted;
  }
  return {};
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
  return {type,
          kernels::numbers_behind(static_cast<void*>(first), before, type),
          {rows.count, slice.columns},
          {distance, 1}};
}

View<float, 2> GraphCall::gradient(const Slice& slice, const RowRange& rows) const noexcept {
  return floats_of(typed_gradient(slice, rows));
}

void GraphCall::show_heads(std::int64_t block, View<const float, 2> outputs, View<float, 2> gradient) const {
  training_->visitor->visit(engine_, block, one_sample(outputs), one_sample(gradient));
}

// Each part of a network counts as a layer of the step.
Dropout GraphCall::dropout(const DropoutPlace& place) const noexcept {
  if (training_ == nullptr || place.probability == 0) return {};
  const TrainingStep& step = training_->step;
  const auto parts = static_cast<std::uint32_t>(graph_.blocks() + 1);
  const TrainingStep of_part = {step.seed, step.step, step.layer * parts + place.part, step.layers * parts};
  return of_part.dropout(place.probability, place.place);
}

// Rows draw by their numbers in the whole, of which others may hold a part.
void GraphCall::drop(const Dropout& dropout, const TypedView<2>& x, const TypedView<2>& residual,
                     const MutableTypedView<2>& y, const RowRange& rows) const {
  rows_of_x(*training_->attention)
      .for_each_range(rows.first, rows.count, [&](std::int64_t first, std::int64_t count, std::int64_t number) {
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
