// What a network consists of: operations, and what they see of a pass.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/layers/network_spec.h"
#include "headlight/layers/training_attention.h"
#include "headlight/typed_view.h"
#include "layers/network/values.h"
#include "layers/rows.h"

namespace headlight::layers {

class Graph;
class Operation;
class TrainingPlan;

// Where buffers begin in scratch memory, for an engine and so many tokens. Those of runs and those that are there
// outside of runs alone take each other's place.
struct BufferPlaces {
  // Values of a few sizes take each other's place, so that a dozen buffers do for any number of blocks.
  static constexpr std::size_t kMost = 32;
  std::array<std::size_t, kMost> first{};
  std::size_t bytes = 0;
};

// Where the dropouts of a block take their numbers.
enum Place : std::uint32_t { kSelfAttention, kSelfOutput, kMemoryAttention, kMemoryOutput, kActivation, kFeedForward };

// Where an operation drops numbers in training: in which part (a block; behind them, the embeddings), and where in it.
struct DropoutPlace {
  float probability = 0;
  std::uint32_t part = 0;
  std::uint32_t place = 0;
};

// What a step of training is: its random numbers, in which type it computes, what it runs for attention, and whether
// all is kept for the way back or (segment > 0) the input of every segment-th block, from which so many are computed
// again.
struct GraphTraining {
  TrainingStep step{};
  NumberType activations = NumberType::float32;
  const TrainingAttention* attention = nullptr;
  std::int64_t segment = 0;
  std::byte* kept = nullptr;
  HeadVisit visit{};  // who looks at heads on the way back, in float32, and what the first block is called there

  // Of gradients that are rounded where nobody looks at them.
  [[nodiscard]] NumberType gradients() const noexcept {
    return visit.visitor == nullptr ? activations : NumberType::float32;
  }
};

// Memory of a pass over a graph.
struct GraphMemory {
  // Of values that others take the place of.
  std::byte* buffers = nullptr;
  // In training, what is kept: values of blocks, what operations keep beside those, and outputs of blocks that are not
  // kept from pass to pass; each of the blocks from that one on. Outputs may take turns in two rows.
  std::byte* of_blocks = nullptr;
  std::byte* beside = nullptr;
  std::byte* outputs = nullptr;
  int first_block = 0;
  bool outputs_take_turns = false;
  // On the way back, gradients by Staying; with local ones, what is computed again.
  std::array<std::byte*, 3> gradients{};
};

// What goes through a graph: tokens, and what is asked for of the attention of blocks; or the value that is given, x
// [B, L, E], with the options of the attention of its only block, and what is asked for of its heads. The block may
// look at a memory [B, Lm, E], too, with options of its own; the gradient of that, where given, is added to.
struct GraphInput {
  EncoderInput tokens{};
  std::span<const LayerProbabilities> probabilities{};
  std::span<const LayerHeads> heads{};
  View<const float, 3> x{};
  const AttentionOptions* attention = nullptr;
  HeadAccess access{};
  View<const float, 3> memory{};
  View<float, 3> memory_gradient{};
  const AttentionOptions* memory_attention = nullptr;
};

// A pass, as operations see it.
class GraphCall {
 public:
  // `y` [B, L, E]: where the output goes. `training` is null outside of it.
  GraphCall(Engine& engine, const Graph& graph, const GraphInput& input, View<float, 3> y, const BufferPlaces& places,
            const GraphTraining* training) noexcept;
  // Of some rows of that call's only sample: whole sequences, `input` being theirs.
  GraphCall(const GraphCall& whole, const GraphInput& input, const RowRange& rows) noexcept;

