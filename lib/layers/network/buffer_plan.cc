#include "layers/network/buffer_plan.h"

#include <algorithm>
#include <cstdlib>

#include "layers/handed_on.h"
#include "layers/product.h"
#include "layers/rows.h"
#include "ops/check.h"
#include "runtime/parallel.h"

namespace headlight::layers {

NumberType type_of(const Value& value, const Engine& engine) noexcept {
  const HandedOn& handed_on = value.handed_on;
  if (handed_on.from == nullptr) return NumberType::float32;
  const NumberType from = product_type(*handed_on.from);
  return handed_on.to_attention ? handed_to_attention(engine, from)
                                : handed_to_product(engine, from, product_type(*handed_on.to));
}

void BufferPlan::make(const OperationList& list, std::string_view name) {
  values_.resize(list.values().size());
  find_output_chain(list);
  std::vector<std::vector<int>> ending(static_cast<std::size_t>(list.size()));  // values, by their last operation
  for (int value = 0; value < static_cast<int>(values_.size()); ++value) {
    ending[static_cast<std::size_t>(list.end_of_use(list.value(value)))].push_back(value);
  }
  for (int number = 0; number < list.size(); ++number) {
    place_output(list, number);
    for (const int value : ending[static_cast<std::size_t>(number)]) {
      const ValuePlace& place = of(value);
      if (place.buffer >= 0 && !place.gave_buffer) buffers_[static_cast<std::size_t>(place.buffer)].is_free = true;
    }
  }
  find_buffers_apart(list);
  if (buffers_.size() > BufferPlaces::kMost) {
    ops::fail(name, "values need ", buffers_.size(), " buffers, expected at most ", BufferPlaces::kMost);
  }
}

// The last output, and the values that are turned into it in place.
void BufferPlan::find_output_chain(const OperationList& list) {
  int wanted = list[list.size() - 1].output().value;
  for (int number = list.size() - 1; number >= 0 && wanted >= 0; --number) {
    if (list[number].output().value != wanted) continue;
    at(wanted).is_hidden = true;
    wanted = list.taken_value(number);
  }
}

int BufferPlan::take_buffer(const Value& value) {
  Buffer* best = nullptr;
  for (Buffer& buffer : buffers_) {
    if (!buffer.is_free || buffer.is_local != value.is_local || buffer.is_of_sequences != value.is_of_sequences)
      continue;
    const auto waste = [&](const Buffer& other) { return std::abs(other.columns - value.columns); };
    if (best == nullptr || waste(buffer) < waste(*best)) best = &buffer;
  }
  if (best == nullptr) best = &buffers_.emplace_back(Buffer{value.columns, value.is_local, value.is_of_sequences});
  best->columns = std::max(best->columns, value.columns);
  best->is_free = false;
  return static_cast<int>(best - buffers_.data());
}

void BufferPlan::place_output(const OperationList& list, int number) {
  const Value& value = list.made_by(number);
  ValuePlace& place = at(list[number].output().value);
  if (place.is_hidden) return;
  const int taken = list.taken_value(number);
  if (taken >= 0 && !at(taken).is_hidden) {
    place.buffer = at(taken).buffer;
    at(taken).gave_buffer = true;
  } else {
    place.buffer = take_buffer(value);
  }
}

void BufferPlan::find_buffers_apart(const OperationList& list) {
  for (Buffer& buffer : buffers_) buffer.is_apart = !buffer.is_local;
  for (int made = 0; made < list.size(); ++made) {
    const Value& value = list.made_by(made);
    const int buffer = of(list[made].output().value).buffer;
    if (buffer < 0 || value.is_local) continue;
    const int end = list.end_of_use(value);
    const auto next = std::partition_point(list.runs().begin(), list.runs().end(),
                                           [made](const OperationRange& run) { return run.end <= made; });
    const bool meets_run = next != list.runs().end() && next->first <= end;
    if (meets_run) buffers_[static_cast<std::size_t>(buffer)].is_apart = false;
  }
}

// Floats of a row of each buffer are those that its widest value wants.
BufferPlaces BufferPlan::places(const OperationList& list, const Engine& engine, std::int64_t tokens) const noexcept {
  Floats floats{};
  for (std::size_t number = 0; number < values_.size(); ++number) {
    const Value& value = list.value(static_cast<int>(number));
    if (values_[number].buffer < 0) continue;
    const auto buffer = static_cast<std::size_t>(values_[number].buffer);
    floats[buffer] = std::max(floats[buffer], row_floats(value.columns, type_of(value, engine)));
  }
  return lay_out(floats, tokens, list.most_rows_at_once(tokens, engine));
}

BufferPlaces BufferPlan::places(const OperationList& list, const TrainingPlan& training, NumberType activations,
                                std::int64_t tokens) const noexcept {
  Floats floats{};
  for (std::size_t number = 0; number < values_.size(); ++number) {
    const Keeping keeping = training.of(static_cast<int>(number)).keeping;
    if (values_[number].buffer < 0 || (keeping != Keeping::none && keeping != Keeping::again)) continue;
    const Value& value = list.value(static_cast<int>(number));
    std::int64_t& most = floats[static_cast<std::size_t>(values_[number].buffer)];
    most = std::max(most, row_floats(value.columns, type_in_training(value, activations)));
  }
  return lay_out(floats, tokens, list.rows_at_once(tokens));
}

BufferPlaces BufferPlan::lay_out(const Floats& floats, std::int64_t tokens, std::int64_t of_runs) const noexcept {
  BufferPlaces places;
  const auto add = [&](runtime::ScratchLayout& layout, std::size_t buffer, std::int64_t rows) {
    places.first[buffer] = layout.bytes();
    layout.add<float>(rows, floats[buffer]);
  };
  runtime::ScratchLayout throughout;
  for (std::size_t buffer = 0; buffer < buffers_.size(); ++buffer) {
    if (!buffers_[buffer].is_local && !buffers_[buffer].is_apart) add(throughout, buffer, tokens);
  }
  runtime::ScratchLayout within_runs = throughout, outside_runs = throughout;
  for (std::size_t buffer = 0; buffer < buffers_.size(); ++buffer) {
    if (buffers_[buffer].is_local) add(within_runs, buffer, of_runs);
    if (buffers_[buffer].is_apart) add(outside_runs, buffer, tokens);
  }
  places.bytes = std::max(within_runs.bytes(), outside_runs.bytes());
  return places;
}

}  // namespace headlight::layers
