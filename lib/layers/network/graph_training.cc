// Both passes of training.
#include <algorithm>

#include "layers/network/graph.h"
#include "layers/rows.h"
#include "layers/segments.h"
#include "ops/rows/scale.h"
#include "runtime/parallel.h"

namespace headlight::layers {

namespace {

void copy(Engine& engine, const View<const float, 3>& from, const View<float, 3>& to) {
  for_each_matrix(
      to.extent(0),
      [&](const View<const float, 2>& some, const View<float, 2>& into) {
        ops::scale_rows(engine, some, 1.0f, {}, into);
      },
      from, to);
}

}  // namespace

std::size_t Graph::beside_bytes(const GraphCall& call, const OperationRange& some) const {
  std::size_t bytes = 0;
  for (int number = some.first; number < some.end; ++number) bytes += operations_[number].kept_bytes(call);
  return bytes;
}

std::size_t Graph::beside_bytes_before(const GraphCall& call, int block, const Operation& operation) const {
  return beside_bytes(call, {operations_.blocks()[static_cast<std::size_t>(block)].first, operation.number()});
}

std::size_t Graph::throughout_bytes(const GraphCall& call) const {
  const TrainingPlan& plan = training(call.training());
  return plan.throughout().bytes(call.tokens()) +
         static_cast<std::size_t>(plan.kept_outputs(call.training().segment)) * plan.output().bytes(call.tokens());
}

std::size_t Graph::bytes_of(const GraphCall& call, const Blocks& blocks) const {
  if (blocks.first == blocks.end) return 0;
  const std::vector<OperationRange>& ranges = operations_.blocks();
  const TrainingPlan& plan = training(call.training());
  const OperationRange some = {ranges[static_cast<std::size_t>(blocks.first)].first,
                               ranges[static_cast<std::size_t>(blocks.end - 1)].end};
  return (plan.before_block(blocks.end) - plan.before_block(blocks.first)).bytes(call.tokens()) +
         beside_bytes(call, some);
}

void Graph::lend(GraphCall& call, const Blocks& blocks, std::byte* memory) const {
  const TrainingPlan& plan = training(call.training());
  const RowSpace values = plan.before_block(blocks.end) - plan.before_block(blocks.first);
  call.memory().first_block = blocks.first;
  call.memory().of_blocks = memory;
  call.memory().beside = memory + values.bytes(call.tokens());
}

std::size_t Graph::kept_bytes(Engine& engine, const GraphInput& input, const BatchShape& shape,
                              const GraphTraining& training) const {
  const BufferPlaces none;
  const GraphCall call(engine, *this, input, View<float, 3>(nullptr, {shape.batch, shape.length, 0}), none, &training);
  return throughout_bytes(call) + (training.segment > 0 ? 0 : bytes_of(call, {0, static_cast<int>(blocks())}));
}

GraphTraining Graph::training_of(const SavedState& saved, const TrainingStep& step) const noexcept {
  const auto count = static_cast<std::int64_t>(blocks());
  return {.step = step,
          .activations = saved.activations(),
          .attention = &saved.attention(),
          .segment = segment_length(saved.checkpoint(), saved.k(), count),
          .kept = saved.data()};
}

void Graph::forward(Engine& engine, const GraphInput& input, View<float, 3> y, SavedState& saved,
                    const TrainingStep& step) const {
  const BatchShape shape = {y.extent(0), y.extent(1)};
  GraphTraining training = training_of(saved, step);
  training.kept = saved.begin(kept_bytes(engine, input, shape, training));
  const TrainingPlan& plan = this->training(training);
  const BufferPlaces buffers = buffers_.places(operations_, plan, training.activations, shape.rows());
  const runtime::Scratch memory(engine, buffers.bytes, name());
  GraphCall call(engine, *this, input, y, buffers, &training);
  call.memory().buffers = memory.data();
  const int count = static_cast<int>(blocks());
  if (training.segment == 0 || count == 0) {
    if (count > 0) lend(call, {0, count}, training.kept + throughout_bytes(call));
    return run_forward(call, operations_.all());
  }
  // The values of each block lie where those of the one before did.
  std::size_t of_block = 0;
  for (int block = 0; block < count; ++block) of_block = std::max(of_block, bytes_of(call, {block, block + 1}));
  const std::size_t outputs = training.segment == 1 ? 0 : 2 * plan.output().bytes(shape.rows());
  const runtime::Scratch again(engine, of_block + outputs, name());
  call.memory().outputs = again.data() + of_block;
  call.memory().outputs_take_turns = true;
  int done = 0;
  for (int block = 0; block < count; ++block) {
    lend(call, {block, block + 1}, again.data());
    const int end = operations_.blocks()[static_cast<std::size_t>(block)].end;
    run_forward(call, {done, end});
    done = end;
  }
  run_forward(call, {done, operations_.size()});
}

// Operation by operation through all rows, or some operations through some rows after others; with shards, through
// those of one after the other.
void Graph::run_backward(GraphCall call, const OperationRange& some) const {
  const TrainingPlan& plan = training(call.training());
  std::array<std::byte*, 3>& gradients = call.memory().gradients;
  for (int end = some.end; end > some.first;) {
    const OperationRange* const pieces = operations_.pieces_of(end - 1);
    int first = pieces == nullptr ? end - 1 : std::max(pieces->first, some.first);
    while (pieces == nullptr && first > some.first && operations_.pieces_of(first - 1) == nullptr) --first;
    const Staying staying = pieces == nullptr ? Staying::apart : Staying::local;
    const std::int64_t rows = pieces == nullptr ? call.tokens() : rows_at_once(call.tokens());
    const runtime::Scratch memory(call.engine(), plan.gradients(staying).bytes(rows), name());
    gradients[static_cast<std::size_t>(staying)] = memory.data();
    if (pieces != nullptr) {
      run_pieces_backward(call, {first, end});
    } else {
      for (int number = end - 1; number >= first; --number) run_pieces_backward(call, {number, number + 1});
    }
    gradients[static_cast<std::size_t>(staying)] = nullptr;
    end = first;
  }
}

void Graph::run_pieces_backward(const GraphCall& call, const OperationRange& some) const {
  const bool goes_in_pieces = operations_.pieces_of(some.first) != nullptr;
  const auto run = [&](const RowRange& rows) {
    if (goes_in_pieces) make_again(call, some, rows);
    for (int number = some.end - 1; number >= some.first; --number) {
      operations_[number].backward(call, rows);
      runtime::throw_if_stopped(call.engine());
    }
  };
  if (!operations_[some.first].goes_by_rows()) return run(call.all_rows());
  const std::int64_t most = goes_in_pieces ? rows_at_once(call.tokens()) : call.tokens();
  const auto run_range = [&](std::int64_t first, std::int64_t count) { call.for_each_rows({first, count}, most, run); };
  const auto keep = [&](RowShards& shards, std::int64_t shard) {
    for (int number = some.first; number < some.end; ++number) {
      for (const std::span<float> gradient : operations_[number].gradients().all) {
        shards.keep(call.engine(), shard, gradient);
      }
    }
  };
  rows_of_x(call.attention()).sum_ranges(call.shape().batch, call.shape().length, run_range, keep);
}

// What was not kept, for it takes little to compute.
void Graph::make_again(const GraphCall& call, const OperationRange& some, const RowRange& rows) const {
  const TrainingPlan& plan = training(call.training());
  for (int number = some.first; number < some.end; ++number) {
    if (plan.of(operations_[number].output().value).keeping == Keeping::again) operations_[number].forward(call, rows);
  }
}

// Blocks forward again from the input of the first one, and then backward.
void Graph::run_segment_backward(GraphCall call, const Blocks& some) const {
  const TrainingPlan& plan = training(call.training());
  const std::size_t values = bytes_of(call, some);
  const std::size_t outputs = static_cast<std::size_t>(some.end - some.first - 1) * plan.output().bytes(call.tokens());
  const runtime::Scratch memory(call.engine(), values + outputs, name());
  lend(call, some, memory.data());
  call.memory().outputs = memory.data() + values;
  const std::vector<OperationRange>& ranges = operations_.blocks();
  {
    const runtime::Scratch buffers(call.engine(), call.places().bytes, name());
    call.memory().buffers = buffers.data();
    for (int block = some.first; block < some.end; ++block) {
      const OperationRange& range = ranges[static_cast<std::size_t>(block)];
      run_forward(call, {range.first, block + 1 < some.end ? range.end : plan.end_of_repeat(block)});
    }
  }
  run_backward(
      call, {ranges[static_cast<std::size_t>(some.first)].first, ranges[static_cast<std::size_t>(some.end - 1)].end});
}

// Whether blocks that are computed again write what lies in the output's place.
bool Graph::writes_output_again(const TrainingPlan& plan) const noexcept {
  for (int block = 0; block < static_cast<int>(blocks()); ++block) {
    const int end = plan.end_of_repeat(block);
    for (int number = operations_.blocks()[static_cast<std::size_t>(block)].first; number < end; ++number) {
      const int made = operations_[number].output().value;
      if (buffers_.of(made).is_hidden && plan.of(made).keeping == Keeping::none) return true;
    }
  }
  return false;
}

void Graph::backward(Engine& engine, const GraphInput& input, const SavedState& saved, View<const float, 3> y_gradient,
                     View<float, 3> x_gradient, const HeadVisit& visit) {
  GraphTraining training = training_of(saved, saved.call().step);
  training.visit = visit;
  const BatchShape shape = {y_gradient.extent(0), y_gradient.extent(1)};
  const std::int64_t tokens = shape.rows(), width = y_gradient.extent(2);
  const TrainingPlan& plan = this->training(training);
  const runtime::Scratch gradients(engine, plan.gradients(Staying::throughout).bytes(tokens), name());
  const bool keeps = training.segment == 0 || blocks() == 0;
  // What blocks that are computed again take, and where they put what was the output.
  BufferPlaces buffers;
  if (!keeps) buffers = buffers_.places(operations_, plan, training.activations, tokens);
  const RowSpace row(width, NumberType::float32);
  const runtime::Scratch output(engine, !keeps && writes_output_again(plan) ? row.bytes(tokens) : 0, name());
  const View<float, 3> y = spaced_rows(reinterpret_cast<float*>(output.data()), {shape.batch, shape.length, width});
  GraphCall call(engine, *this, input, y, buffers, &training);
  call.memory().gradients[static_cast<std::size_t>(Staying::throughout)] = gradients.data();
  const auto gradient = [&](const Slice& slice) {
    return floats_of(call.samples(call.gradient(slice, call.all_rows())));
  };
  copy(engine, y_gradient, gradient(operations_[operations_.size() - 1].output()));
  run_all_backward(call);
  if (const Slice x = operations_.given_value()) copy(engine, gradient(x), x_gradient);
}

void Graph::run_all_backward(GraphCall call) const {
  const GraphTraining& training = call.training();
  const int count = static_cast<int>(blocks());
  if (training.segment == 0 || count == 0) {
    if (count > 0) lend(call, {0, count}, training.kept + throughout_bytes(call));
    return run_backward(call, operations_.all());
  }
  const std::vector<OperationRange>& ranges = operations_.blocks();
  run_backward(call, {ranges.back().end, operations_.size()});
  const auto segment = static_cast<int>(training.segment);
  for (int first = (count - 1) / segment * segment; first >= 0; first -= segment) {
    run_segment_backward(call, {first, std::min(first + segment, count)});
  }
  run_backward(call, {0, ranges.front().first});
}

}  // namespace headlight::layers