  [[nodiscard]] Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] std::string_view name() const noexcept;  // of the layer
  [[nodiscard]] const EncoderInput& input() const noexcept { return input_.tokens; }
  [[nodiscard]] const GraphInput& given() const noexcept { return input_; }
  // Rows of the whole batch; B, L and the length of the memory.
  [[nodiscard]] std::int64_t tokens() const noexcept { return shape().rows(); }
  [[nodiscard]] BatchShape shape() const noexcept { return {y_.extent(0), y_.extent(1), input_.memory.extent(1)}; }
  [[nodiscard]] bool is_training() const noexcept { return training_ != nullptr; }
  // In which type products multiply in training; float32 outside of it, where weights say it.
  [[nodiscard]] NumberType activations() const noexcept {
    return training_ == nullptr ? NumberType::float32 : training_->activations;
  }
  // In training.
  [[nodiscard]] const GraphTraining& training() const noexcept { return *training_; }
  [[nodiscard]] const TrainingAttention& attention() const noexcept { return *training_->attention; }
  [[nodiscard]] RowRange all_rows() const noexcept { return {0, tokens()}; }
  // Rows of the whole, of which others may hold some.
  [[nodiscard]] std::int64_t whole_rows() const noexcept;
  // So many that lie as one matrix: all, or those of a sample.
  [[nodiscard]] std::int64_t rows_of_matrix() const noexcept { return samples_lie_apart_ ? shape().length : tokens(); }
  // f(rows) for those, in order, so many at a time: of one sample alone where what is given is not one matrix.
  template <class Function>
  void for_each_rows(const RowRange& all, std::int64_t at_once, Function f) const {
    const std::int64_t length = rows_of_matrix();
    for (std::int64_t row = all.first, end = all.first + all.count; row < end;) {
      const std::int64_t count = std::min({at_once, length - row % length, end - row});
      f(RowRange{row, count});
      row += count;
    }
  }
  // All rows [B·L, …] as [B, L, …].
  [[nodiscard]] MutableTypedView<3> samples(const MutableTypedView<2>& rows) const noexcept {
    return {rows.type,
            rows.data,
            {shape().batch, shape().length, rows.extent(1)},
            {shape().length * rows.stride(0), rows.stride(0), rows.stride(1)}};
  }
  [[nodiscard]] GraphMemory& memory() noexcept { return memory_; }
  [[nodiscard]] const BufferPlaces& places() const noexcept { return places_; }

  // Those rows of a slice; of one that is not given, nothing.
  [[nodiscard]] MutableTypedView<2> at(const Slice& slice, const RowRange& rows) const noexcept;
  [[nodiscard]] View<float, 2> floats(const Slice& slice, const RowRange& rows) const noexcept;
  // What an operation keeps in training beside values, of its kept_bytes().
  [[nodiscard]] std::byte* beside(const Operation& operation) const noexcept;
  // What is asked of a block's attention, and of its heads.
  [[nodiscard]] AttentionOptions attention_options(std::int64_t block) const;
  [[nodiscard]] HeadAccess heads(std::int64_t block) const noexcept;
  // On the way back: the gradient of those rows.
  [[nodiscard]] MutableTypedView<2> typed_gradient(const Slice& slice, const RowRange& rows) const noexcept;
  [[nodiscard]] View<float, 2> gradient(const Slice& slice, const RowRange& rows) const noexcept;
  // Who looks at the heads of a block and their gradient.
  [[nodiscard]] HeadVisit visit(std::int64_t block) const noexcept {
    return {training_->visit.visitor, training_->visit.layer + block};
  }
  // What is dropped there in this step; nothing outside of training.
  [[nodiscard]] Dropout dropout(const DropoutPlace& place) const noexcept;
  // y = dropout(x) + residual, where that is given, of those rows.
  void drop(const Dropout& dropout, const TypedView<2>& x, const TypedView<2>& residual, const MutableTypedView<2>& y,
            const RowRange& rows) const;

 private:
  // Where a value is kept in training; null: nowhere.
  [[nodiscard]] std::byte* kept(int value) const noexcept;
  [[nodiscard]] std::byte* output_of_block(int block) const noexcept;

  Engine& engine_;
  const Graph& graph_;
  const GraphInput& input_;
  View<float, 3> y_;
  std::int64_t first_row_ = 0;  // of what is there throughout
  bool samples_lie_apart_;
  const BufferPlaces& places_;
  const GraphTraining* training_;
  const TrainingPlan* plan_;  // in training
  GraphMemory memory_;
};

// Gradients of parameters that an operation adds to.
struct ParameterGradients {
  std::array<std::span<float>, 4> all{};
};

