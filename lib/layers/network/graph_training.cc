// The way back through a graph: which values it reads, where gradients lie, and the walk.
#include <algorithm>
#include <vector>

#include "layers/layer_names.h"
#include "layers/network/graph.h"
#include "layers/parameter_list.h"
#include "layers/rows.h"
#include "ops/rows/scale.h"
#include "runtime/parallel.h"

namespace headlight::layers {

namespace {

// Room for gradients, counted in floats a token, that is used again once one is done with.
class GradientSpace {
 public:
  std::int64_t take(std::int64_t columns) {
    for (Place& place : places_) {
      if (place.is_free && place.columns == columns) return place.is_free = false, place.first;
    }
    places_.push_back({size_, columns, false});
    size_ += row_distance(columns);
    return places_.back().first;
  }
  void give_back(std::int64_t first) {
    for (Place& place : places_) {
      if (place.first == first) place.is_free = true;
    }
  }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

 private:
  struct Place {
    std::int64_t first;
    std::int64_t columns;
    bool is_free;
  };
  std::vector<Place> places_;
  std::int64_t size_ = 0;
};

}  // namespace

Slice Graph::add_training_value(std::int64_t columns) {
  const Slice made = add_value(columns);
  values_.back().kept = 0;
  return made;
}

// Rows lie a whole number of cache lines apart, so that every value begins at one.
std::size_t Graph::bytes_of(std::int64_t floats, std::int64_t tokens) noexcept {
  runtime::ScratchLayout layout;
  layout.add<float>(floats, tokens);
  return layout.bytes();
}

void Graph::keep_values() {
  const auto keep = [&](const Slice& slice) {
    if (slice) values_[static_cast<std::size_t>(slice.value)].kept = 0;
  };
  for (const std::unique_ptr<Operation>& operation : operations_) {
    for (std::size_t number = 0; number < operation->inputs().size(); ++number) {
      if (operation->keeps_input(number)) keep(operation->inputs()[number]);
    }
    if (operation->keeps_output()) keep(operation->output());
  }
  find_values_of_blocks();
  std::vector<std::int64_t> of_blocks(blocks_.size(), 0);
  for (Value& value : values_) {
    if (value.kept < 0) continue;
    std::int64_t& floats = value.block < 0 ? kept_floats_ : of_blocks[static_cast<std::size_t>(value.block)];
    value.kept = floats;
    floats += row_distance(value.columns);
  }
  std::int64_t first = kept_floats_;
  for (const std::int64_t floats : of_blocks) {
    first_of_block_.push_back(first);
    first += floats;
    largest_block_ = std::max(largest_block_, floats);
  }
  first_of_block_.push_back(first);  // the end of the last one
}

// Those that a block makes and nobody reads behind it.
void Graph::find_values_of_blocks() {
  for (int block = 0; block < static_cast<int>(blocks_.size()); ++block) {
    const Run& run = blocks_[static_cast<std::size_t>(block)];
    for (int number = run.first; number < run.end; ++number) {
      const Operation& operation = *operations_[static_cast<std::size_t>(number)];
      const auto belongs = [&](const Slice& slice) {
        Value& value = values_[static_cast<std::size_t>(slice.value)];
        if (value.last_use < run.end) value.block = block;
      };
      belongs(operation.output());
      if (operation.training_value()) belongs(operation.training_value());
    }
  }
}

std::size_t Graph::kept_bytes(bool keeps_blocks, std::int64_t tokens) const noexcept {
  return bytes_of(keeps_blocks ? first_of_block_.back() : kept_floats_, tokens);
}

const Graph::Run* Graph::run_of(int operation) const noexcept {
  for (const Run& run : runs_) {
    if (run.first <= operation && operation < run.end) return &run;
  }
  return nullptr;
}

// From the last operation to the first: the gradient of a value is there from its last reader on until the operation
// that makes it; one of whole length, within a run, until its end, for other rows of it are still to come.
void Graph::place_gradients() {
  GradientSpace whole, local;
  std::vector<Slice> begun;
  std::vector<std::int64_t> done_with;
  const auto has_begun = [&](const Slice& slice) {
    return std::any_of(begun.begin(), begun.end(),
                       [&](const Slice& other) { return other.value == slice.value && other.first == slice.first; });
  };
  const auto value_of = [&](const Slice& slice) -> Value& { return values_[static_cast<std::size_t>(slice.value)]; };
  value_of(operations_.back()->output()).gradient = whole.take(value_of(operations_.back()->output()).columns);
  for (int number = static_cast<int>(operations_.size()) - 1; number >= 0; --number) {
    Operation& operation = *operations_[static_cast<std::size_t>(number)];
    const Value& made = value_of(operation.output());
    bool is_handed_on = false;
    const std::span<const Slice> inputs = operation.inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || !operation.has_gradient(i)) continue;
      Value& value = value_of(inputs[i]);
      if (has_begun(inputs[i])) {
        operation.set_adds(i);
        continue;
      }
      begun.push_back(inputs[i]);
      if (value.gradient >= 0) continue;  // another part of the same value has begun
      const bool takes = static_cast<int>(i) == operation.overwritten() && inputs[i].columns == value.columns &&
                         value.columns == made.columns && value.is_local == made.is_local;
      value.gradient = takes ? made.gradient : (value.is_local ? local : whole).take(value.columns);
      is_handed_on = is_handed_on || takes;
    }
    if (made.is_local && !is_handed_on) local.give_back(made.gradient);
    if (!made.is_local && !is_handed_on) done_with.push_back(made.gradient);
    const Run* const run = run_of(number);
    if (run != nullptr && run->first != number) continue;
    for (const std::int64_t gradient : done_with) whole.give_back(gradient);
    done_with.clear();
  }
  gradient_floats_ = whole.size();
  local_gradient_floats_ = local.size();
}

