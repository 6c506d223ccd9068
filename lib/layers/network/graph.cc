#include "layers/network/graph.h"

#include <algorithm>
#include <numeric>

#include "headlight/out_of_memory.h"
#include "ops/check.h"
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

// What is held throughout a pass: buffers, and where the sequences of a group begin.
struct Throughout {
  Throughout(const BufferPlaces& places, std::int64_t most_begins) noexcept
      : buffers(layout.add<std::byte>(places.bytes)), begins(layout.add<std::int64_t>(most_begins)) {}

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

void Graph::run_forward(const GraphCall& call, const OperationRange& some, const Runner& runner) const {
  const std::int64_t at_once =
      call.is_training() ? rows_at_once(call.tokens()) : operations_.rows_at_once(call.rows_of_matrix(), call.engine());
  for (int first = some.first, end = first; first < some.end; first = end) {
    const OperationRange* const run = operations_.run_of(first);
    end = run == nullptr ? first + 1 : std::min(run->end, some.end);
    const auto run_together = [&](const RowRange& rows) {
      for (int number = first; number < end; ++number) {
        runner.run(operations_[number], call, rows);
        runtime::throw_if_stopped(call.engine());  // nor does the next one begin
      }
    };
    if (operations_[first].goes_by_rows()) {
      call.for_each_rows(call.all_rows(), run == nullptr ? call.tokens() : at_once, run_together);
    } else {
      run_together(call.all_rows());  // without a row here others' may be attended to
    }
  }
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
  // What is asked for of heads and their weights is of all sequences at once.
  const bool is_asked = input.attention != nullptr || !input.probabilities.empty() || !input.heads.empty();
  const bool is_grouped = !is_asked && goes_by_sequences();
  const std::int64_t tokens = y.extent(0) * y.extent(1);
  const SequenceGroups groups(is_grouped ? input.tokens.offsets : std::span<const std::int64_t>(),
                              operations_.most_rows_at_once(tokens, engine));
  const BufferPlaces places = buffers_.places(operations_, engine, tokens);
  const Throughout throughout(places, most_begins(tokens));
  GraphCall call(engine, *this, input, y, places, nullptr);
  std::size_t held = engine.scratch_bytes();
  const runtime::Scratch memory(engine, throughout.layout.bytes(), name());
  reserve_more(engine, call.shape(), held);
  call.memory().buffers = throughout.buffers.in(memory.data());
  if (groups.are_one()) {
    run_forward(call, operations_.all(), runner);
  } else {
    run_by_sequences(call, groups, throughout.begins.in(memory.data()), runner);
  }
  reserve_more(engine, call.shape(), held);
}

Graph::MemoryBlocks Graph::memory_blocks(const Engine& engine, const BatchShape& shape) const {
  const BufferPlaces places = buffers_.places(operations_, engine, shape.rows());
  runtime::ScratchLayout output;
  output.add<float>(shape.batch, shape.length, operations_.made_by(operations_.size() - 1).columns);
  if (std::max(places.bytes, output.bytes()) > PTRDIFF_MAX) {
    constexpr std::string_view kExpected = ", expected rows that take less than 2⁶³ bytes";
    if (!operations_.given_value()) ops::fail(name(), "tokens is ", shape.length, kExpected);
    ops::fail(name(), "[B, L] is [", shape.batch, ", ", shape.length, "]", kExpected);
  }
  MemoryBlocks blocks = {Throughout(places, most_begins(shape.rows())).layout.bytes()};
  const BatchShape of_run = {1, operations_.most_rows_at_once(shape.rows(), engine)};
  for (int number = 0; number < operations_.size(); ++number) {
    const bool is_in_run = operations_.run_of(number) != nullptr;
    const Operation::Blocks some = operations_[number].workspace(engine, is_in_run ? of_run : shape);
    blocks[1] = std::max(blocks[1], std::max(some[0], some[1]));
    blocks[2] = std::max(blocks[2], std::min(some[0], some[1]));
  }
  return blocks;
}

void Graph::reserve_more(Engine& engine, const BatchShape& shape, std::size_t& held) const {
  if (engine.scratch_bytes() == held) return;
  const MemoryBlocks blocks = memory_blocks(engine, shape);
  try {
    runtime::reserve_scratch(engine, blocks.data() + 1, blocks.size() - 1, name());
  } catch (const OutOfMemory&) {  // this call may do with less
  }
  held = engine.scratch_bytes();
}

std::size_t Graph::workspace_bytes(const Engine& engine, const BatchShape& shape, std::size_t other) const {
  MemoryBlocks blocks = memory_blocks(engine, shape);
  std::size_t& largest = *std::max_element(blocks.begin(), blocks.end());
  largest = std::max(largest, other);
  return std::accumulate(blocks.begin(), blocks.end(), std::size_t{0});
}

void Graph::reserve(Engine& engine, const BatchShape& shape, std::size_t other) const {
  const MemoryBlocks blocks = memory_blocks(engine, shape);
  for (int number = 0; number < operations_.size(); ++number) operations_[number].pack_weights(engine);
  runtime::reserve_scratch(engine, blocks.data(), blocks.size(), name());
  const runtime::Scratch memory(engine, other, name());
}

}  // namespace headlight::layers
