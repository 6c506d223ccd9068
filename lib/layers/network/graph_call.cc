// Where values and gradients lie in a pass.
#include "layers/network/graph.h"
#include "layers/rows.h"
#include "ops/rows/scale.h"

namespace headlight::layers {

// Where those of a block begin, or those that are there throughout.
float* GraphCall::kept_values(int block) const noexcept {
  if (block < 0) return reinterpret_cast<float*>(memory_.kept);
  if (memory_.kept_of_block != nullptr) return reinterpret_cast<float*>(memory_.kept_of_block);
  return reinterpret_cast<float*>(memory_.kept) + graph_.training().first_of_block(block) * tokens();
}

MutableTypedView<2> GraphCall::at(const Slice& slice, const RowRange& rows) const noexcept {
  if (!slice) return {};
  int number = slice.value;
  const NumberType type = is_training() ? NumberType::float32 : type_of(graph_.value(number), engine_);
  const auto is_kept = [&] { return is_training() && graph_.training().kept(number) >= 0; };
  const ValuePlace* place = &graph_.buffers().of(number);
  if (!is_kept() && place->same_as >= 0 && type == NumberType::float32) {
    number = place->same_as;
    place = &graph_.buffers().of(number);
  }
  const Value& value = graph_.value(number);
  const std::int64_t distance = row_distance(value.columns, type);
  const View<float, 2>::Shape shape = {rows.count, slice.columns};
  if (is_kept()) {
    float* const first = kept_values(value.block) + graph_.training().kept(number) * tokens();
    return View<float, 2>(first + rows.first * distance + slice.first, shape, {distance, 1});
  }
  const std::int64_t first_row = value.is_local ? 0 : rows.first;
  if (place->is_hidden) return View<float, 2>(&hidden_(first_row, slice.first), shape, hidden_.strides);
  void* const data = memory_.buffers + places_.first[static_cast<std::size_t>(place->buffer)];
  return {type, kernels::numbers_behind(data, first_row * distance + slice.first, type), shape, {distance, 1}};
}

View<float, 2> GraphCall::floats(const Slice& slice, const RowRange& rows) const noexcept {
  return slice ? floats_of(at(slice, rows)) : View<float, 2>();
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

View<float, 2> GraphCall::gradient(const Slice& slice, const RowRange& rows) const noexcept {
  const Value& value = graph_.value(slice.value);
  const std::int64_t place = graph_.training().gradient(slice.value);
  float* first = reinterpret_cast<float*>(memory_.gradients);
  const std::int64_t distance = row_distance(value.columns);
  if (value.is_local) {
    first += graph_.training().gradient_floats() * tokens() + place * graph_.rows_at_once(tokens());
  } else {
    first += place * tokens() + rows.first * distance;
  }
  return {first + slice.first, {rows.count, slice.columns}, {distance, 1}};
}

void GraphCall::show_heads(std::int64_t block, View<const float, 2> outputs, View<float, 2> gradient) const {
  if (outputs_.visitor != nullptr) {
    outputs_.visitor->visit(engine_, block, one_sample(outputs), one_sample(gradient));
  }
}

// Each part of a network counts as a layer of the step.
Dropout GraphCall::dropout(const DropoutPlace& place) const noexcept {
  if (!is_training() || place.probability == 0) return {};
  const auto parts = static_cast<std::uint32_t>(graph_.blocks() + 1);
  const TrainingStep of_part = {step_.seed, step_.step, step_.layer * parts + place.part, step_.layers * parts};
  return of_part.dropout(place.probability, place.place);
}

void Operation::pass_on(const GraphCall& call, std::size_t number, const RowRange& rows) const {
  const View<const float, 2> from = call.gradient(output(), rows);
  const View<float, 2> to = call.gradient(input(number), rows);
  if (to.data == from.data) return;
  ops::scale_rows(call.engine(), from, 1.0f, adds(number) ? View<const float, 2>(to) : View<const float, 2>(), to);
}

}  // namespace headlight::layers
