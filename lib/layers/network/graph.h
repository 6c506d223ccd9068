// A network as a list of operations over values. Parts of a network (parts.h) declare their parameters and operations
// once; all that a layer does with them follows from the lists: names, first values, loading, both passes, how much
// memory they take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "layers/network/buffer_plan.h"
#include "layers/network/operation_list.h"
#include "layers/network/parameters.h"
#include "layers/network/training_plan.h"

namespace headlight::layers {

class Graph {
 public:
  // Without memory for parameters nothing can be computed.
  explicit Graph(bool has_memory = true) noexcept : parameters_(has_memory) {}

  // What parts add to, until finish(): its last operation's output is the network's.
  [[nodiscard]] Parameters& parameters() noexcept { return parameters_; }
  [[nodiscard]] OperationList& operations() noexcept { return operations_; }
  template <class Made, class... Arguments>
  void add(Arguments&&... arguments) {
    operations_.add(std::make_unique<Made>(std::forward<Arguments>(arguments)...));
  }
  void finish();

  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, const LayerOutputs& outputs) const;
  // The same in training, keeping kept_bytes() for backward(): with `keeps_blocks` all that it reads, else what blocks
  // begin with.
  struct Training {
    bool keeps_blocks;
    std::byte* kept;
    TrainingStep step;
  };
  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, const Training& training) const;
  void backward(Engine& engine, const EncoderInput& input, const Training& training,
                View<const float, 2> hidden_gradient, HeadVisitor* visitor);
  [[nodiscard]] std::size_t kept_bytes(bool keeps_blocks, std::int64_t tokens) const noexcept {
    return training_.kept_bytes(keeps_blocks, tokens);
  }
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t tokens) const;
  void reserve(Engine& engine, std::int64_t tokens) const;

  [[nodiscard]] std::int64_t layout() const noexcept { return training_.layout(); }
  // Of a value, for GraphCall.
  [[nodiscard]] const Value& value(int number) const noexcept { return operations_.value(number); }
  [[nodiscard]] const BufferPlan& buffers() const noexcept { return buffers_; }
  [[nodiscard]] const TrainingPlan& training() const noexcept { return training_; }
  [[nodiscard]] std::int64_t rows_at_once(std::int64_t tokens) const noexcept {
    return operations_.rows_at_once(tokens);
  }
  [[nodiscard]] std::size_t blocks() const noexcept { return operations_.blocks().size(); }

 private:
  // Calls function(operation, rows in one go) for all of them.
  template <class Function>
  void for_each_operation(const OperationRange& some, std::int64_t tokens, Function function) const;
  template <class Function>
  void for_each_size(std::int64_t tokens, Function function) const;
  void run_forward(const GraphCall& call, const OperationRange& some) const;
  void run_backward(const GraphCall& call, const OperationRange& some) const;

  Parameters parameters_;
  OperationList operations_;
  BufferPlan buffers_;
  TrainingPlan training_;
};

}  // namespace headlight::layers
