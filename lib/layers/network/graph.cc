#include "layers/network/graph.h"

#include <algorithm>
#include <optional>

#include "runtime/parallel.h"

namespace headlight::layers {

void Graph::finish() {
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

void Graph::run_forward(GraphCall call, const OperationRange& some) const {
  const std::int64_t tokens = call.tokens();
  const std::int64_t at_once =
      call.is_training() ? rows_at_once(tokens) : operations_.rows_at_once(tokens, call.engine());
  for_each_stretch(some, [&](const OperationRange& stretch, bool is_run) {
    const BufferPlaces& places = call.places();
    const runtime::Scratch memory(call.engine(), is_run ? places.within_runs : places.outside_runs, name());
    (is_run ? call.memory().within_runs : call.memory().outside_runs) = memory.data();
    const auto run_rows = [&](const RowRange& rows) {
      for (int number = stretch.first; number < stretch.end; ++number) {
        // Without a row here others' may be attended to.
        if (rows.count == 0 && operations_[number].goes_by_rows()) continue;
        operations_[number].forward(call, rows);
        runtime::throw_if_stopped(call.engine());  // nor does the next one begin
      }
    };
    const std::int64_t step = is_run ? at_once : tokens;
    if (tokens == 0) run_rows({0, 0});
    for (std::int64_t row = 0; row < tokens; row += step) run_rows({row, std::min(step, tokens - row)});
  });
}

void Graph::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
                    const LayerOutputs& outputs) const {
  const BufferPlaces buffers = buffers_.places(operations_, engine, hidden.extent(0));
  const runtime::Scratch memory(engine, buffers.throughout, name());
  GraphCall call(engine, *this, input, hidden, buffers, nullptr, outputs);
  call.memory().buffers = memory.data();
  run_forward(call, operations_.all());
}

template <class Function>
void Graph::for_each_size(const OperationRange& some, bool is_run, const Engine& engine, std::int64_t tokens,
                          Function function) const {
  const std::int64_t at_once = operations_.rows_at_once(tokens, engine);
  for (int number = some.first; number < some.end; ++number) {
    function(operations_[number], is_run ? at_once : tokens);
    if (is_run && at_once > 0 && tokens % at_once != 0) function(operations_[number], tokens % at_once);
  }
}

std::size_t Graph::workspace_bytes(const Engine& engine, std::int64_t tokens) const {
  const BufferPlaces places = buffers_.places(operations_, engine, tokens);
  std::size_t most = 0;
  for_each_stretch(operations_.all(), [&](const OperationRange& some, bool is_run) {
    std::size_t inner = 0;
    for_each_size(some, is_run, engine, tokens, [&](const Operation& operation, std::int64_t rows) {
      inner = std::max(inner, operation.workspace_bytes(engine, rows));
    });
    most = std::max(most, (is_run ? places.within_runs : places.outside_runs) + inner);
  });
  return places.throughout + most;
}

void Graph::reserve(Engine& engine, std::int64_t tokens) const {
  // Held while the operations reserve theirs, as it is when they run.
  const BufferPlaces places = buffers_.places(operations_, engine, tokens);
  const runtime::Scratch throughout(engine, places.throughout, name());
  for_each_stretch(operations_.all(), [&](const OperationRange& some, bool is_run) {
    const runtime::Scratch memory(engine, is_run ? places.within_runs : places.outside_runs, name());
    for_each_size(some, is_run, engine, tokens,
                  [&](const Operation& operation, std::int64_t rows) { operation.reserve(engine, rows); });
  });
}

}  // namespace headlight::layers
