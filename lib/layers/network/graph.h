// A network as a list of operations over values. Parts of a network (parts.h) declare their parameters and operations
// once; all that a layer does with them follows from the lists: names, first values, loading, both passes, how much
// memory they take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/network/buffer_plan.h"
#include "layers/network/operation_list.h"
#include "layers/network/parameters.h"
#include "layers/network/sequence_groups.h"
#include "layers/network/training_plan.h"
#include "layers/row_visitor.h"

namespace headlight::layers {

class Graph {
 public:
  // `name` is that of the layer, in messages. Without memory for parameters nothing can be computed.
  explicit Graph(std::string_view name, bool has_memory = true) : parameters_(name, has_memory) {}

  [[nodiscard]] std::string_view name() const noexcept { return parameters_.name(); }

  // What parts add to, until finish(): its last operation's output is the network's.
  [[nodiscard]] Parameters& parameters() noexcept { return parameters_; }
  [[nodiscard]] const Parameters& parameters() const noexcept { return parameters_; }
  [[nodiscard]] OperationList& operations() noexcept { return operations_; }
  [[nodiscard]] const OperationList& operations() const noexcept { return operations_; }
  template <class Made, class... Arguments>
  void add(Arguments&&... arguments) {
    operations_.add(std::make_unique<Made>(std::forward<Arguments>(arguments)...));
  }
  // `parts`: how many DropoutPlace counts.
  void finish(std::size_t parts);

  // Runs the operations of a pass, one after another.
  class Runner {
   public:
    virtual ~Runner() = default;
    virtual void run(const Operation& operation, const GraphCall& call, const RowRange& rows) const {
      operation.forward(call, rows);
    }
  };
  // y [B, L, E]
  void forward(Engine& engine, const GraphInput& input, View<float, 3> y, const Runner& runner = Runner()) const;
  // The same in training; `saved` begins a pass with it, whose commit() is the caller's.
  void forward(Engine& engine, const GraphInput& input, View<float, 3> y, SavedState& saved,
               const TrainingStep& step) const;
  // x_gradient, of a value that is given, may be y_gradient.
  void backward(Engine& engine, const GraphInput& input, const SavedState& saved, View<const float, 3> y_gradient,
                View<float, 3> x_gradient, const HeadVisit& visit);
  // What forward() takes from the engine for such a batch or, without a memory, for samples with fewer rows, and beside
  // it another call that takes one block; and taking it now.
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, const BatchShape& shape, std::size_t other = 0) const;
  void reserve(Engine& engine, const BatchShape& shape, std::size_t other = 0) const;

  [[nodiscard]] std::int64_t layout() const noexcept { return training_[0].layout(); }
  // Of a value, for GraphCall.
  [[nodiscard]] const Value& value(int number) const noexcept { return operations_.value(number); }
  [[nodiscard]] const BufferPlan& buffers() const noexcept { return buffers_; }
  [[nodiscard]] const TrainingPlan& training(const GraphTraining& step) const noexcept {
    if (step.activations == NumberType::float32) return training_[0];
    return training_[step.gradients() == NumberType::float32 ? 1 : 2];
  }
  // What those operations keep beside values, and those of a block and behind it before one.
  [[nodiscard]] std::size_t beside_bytes(const GraphCall& call, const OperationRange& some) const;
  [[nodiscard]] std::size_t beside_bytes_before(const GraphCall& call, int block, const Operation& operation) const;
  [[nodiscard]] std::int64_t rows_at_once(std::int64_t tokens) const noexcept {
    return operations_.rows_at_once(tokens);
  }
  [[nodiscard]] std::size_t blocks() const noexcept { return operations_.blocks().size(); }
  [[nodiscard]] std::uint32_t parts() const noexcept { return parts_; }

 private:
  // Blocks first … end − 1.
  struct Blocks {
    int first;
    int end;
  };

  void run_forward(const GraphCall& call, const OperationRange& some, const Runner& runner = Runner()) const;
  void run_by_sequences(const GraphCall& call, const SequenceGroups& groups, std::int64_t* begins,
                        const Runner& runner) const;
  // Whether sequences may go through blocks by themselves, and how many numbers say at most where those of a group
  // begin.
  [[nodiscard]] bool goes_by_sequences() const noexcept {
    return !operations_.sequences().empty() && !operations_.given_value();
  }
  [[nodiscard]] std::int64_t most_begins(std::int64_t tokens) const noexcept {
    return goes_by_sequences() ? tokens + 1 : 0;
  }
  // The blocks of that memory: of the pass, and those of an operation. Throws std::invalid_argument where rows pass 63
  // bits of bytes.
  using MemoryBlocks = std::array<std::size_t, 3>;
  [[nodiscard]] MemoryBlocks memory_blocks(const Engine& engine, const BatchShape& shape) const;
  // Where the engine holds more than it held: takes what operations of any such call take, so that no later one
  // allocates. Before the first operation, too: the pool would keep more of blocks that grow from one to the next.
  void reserve_more(Engine& engine, const BatchShape& shape, std::size_t& held) const;
  [[nodiscard]] GraphTraining training_of(const SavedState& saved, const TrainingStep& step) const noexcept;
  [[nodiscard]] std::size_t kept_bytes(Engine& engine, const GraphInput& input, const BatchShape& shape,
                                       const GraphTraining& training) const;
  // What is kept whether blocks are computed again or not; what those blocks keep, and lending them memory for it.
  [[nodiscard]] std::size_t throughout_bytes(const GraphCall& call) const;
  [[nodiscard]] std::size_t bytes_of(const GraphCall& call, const Blocks& blocks) const;
  void lend(GraphCall& call, const Blocks& blocks, std::byte* memory) const;
  void run_all_backward(GraphCall call) const;
  void run_backward(GraphCall call, const OperationRange& some) const;
  void run_pieces_backward(const GraphCall& call, const OperationRange& some) const;
  void make_again(const GraphCall& call, const OperationRange& some, const RowRange& rows) const;
  void run_segment_backward(GraphCall call, const Blocks& some) const;
  [[nodiscard]] bool writes_output_again(const TrainingPlan& plan) const noexcept;

  Parameters parameters_;
  OperationList operations_;
  std::uint32_t parts_ = 0;
  BufferPlan buffers_;
  std::array<TrainingPlan, 3> training_;  // for activations of float32, of 16 bits, and gradients of that, too
};

}  // namespace headlight::layers
