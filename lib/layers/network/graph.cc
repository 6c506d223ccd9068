#include "layers/network/graph.h"

#include <algorithm>
#include <optional>

#include "runtime/parallel.h"

namespace headlight::layers {

namespace {

// Those of some rows, whose sequences begin there.
EncoderInput tokens_of(const EncoderInput& all, const RowRange& rows, std::span<const std::int64_t> offsets) {
  const auto some = [&](std::span<const std::int64_t> list) {
    return list.empty() ? list
                        : list.subspan(static_cast<std::size_t>(rows.first), static_cast<std::size_t>(rows.count));
  };
  return {some(all.ids), some(all.positions), some(all.token_types), offsets};
}

// What is there throughout a pass: buffers, and where the sequences of a group of so many rows begin; of none if 0.
struct Throughout {
  Throughout(const BufferPlaces& places, std::int64_t rows_of_group) noexcept
      : buffers(layout.add<std::byte>(places.throughout)),
        begins(layout.add<std::int64_t>(rows_of_group == 0 ? 0 : rows_of_group + 1)) {}

  runtime::ScratchLayout layout{};
  runtime::ScratchPart<std::byte> buffers;
  runtime::ScratchPart<std::int64_t> begins;
};

}  // namespace

void Graph::finish(std::size_t parts) {
  parts_ = static_cast<std::uint32_t>(parts);
  operations_.finish();
  buffers_.make(operations_, name());
  training_[0].make(operations_, NumberType::float32, NumberType::float32);
  training_[1].make(operations_, NumberType::bfloat16, NumberType::float32);
  training_[2].make(operations_, NumberType::bfloat16, NumberType::bfloat16);
}

template <class Function>
void Graph::for_each_stretch(const OperationRange& some, Function function) const {
  for (int first = some.first; first < some.end;) {
    const OperationRange* const run = operations_.run_of(first);
    int end = run == nullptr ? first + 1 : std::min(run->end, some.end);
    while (run == nullptr && end < some.end && operations_.run_of(end) == nullptr) ++end;
    function(OperationRange{first, end}, run != nullptr);
    first = end;
  }
}

void Graph::run_forward(GraphCall call, const OperationRange& some, const Runner& runner) const {
  const std::int64_t tokens = call.tokens();
  const std::int64_t at_once =
      call.is_training() ? rows_at_once(tokens) : operations_.rows_at_once(call.rows_of_matrix(), call.engine());
  for_each_stretch(some, [&](const OperationRange& stretch, bool is_run) {
    const BufferPlaces& places = call.places();
    const runtime::Scratch memory(call.engine(), is_run ? places.within_runs : places.outside_runs, name());
    (is_run ? call.memory().within_runs : call.memory().outside_runs) = memory.data();
    const auto run = [&](const OperationRange& together, const RowRange& rows) {
      for (int number = together.first; number < together.end; ++number) {
        runner.run(operations_[number], call, rows);
        runtime::throw_if_stopped(call.engine());  // nor does the next one begin
      }
    };
    const auto run_by_rows = [&](const OperationRange& together, std::int64_t most) {
      call.for_each_rows(call.all_rows(), most, [&](const RowRange& rows) { run(together, rows); });
    };
    if (is_run) return run_by_rows(stretch, at_once);
    for (int number = stretch.first; number < stretch.end; ++number) {
      const OperationRange one = {number, number + 1};
      if (operations_[number].goes_by_rows()) {
        run_by_rows(one, tokens);
      } else {
        run(one, call.all_rows());  // without a row here others' may be attended to
      }
    }
  });
}

// Blocks that look at sequences alone, some of those at a time, and all else with all rows.
void Graph::run_by_sequences(const GraphCall& call, const SequenceGroups& groups, std::int64_t* begins,
                             const Runner& runner) const {
  int done = 0;
  for (const OperationRange& some : operations_.sequences()) {
    run_forward(call, {done, some.first}, runner);
    groups.for_each(begins, [&](const RowRange& rows, std::span<const std::int64_t> offsets) {
      const GraphInput input = {.tokens = tokens_of(call.input(), rows, offsets)};
      run_forward(GraphCall(call, input, rows), some, runner);
    });
    done = some.end;
  }
  run_forward(call, {done, operations_.size()}, runner);
}

void Graph::forward(Engine& engine, const GraphInput& input, View<float, 3> y, const Runner& runner) const {
  const BatchShape shape = {y.extent(0), y.extent(1)};
  // What is asked for of heads and their weights is of all sequences at once.
  const bool is_asked = input.attention != nullptr || !input.probabilities.empty() || !input.heads.empty();
  const std::int64_t of_group = is_asked ? 0 : rows_of_group(engine, shape);
  const SequenceGroups groups(of_group == 0 ? std::span<const std::int64_t>() : input.tokens.offsets, shape.rows(),
                              operations_.most_rows_at_once(shape.rows(), engine));
  // Memory for any groups of so many rows: a call with fewer of these sequences needs no more.
  const BufferPlaces places =
      buffers_.places(operations_, engine, shape.rows(), groups.are_one() ? shape.rows() : of_group);
  const Throughout throughout(places, groups.are_one() ? 0 : of_group);
  const runtime::Scratch memory(engine, throughout.layout.bytes(), name());
  GraphCall call(engine, *this, input, y, places, nullptr);
  call.memory().buffers = throughout.buffers.in(memory.data());
  if (groups.are_one()) return run_forward(call, operations_.all(), runner);
  reserve_for_groups(engine, shape, places);
  run_by_sequences(call, groups, throughout.begins.in(memory.data()), runner);
}

// Layers, whose x is given, have no sequences.
std::int64_t Graph::rows_of_group(const Engine& engine, const BatchShape& shape) const noexcept {
  const std::int64_t tokens = shape.rows(), at_once = operations_.most_rows_at_once(tokens, engine);
  const bool may_be = !operations_.sequences().empty() && !operations_.given_value() && tokens > at_once;
  return may_be ? SequenceGroups::most_rows(tokens, at_once) : 0;
}

std::size_t Graph::bytes_in_groups(const Engine& engine, const BatchShape& shape, int operation) const {
  const std::int64_t of_group = rows_of_group(engine, shape);
  if (of_group == 0 || !operations_.is_in_sequences(operation)) return 0;
  const bool is_in_run = operations_.run_of(operation) != nullptr;
  return operations_[operation].workspace_bytes_up_to(
      engine, is_in_run ? operations_.most_rows_at_once(shape.rows(), engine) : of_group);
}

void Graph::reserve_for_groups(Engine& engine, const BatchShape& shape, const BufferPlaces& places) const {
  for_each_stretch(operations_.all(), [&](const OperationRange& some, bool is_run) {
    const runtime::Scratch memory(engine, is_run ? places.within_runs : places.outside_runs, name());
    for (int number = some.first; number < some.end; ++number) {
      const runtime::Scratch of_operation(engine, bytes_in_groups(engine, shape, number), name());
    }
  });
}

template <class Function>
void Graph::for_each_size(const OperationRange& some, bool is_run, const Engine& engine, const BatchShape& shape,
                          Function function) const {
  const std::int64_t tokens = shape.rows(), at_once = operations_.rows_at_once(tokens, engine);
  const std::int64_t most = operations_.most_rows_at_once(tokens, engine);
  for (int number = some.first; number < some.end; ++number) {
    function(operations_[number], is_run ? BatchShape{1, most} : shape);
    if (!is_run || at_once == 0) continue;
    if (at_once != most) function(operations_[number], BatchShape{1, at_once});
    if (tokens % at_once != 0) function(operations_[number], BatchShape{1, tokens % at_once});
  }
}

std::size_t Graph::workspace_bytes(const Engine& engine, const BatchShape& shape) const {
  const BufferPlaces places = buffers_.places(operations_, engine, shape.rows(), shape.rows());
  std::size_t most = 0;
  for_each_stretch(operations_.all(), [&](const OperationRange& some, bool is_run) {
    std::size_t inner = 0;
    for_each_size(some, is_run, engine, shape, [&](const Operation& operation, const BatchShape& rows) {
      inner = std::max(inner, operation.workspace_bytes(engine, rows));
    });
    for (int number = some.first; number < some.end; ++number) {
      inner = std::max(inner, bytes_in_groups(engine, shape, number));
    }
    most = std::max(most, (is_run ? places.within_runs : places.outside_runs) + inner);
  });
  return Throughout(places, rows_of_group(engine, shape)).layout.bytes() + most;
}

void Graph::reserve(Engine& engine, const BatchShape& shape) const {
  // Held while the operations reserve theirs, as it is when they run.
  const BufferPlaces places = buffers_.places(operations_, engine, shape.rows(), shape.rows());
  const runtime::Scratch throughout(engine, Throughout(places, rows_of_group(engine, shape)).layout.bytes(), name());
  for_each_stretch(operations_.all(), [&](const OperationRange& some, bool is_run) {
    const runtime::Scratch memory(engine, is_run ? places.within_runs : places.outside_runs, name());
    for_each_size(some, is_run, engine, shape,
                  [&](const Operation& operation, const BatchShape& rows) { operation.reserve(engine, rows); });
  });
  reserve_for_groups(engine, shape, places);
}

}  // namespace headlight::layers
