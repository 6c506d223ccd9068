#include "layers/network/graph.h"

#include <algorithm>
#include <utility>

#include "layers/feed_forward_rows.h"
#include "layers/handed_on.h"
#include "layers/initializer.h"
#include "layers/layer_names.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/rows.h"
#include "layers/sizes.h"
#include "ops/check.h"
#include "runtime/parallel.h"

namespace headlight::layers {

std::size_t Operation::workspace_bytes(const Engine&, std::int64_t) const { return 0; }
void Operation::reserve(Engine&, std::int64_t) const {}
bool Operation::has_gradient(std::size_t) const noexcept { return true; }

MatrixParameter& Graph::add_matrix(std::int64_t columns, std::vector<NamedRows> parts, bool is_table) {
  const std::int64_t rows = parts.back().rows.first + parts.back().rows.count;
  WeightMatrix matrix(matrix_shape(kNetworkName, parts.front().name, rows, columns));
  MatrixParameter& made = matrices_.emplace_back(MatrixParameter{std::move(matrix), std::move(parts), is_table});
  parameters_.push_back({&made, nullptr});
  return made;
}

VectorParameter& Graph::add_vector(std::vector<NamedRows> parts, float first_value) {
  const std::int64_t size = parts.back().rows.first + parts.back().rows.count;
  Tensor<float, 1> values(vector_shape(kNetworkName, parts.front().name, size));
  for (float& value : values) value = first_value;
  VectorParameter& made = vectors_.emplace_back(VectorParameter{std::move(values), {}, std::move(parts), first_value});
  parameters_.push_back({nullptr, &made});
  return made;
}

Slice Graph::add_value(std::int64_t columns, const HandedOn& handed_on) {
  values_.push_back({.columns = columns, .handed_on = handed_on});
  return {static_cast<int>(values_.size()) - 1, 0, columns};
}

void Graph::begin_rows() {
  const int first = static_cast<int>(operations_.size());
  runs_.push_back({first, first});
}

void Graph::end_rows() { runs_.back().end = static_cast<int>(operations_.size()); }

void Graph::begin_block() {
  const int first = static_cast<int>(operations_.size());
  blocks_.push_back({first, first});
}

void Graph::end_block() { blocks_.back().end = static_cast<int>(operations_.size()); }

void Graph::add_operation(std::unique_ptr<Operation> operation) { operations_.push_back(std::move(operation)); }

// Where the last operation that reads each value stands, or the one that makes it.
void Graph::find_last_uses() {
  for (std::size_t number = 0; number < operations_.size(); ++number) {
    const Operation& operation = *operations_[number];
    for (const Slice& slice : operation.inputs()) {
      if (slice) values_[static_cast<std::size_t>(slice.value)].last_use = static_cast<int>(number);
    }
    values_[static_cast<std::size_t>(operation.output().value)].last_use = static_cast<int>(number);
  }
  // What takes another's memory keeps it there.
  for (std::size_t number = operations_.size(); number-- > 0;) {
    const Operation& operation = *operations_[number];
    const Value& made = values_[static_cast<std::size_t>(operation.output().value)];
    if (!made.handed_on.to_attention || operation.overwritten() < 0) continue;
    Value& taken =
        values_[static_cast<std::size_t>(operation.inputs()[static_cast<std::size_t>(operation.overwritten())].value)];
    taken.last_use = std::max(taken.last_use, made.last_use);
  }
}

// A value that is used only in the run where it is made, unless it can lie where one of whole length does.
void Graph::find_local_values() {
  for (const Run& run : runs_) {
    for (int number = run.first; number < run.end; ++number) {
      Value& value = values_[static_cast<std::size_t>(operations_[static_cast<std::size_t>(number)]->output().value)];
      if (value.last_use >= run.end || taken_value(number) >= 0) continue;
      value.is_local = true;
      widest_local_ = std::max(widest_local_, value.columns);
    }
  }
}

// The value whose memory the output of that operation takes: one that nobody reads later, or −1.
int Graph::taken_value(int number) const noexcept {
  const Operation& operation = *operations_[static_cast<std::size_t>(number)];
  if (operation.overwritten() < 0) return -1;
  const Slice& slice = operation.inputs()[static_cast<std::size_t>(operation.overwritten())];
  if (!slice) return -1;
  const Value& taken = values_[static_cast<std::size_t>(slice.value)];
  const Value& value = values_[static_cast<std::size_t>(operation.output().value)];
  const bool fits = slice.first == 0 && slice.columns == taken.columns && taken.columns == value.columns &&
                    taken.is_local == value.is_local;
  return fits && (value.handed_on.to_attention || taken.last_use == number) ? slice.value : -1;
}

// The last output, and the values that are turned into it in place.
void Graph::find_output_chain() {
  int wanted = operations_.back()->output().value;
  for (int number = static_cast<int>(operations_.size()) - 1; number >= 0 && wanted >= 0; --number) {
    if (operations_[static_cast<std::size_t>(number)]->output().value != wanted) continue;
    values_[static_cast<std::size_t>(wanted)].is_hidden = true;
    wanted = taken_value(number);
  }
}

int Graph::take_buffer(std::int64_t columns, bool is_local, bool is_narrow) {
  Buffer* best = nullptr;
  for (Buffer& buffer : buffers_) {
    if (!buffer.is_free || buffer.is_local != is_local || buffer.is_narrow != is_narrow) continue;
    const auto waste = [&](const Buffer& other) { return std::abs(other.columns - columns); };
    if (best == nullptr || waste(buffer) < waste(*best)) best = &buffer;
  }
  if (best == nullptr) best = &buffers_.emplace_back(Buffer{columns, is_local, false, is_narrow});
  best->columns = std::max(best->columns, columns);
  best->is_free = false;
  return static_cast<int>(best - buffers_.data());
}

void Graph::place_output(int number) {
  const int made = operations_[static_cast<std::size_t>(number)]->output().value;
  Value& value = values_[static_cast<std::size_t>(made)];
  if (value.is_hidden) return;
  const int taken = taken_value(number);
  if (taken >= 0 && value.handed_on.to_attention) {
    value.same_as = taken;
    value.buffer = take_buffer(value.columns, value.is_local, true);
  } else if (taken >= 0 && !values_[static_cast<std::size_t>(taken)].is_hidden) {
    value.buffer = values_[static_cast<std::size_t>(taken)].buffer;
    values_[static_cast<std::size_t>(taken)].gave_buffer = true;
  } else {
    value.buffer = take_buffer(value.columns, value.is_local, false);
  }
}

// The last operation that needs the memory of a value. Operations on some rows at a time read others' values again for
// the next rows: those are done with behind the last of such a run.
int Graph::end_of_use(const Value& value) const noexcept {
  for (const Run& run : runs_) {
    if (!value.is_local && run.first <= value.last_use && value.last_use < run.end) return run.end - 1;
  }
  return value.last_use;
}

// Frees the memory of those that nobody needs after that operation.
void Graph::free_values(int number) {
  for (const Value& value : values_) {
    const bool owns = value.buffer >= 0 && !value.gave_buffer;
    if (owns && end_of_use(value) == number) buffers_[static_cast<std::size_t>(value.buffer)].is_free = true;
  }
}

void Graph::find_buffers_apart() {
  for (Buffer& buffer : buffers_) buffer.is_apart = !buffer.is_local;
  for (std::size_t number = 0; number < operations_.size(); ++number) {
    const Value& value = values_[static_cast<std::size_t>(operations_[number]->output().value)];
    if (value.buffer < 0 || value.is_local) continue;
    const int made = static_cast<int>(number), end = end_of_use(value);
    const bool meets_run =
        std::any_of(runs_.begin(), runs_.end(), [&](const Run& run) { return made < run.end && run.first <= end; });
    if (meets_run) buffers_[static_cast<std::size_t>(value.buffer)].is_apart = false;
  }
}

void Graph::finish() {
  find_last_uses();
  find_local_values();
  find_output_chain();
  for (int number = 0; number < static_cast<int>(operations_.size()); ++number) {
    place_output(number);
    free_values(number);
  }
  find_buffers_apart();
  if (buffers_.size() > BufferPlaces::kMost)
    ops::fail(kNetworkName, "values need more than ", BufferPlaces::kMost, " buffers");
  keep_values();
  place_gradients();
}

void Graph::append_parameters(const std::string& prefix, std::vector<ParameterPlace>& list) {
  for (const Parameter& parameter : parameters_) {
    if (parameter.matrix != nullptr) {
      for (const NamedRows& part : parameter.matrix->parts) {
        layers::append(list, prefix + part.name, parameter.matrix->matrix, part.rows);
      }
    } else {
      for (const NamedRows& part : parameter.vector->parts) {
        layers::append(list, prefix + part.name, parameter.vector->values, parameter.vector->gradient, part.rows);
      }
    }
  }
}

void Graph::initialize_from(Initializer& initializer) {
  // Standard deviation 0.02, as the tables of published models begin; a uniform draw of bound b has b / √3.
  constexpr float kTableBound = 0.02f * 1.7320508f;
  for (const Parameter& parameter : parameters_) {
    if (parameter.vector != nullptr) {
      initializer.constant(values_of(parameter.vector->values), parameter.vector->first_value);
      continue;
    }
    const View<float, 2> all = parameter.matrix->matrix.own();
    for (const NamedRows& part : parameter.matrix->parts) {
      const std::span<float> values = values_of(layers::rows_of(all, part.rows));
      if (parameter.matrix->is_table) {
        initializer.uniform(values, kTableBound);
      } else {
        initializer.xavier(values, all.extent(1), part.rows.count);
      }
    }
  }
}

void Graph::set_open(bool open) noexcept {
  for (MatrixParameter& parameter : matrices_) {
    if (!parameter.is_table) parameter.matrix.set_open(open);
  }
}

void Graph::make_gradients(bool wanted) {
  for (MatrixParameter& parameter : matrices_) parameter.matrix.make_gradient(wanted);
  for (VectorParameter& parameter : vectors_) layers::make_gradient(wanted, parameter.values, parameter.gradient);
}

// ---- a forward pass

NumberType Graph::type_of(const Engine& engine, int value) const noexcept {
  const HandedOn& handed_on = values_[static_cast<std::size_t>(value)].handed_on;
  if (handed_on.from == nullptr) return NumberType::float32;
  const NumberType from = product_type(*handed_on.from);
  return handed_on.to_attention ? handed_to_attention(engine, from)
                                : handed_to_product(engine, from, product_type(*handed_on.to));
}

std::int64_t Graph::rows_at_once(std::int64_t tokens) const noexcept {
  return layers::rows_at_once(tokens, widest_local_);
}

BufferPlaces Graph::places(const Engine& engine, std::int64_t tokens) const noexcept {
  // Floats of a row of each, as its widest value wants them.
  std::array<std::int64_t, BufferPlaces::kMost> floats{};
  for (std::size_t number = 0; number < values_.size(); ++number) {
    const Value& value = values_[number];
    if (value.buffer < 0) continue;
    const auto buffer = static_cast<std::size_t>(value.buffer);
    const NumberType type = type_of(engine, static_cast<int>(number));
    if (buffers_[buffer].is_narrow && type == NumberType::float32) continue;
    floats[buffer] = std::max(floats[buffer], row_floats(value.columns, type));
  }
  BufferPlaces places;
  runtime::ScratchLayout throughout;
  const auto add = [&](runtime::ScratchLayout& layout, std::size_t buffer) {
    places.first[buffer] = layout.bytes();
    layout.add<float>(buffers_[buffer].is_local ? rows_at_once(tokens) : tokens, floats[buffer]);
  };
  for (std::size_t buffer = 0; buffer < buffers_.size(); ++buffer) {
    if (!buffers_[buffer].is_local && !buffers_[buffer].is_apart) add(throughout, buffer);
  }
  runtime::ScratchLayout within_runs = throughout, outside_runs = throughout;
  for (std::size_t buffer = 0; buffer < buffers_.size(); ++buffer) {
    if (buffers_[buffer].is_local) add(within_runs, buffer);
    if (buffers_[buffer].is_apart) add(outside_runs, buffer);
  }
  places.bytes = std::max(within_runs.bytes(), outside_runs.bytes());
  return places;
}

// Where those of a block begin, or those that are there throughout.
float* GraphCall::kept_values(int block) const noexcept {
  if (block < 0) return reinterpret_cast<float*>(memory_.kept);
  if (memory_.kept_of_block != nullptr) return reinterpret_cast<float*>(memory_.kept_of_block);
  return reinterpret_cast<float*>(memory_.kept) + graph_.first_of_block_[static_cast<std::size_t>(block)] * tokens();
}

MutableTypedView<2> GraphCall::at(const Slice& slice, const RowRange& rows) const noexcept {
  if (!slice) return {};
  const auto value_of = [&](int number) -> const Graph::Value& {
    return graph_.values_[static_cast<std::size_t>(number)];
  };
  int number = slice.value;
  const NumberType type = is_training() ? NumberType::float32 : graph_.type_of(engine_, number);
  const auto is_kept = [&] { return is_training() && value_of(number).kept >= 0; };
  if (!is_kept() && value_of(number).same_as >= 0 && type == NumberType::float32) number = value_of(number).same_as;
  const Graph::Value& value = value_of(number);
  const std::int64_t distance = row_distance(value.columns, type);
  const View<float, 2>::Shape shape = {rows.count, slice.columns};
  if (is_kept()) {
    float* const first = kept_values(value.block) + value.kept * tokens();
    return View<float, 2>(first + rows.first * distance + slice.first, shape, {distance, 1});
  }
  const std::int64_t first_row = value.is_local ? 0 : rows.first;
  if (value.is_hidden) return View<float, 2>(&hidden_(first_row, slice.first), shape, hidden_.strides);
  void* const data = memory_.buffers + places_.first[static_cast<std::size_t>(value.buffer)];
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

template <class Function>
void Graph::for_each_operation(const Run& some, std::int64_t tokens, Function function) const {
  const std::int64_t at_once = rows_at_once(tokens);
  for (int number = some.first; number < some.end;) {
    const auto run =
        std::find_if(runs_.begin(), runs_.end(), [number](const Run& other) { return other.first == number; });
    if (run == runs_.end()) {
      function(*operations_[static_cast<std::size_t>(number++)], RowRange{0, tokens});
      continue;
    }
    for (std::int64_t first = 0; first < tokens; first += at_once) {
      for (number = run->first; number < run->end; ++number) {
        function(*operations_[static_cast<std::size_t>(number)], RowRange{first, std::min(at_once, tokens - first)});
      }
    }
  }
}

void Graph::run_forward(const GraphCall& call, const Run& some) const {
  for_each_operation(some, call.tokens(), [&](const Operation& operation, const RowRange& rows) {
    operation.forward(call, rows);
    runtime::throw_if_stopped(call.engine());  // nor does the next one begin
  });
}

void Graph::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
                    const LayerOutputs& outputs) const {
  const BufferPlaces buffers = places(engine, hidden.extent(0));
  const runtime::Scratch memory(engine, buffers.bytes, kNetworkName);
  run_forward(GraphCall(engine, *this, input, hidden, {.buffers = memory.data()}, buffers, {}, outputs),
              all_operations());
}

std::size_t Graph::workspace_bytes(const Engine& engine, std::int64_t tokens) const {
  std::size_t most = 0;
  for_each_operation(all_operations(), tokens, [&](const Operation& operation, const RowRange& rows) {
    most = std::max(most, operation.workspace_bytes(engine, rows.count));
  });
  return places(engine, tokens).bytes + most;
}

void Graph::reserve(Engine& engine, std::int64_t tokens) const {
  // Held while the operations reserve theirs, as it is when they run.
  const runtime::Scratch memory(engine, places(engine, tokens).bytes, kNetworkName);
  for_each_operation(all_operations(), tokens,
                     [&](const Operation& operation, const RowRange& rows) { operation.reserve(engine, rows.count); });
}

}  // namespace headlight::layers