// What an operation computes with, of which all that it takes follows (lib/analysis).
struct OperationSizes {
  // A product x Wᵀ, W [out, in]; 0: none. Whether there is a bias, and whether a residual is added behind its dropout.
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool has_bias = false;
  bool adds_behind_dropout = false;
  // Attention, or null; what its weights are dropped by.
  const AttentionSpec* attention = nullptr;
  float dropout = 0;
  // Parameters of so many numbers, to whose gradients each row adds, and of other operations on the same rows.
  struct Sums {
    std::int64_t columns = 0;
    std::int64_t count = 0;
    bool one_plus_weight = false;  // whose weight is made first
    std::int64_t of_heads = 0;     // numbers of a row where they are of its heads, which go through buffers
  };
  std::array<Sums, 2> sums{};
  // Weights of heads, for each row and way.
  std::int64_t weights = 0;
};

// What computes one value from others.
class Operation {
 public:
  virtual ~Operation() = default;

  // Computes those rows of its output.
  virtual void forward(const GraphCall& call, const RowRange& rows) const = 0;
  // From the gradient of those rows of the output that of the inputs', and those of parameters, which are added to.
  // What forward() read and wrote is there where it is kept.
  virtual void backward(const GraphCall& call, const RowRange& rows) = 0;
  // What backward() reads: that input, the output.
  [[nodiscard]] virtual bool keeps_input(std::size_t number) const noexcept = 0;
  [[nodiscard]] virtual bool keeps_output() const noexcept { return false; }
  // Whether forward() is cheap, so that an output that is read in pieces is made again for them rather than kept.
  [[nodiscard]] virtual bool is_made_again() const noexcept { return false; }
  // What it keeps in training beside that.
  [[nodiscard]] virtual std::size_t kept_bytes(const GraphCall& call) const;
  // Whether backward() may be called for some rows after others. Its sums over rows go to these gradients.
  [[nodiscard]] virtual bool goes_by_rows() const noexcept { return true; }
  [[nodiscard]] virtual ParameterGradients gradients() noexcept { return {}; }
  // Whether that input has a gradient: angles have none.
  [[nodiscard]] virtual bool has_gradient(std::size_t number) const noexcept;
  // Of operations on rows alone: nothing.
  [[nodiscard]] virtual OperationSizes sizes() const noexcept;
  // What forward() takes from the engine at most for such a batch, or for samples with fewer rows, whatever sequences
  // they are: blocks that it holds at once, in bytes. Of attention to a memory it is what those rows take, and no bound
  // for fewer.
  using Blocks = std::array<std::size_t, 2>;
  [[nodiscard]] virtual Blocks workspace(const Engine& engine, const BatchShape& shape) const;
  // Packs the weights that it multiplies by, as the first forward() does.
  virtual void pack_weights(Engine& engine) const;

  [[nodiscard]] const Slice& output() const noexcept { return output_; }
  [[nodiscard]] std::span<const Slice> inputs() const noexcept { return inputs_; }
  // The input whose memory the output may take, or −1. It is a whole value. Where types depend on the call, it does
  // not. On the way back the input's gradient may take the memory of the output's.
  [[nodiscard]] int overwritten() const noexcept { return overwritten_; }

  // Its place among the operations.
  [[nodiscard]] int number() const noexcept { return number_; }
  void set_number(int number) noexcept { number_ = number; }

  // Whether the gradient of an input has terms already, of operations that come later: then backward() adds to it.
  [[nodiscard]] bool adds(std::size_t number) const noexcept { return adds_[number]; }
  void set_adds(std::size_t number) noexcept { adds_[number] = true; }

 protected:
  Operation(const Slice& output, std::vector<Slice> inputs, int overwritten)
      : output_(output), inputs_(std::move(inputs)), overwritten_(overwritten), adds_(inputs_.size(), false) {}
  [[nodiscard]] const Slice& input(std::size_t number) const noexcept { return inputs_[number]; }
  // The gradient of the output as a term of that of an input.
  void pass_on(const GraphCall& call, std::size_t number, const RowRange& rows) const;

 private:
  Slice output_;
  std::vector<Slice> inputs_;
  int overwritten_;
  int number_ = 0;
  std::vector<bool> adds_;
};

}  // namespace headlight::layers
