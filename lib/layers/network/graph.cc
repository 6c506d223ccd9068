#include "layers/network/graph.h"

#include <algorithm>

#include "layers/layer_names.h"
#include "runtime/parallel.h"

namespace headlight::layers {

void Graph::finish() {
  operations_.finish();
  buffers_.make(operations_);
  training_.make(operations_);
}

template <class Function>
void Graph::for_each_operation(const OperationRange& some, std::int64_t tokens, Function function) const {
  const std::int64_t at_once = rows_at_once(tokens);
  for (int number = some.first; number < some.end;) {
    const OperationRange* const run = operations_.run_of(number);
    const int end = run == nullptr ? number + 1 : std::min(run->end, some.end);
    const std::int64_t step = run == nullptr ? tokens : at_once;
    for (std::int64_t first = 0; first < tokens; first += step) {
      for (int next = number; next < end; ++next) {
        function(operations_[next], RowRange{first, std::min(step, tokens - first)});
      }
    }
    number = end;
  }
}

void Graph::run_forward(const GraphCall& call, const OperationRange& some) const {
  for_each_operation(some, call.tokens(), [&](const Operation& operation, const RowRange& rows) {
    operation.forward(call, rows);
    runtime::throw_if_stopped(call.engine());  // nor does the next one begin
  });
}

void Graph::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
                    const LayerOutputs& outputs) const {
  const BufferPlaces buffers = buffers_.places(operations_, engine, hidden.extent(0));
  const runtime::Scratch memory(engine, buffers.bytes, kNetworkName);
  run_forward(GraphCall(engine, *this, input, hidden, {.buffers = memory.data()}, buffers, {}, outputs),
              operations_.all());
}

// Calls function(operation, rows) for each number of rows that it will be run for.
template <class Function>
void Graph::for_each_size(std::int64_t tokens, Function function) const {
  const std::int64_t at_once = rows_at_once(tokens);
  for (int number = 0; number < operations_.size(); ++number) {
    const bool is_in_run = operations_.run_of(number) != nullptr;
    function(operations_[number], is_in_run ? at_once : tokens);
    if (is_in_run && at_once > 0 && tokens % at_once != 0) function(operations_[number], tokens % at_once);
  }
}

std::size_t Graph::workspace_bytes(const Engine& engine, std::int64_t tokens) const {
  std::size_t most = 0;
  for_each_size(tokens, [&](const Operation& operation, std::int64_t rows) {
    most = std::max(most, operation.workspace_bytes(engine, rows));
  });
  return buffers_.places(operations_, engine, tokens).bytes + most;
}

void Graph::reserve(Engine& engine, std::int64_t tokens) const {
  // Held while the operations reserve theirs, as it is when they run.
  const runtime::Scratch memory(engine, buffers_.places(operations_, engine, tokens).bytes, kNetworkName);
  for_each_size(tokens, [&](const Operation& operation, std::int64_t rows) { operation.reserve(engine, rows); });
}

}  // namespace headlight::layers
