// Both passes of training.
#include <algorithm>

#include "layers/layer_names.h"
#include "layers/network/graph.h"
#include "layers/rows.h"
#include "ops/rows/scale.h"
#include "runtime/parallel.h"

namespace headlight::layers {

void Graph::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, const Training& training) const {
  const std::int64_t tokens = hidden.extent(0);
  const BufferPlaces buffers = buffers_.places(operations_, engine, tokens);
  const runtime::Scratch memory(engine, buffers.bytes, kNetworkName);
  const bool keeps = training.keeps_blocks;
  const runtime::Scratch of_block(engine, keeps ? 0 : training_.block_bytes(tokens), kNetworkName);
  const GraphMemory lent = {.is_training = true,
                            .buffers = memory.data(),
                            .kept = training.kept,
                            .kept_of_block = keeps ? nullptr : of_block.data()};
  run_forward(GraphCall(engine, *this, input, hidden, lent, buffers, training.step, {}), operations_.all());
}

void Graph::run_backward(const GraphCall& call, const OperationRange& some) const {
  const std::int64_t tokens = call.tokens(), at_once = rows_at_once(tokens);
  for (int number = some.end - 1; number >= some.first;) {
    const OperationRange* const run = operations_.run_of(number);
    const int first = run == nullptr ? number : run->first;
    const std::int64_t step = run == nullptr ? tokens : at_once;
    for (std::int64_t row = 0; row < tokens; row += step) {
      for (int back = number; back >= first; --back) {
        operations_[back].backward(call, {row, std::min(step, tokens - row)});
        runtime::throw_if_stopped(call.engine());
      }
    }
    number = first - 1;
  }
}

void Graph::backward(Engine& engine, const EncoderInput& input, const Training& training,
                     View<const float, 2> hidden_gradient, HeadVisitor* visitor) {
  const std::int64_t tokens = hidden_gradient.extent(0), width = hidden_gradient.extent(1);
  const bool keeps = training.keeps_blocks;
  const runtime::Scratch gradients(engine, training_.gradient_bytes(tokens, rows_at_once(tokens)), kNetworkName);
  // What blocks that are computed again take, and where they put what was the output.
  const BufferPlaces buffers = keeps ? BufferPlaces() : buffers_.places(operations_, engine, tokens);
  const runtime::Scratch memory(engine, buffers.bytes, kNetworkName);
  const runtime::Scratch of_block(engine, keeps ? 0 : training_.block_bytes(tokens), kNetworkName);
  runtime::ScratchLayout hidden_layout;
  if (!keeps) hidden_layout.add<float>(row_distance(width), tokens);
  const runtime::Scratch output(engine, hidden_layout.bytes(), kNetworkName);
  const View<float, 2> hidden(reinterpret_cast<float*>(output.data()), {tokens, width}, {row_distance(width), 1});
  const GraphMemory lent = {.is_training = true,
                            .buffers = memory.data(),
                            .kept = training.kept,
                            .kept_of_block = keeps ? nullptr : of_block.data(),
                            .gradients = gradients.data()};
  const GraphCall call(engine, *this, input, hidden, lent, buffers, training.step, {.visitor = visitor});
  const RowRange all = call.all_rows();
  ops::scale_rows(engine, hidden_gradient, 1.0f, {}, call.gradient(operations_[operations_.size() - 1].output(), all));
  if (keeps || blocks() == 0) return run_backward(call, operations_.all());
  const std::vector<OperationRange>& ranges = operations_.blocks();
  run_backward(call, {ranges.back().end, operations_.size()});
  for (auto block = ranges.end(); block-- != ranges.begin();) {
    run_forward(call, {block->first, training_.end_of_repeat(static_cast<int>(block - ranges.begin()))});
    run_backward(call, *block);
  }
  run_backward(call, {0, ranges.front().first});
}

}  // namespace headlight::layers