void Graph::check_training() { layers::check_training(kNetworkName, matrices_.front().matrix.gradient()); }

View<float, 2> GraphCall::gradient(const Slice& slice, const RowRange& rows) const noexcept {
  const Graph::Value& value = graph_.values_[static_cast<std::size_t>(slice.value)];
  float* first = reinterpret_cast<float*>(memory_.gradients);
  const std::int64_t distance = row_distance(value.columns);
  if (value.is_local) {
    first += graph_.gradient_floats_ * tokens() + value.gradient * graph_.rows_at_once(tokens());
  } else {
    first += value.gradient * tokens() + rows.first * distance;
  }
  return {first + slice.first, {rows.count, slice.columns}, {distance, 1}};
}

// Each part of a network counts as a layer of the step.
Dropout GraphCall::dropout(const DropoutPlace& place) const noexcept {
  if (!is_training() || place.probability == 0) return {};
  const auto parts = static_cast<std::uint32_t>(graph_.blocks_.size() + 1);
  const TrainingStep of_part = {step_.seed, step_.step, step_.layer * parts + place.part, step_.layers * parts};
  return of_part.dropout(place.probability, place.place);
}

void Operation::pass_on(const GraphCall& call, std::size_t number, const RowRange& rows) const {
  const View<const float, 2> from = call.gradient(output(), rows);
  const View<float, 2> to = call.gradient(input(number), rows);
  if (to.data == from.data) return;
  ops::scale_rows(call.engine(), from, 1.0f, adds(number) ? View<const float, 2>(to) : View<const float, 2>(), to);
}

void Graph::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, const Training& training) const {
  const std::int64_t tokens = hidden.extent(0);
  const BufferPlaces buffers = places(engine, tokens);
  const runtime::Scratch memory(engine, buffers.bytes, kNetworkName);
  const bool keeps = training.keeps_blocks;
  const runtime::Scratch of_block(engine, keeps ? 0 : bytes_of(largest_block_, tokens), kNetworkName);
  const GraphMemory lent = {
      .buffers = memory.data(), .kept = training.kept, .kept_of_block = keeps ? nullptr : of_block.data()};
  run_forward(GraphCall(engine, *this, input, hidden, lent, buffers, training.step, {}), all_operations());
}

void Graph::run_backward(const GraphCall& call, const Run& some) const {
  const std::int64_t tokens = call.tokens(), at_once = rows_at_once(tokens);
  for (int number = some.end - 1; number >= some.first;) {
    const Run* const run = run_of(number);
    const int first = run == nullptr ? number : run->first;
    const std::int64_t step = run == nullptr ? tokens : at_once;
    for (std::int64_t row = 0; row < tokens; row += step) {
      for (int back = number; back >= first; --back) {
        operations_[static_cast<std::size_t>(back)]->backward(call, {row, std::min(step, tokens - row)});
        runtime::throw_if_stopped(call.engine());
      }
    }
    number = first - 1;
  }
}

void Graph::backward(Engine& engine, const EncoderInput& input, const Training& training,
                     View<const float, 2> hidden_gradient) {
  const std::int64_t tokens = hidden_gradient.extent(0), width = hidden_gradient.extent(1);
  const bool keeps = training.keeps_blocks;
  runtime::ScratchLayout gradient_layout;
  gradient_layout.add<float>(gradient_floats_, tokens);
  gradient_layout.add<float>(local_gradient_floats_, rows_at_once(tokens));
  const runtime::Scratch gradients(engine, gradient_layout.bytes(), kNetworkName);
  // What blocks that are computed again take, and where they put what was the output.
  const BufferPlaces buffers = keeps ? BufferPlaces() : places(engine, tokens);
  const runtime::Scratch memory(engine, buffers.bytes, kNetworkName);
  const runtime::Scratch of_block(engine, keeps ? 0 : bytes_of(largest_block_, tokens), kNetworkName);
  const runtime::Scratch output(engine, keeps ? 0 : bytes_of(row_distance(width), tokens), kNetworkName);
  const View<float, 2> hidden(reinterpret_cast<float*>(output.data()), {tokens, width}, {row_distance(width), 1});
  const GraphMemory lent = {.buffers = memory.data(),
                            .kept = training.kept,
                            .kept_of_block = keeps ? nullptr : of_block.data(),
                            .gradients = gradients.data()};
  const GraphCall call(engine, *this, input, hidden, lent, buffers, training.step, {});
  const RowRange all = call.all_rows();
  ops::scale_rows(engine, hidden_gradient, 1.0f, {}, call.gradient(operations_.back()->output(), all));
  if (keeps || blocks_.empty()) return run_backward(call, all_operations());
  run_backward(call, {blocks_.back().end, all_operations().end});
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    run_forward(call, *block);
    run_backward(call, *block);
  }
  run_backward(call, {0, blocks_.front().first});
}

}  // namespace headlight::layers
