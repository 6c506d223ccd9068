// What a network consists of: operations, and what they see of a pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/typed_view.h"
#include "layers/network/values.h"

namespace headlight::layers {

class Graph;

// Where buffers begin in scratch memory, for an engine and so many tokens.
struct BufferPlaces {
  // Values of a few sizes take each other's place, so that a dozen buffers do for any number of blocks.
  static constexpr std::size_t kMost = 32;
  std::array<std::size_t, kMost> first{};
  std::size_t bytes = 0;
};

// Where an operation drops numbers in training: in which part (a block; behind them, the embeddings), and where in it.
struct DropoutPlace {
  float probability = 0;
  std::uint32_t part = 0;
  std::uint32_t place = 0;
};

// Memory of a pass over a graph, each for the values of all tokens. In training, values that the way back reads are
// kept in memory of their own.
struct GraphMemory {
  bool is_training = false;
  std::byte* buffers = nullptr;        // of values that others take the place of
  std::byte* kept = nullptr;           // in training
  std::byte* kept_of_block = nullptr;  // those of the one block that is computed, where others' are not kept
  std::byte* gradients = nullptr;      // on the way back
};

// What a pass shows of layers.
struct LayerOutputs {
  std::span<const LayerProbabilities> probabilities{};
  std::span<const LayerHeads> heads{};
  HeadVisitor* visitor = nullptr;  // on the way back, or none
};

// A pass, as operations see it.
class GraphCall {
 public:
  GraphCall(Engine& engine, const Graph& graph, const EncoderInput& input, View<float, 2> hidden,
            const GraphMemory& memory, const BufferPlaces& places, const TrainingStep& step,
            const LayerOutputs& outputs) noexcept
      : engine_(engine),
        graph_(graph),
        input_(input),
        hidden_(hidden),
        memory_(memory),
        places_(places),
        step_(step),
        outputs_(outputs) {}

  [[nodiscard]] Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] const EncoderInput& input() const noexcept { return input_; }
  [[nodiscard]] std::int64_t tokens() const noexcept { return hidden_.extent(0); }
  [[nodiscard]] bool is_training() const noexcept { return memory_.is_training; }
  [[nodiscard]] RowRange all_rows() const noexcept { return {0, tokens()}; }

  // Those rows of a slice; of one that is not given, nothing.
  [[nodiscard]] MutableTypedView<2> at(const Slice& slice, const RowRange& rows) const noexcept;
  [[nodiscard]] View<float, 2> floats(const Slice& slice, const RowRange& rows) const noexcept;
  // What is to be written out of a block's attention.
  [[nodiscard]] Probabilities probabilities(std::int64_t block) const noexcept;
  [[nodiscard]] LayerHeads heads(std::int64_t block) const noexcept;
  // On the way back: the gradient of those rows.
  [[nodiscard]] View<float, 2> gradient(const Slice& slice, const RowRange& rows) const noexcept;
  // The heads of a block and their gradient, to whoever looks at them.
  void show_heads(std::int64_t block, View<const float, 2> outputs, View<float, 2> gradient) const;
  // What is dropped there in this step; nothing outside of training.
  [[nodiscard]] Dropout dropout(const DropoutPlace& place) const noexcept;

 private:
  [[nodiscard]] float* kept_values(int block) const noexcept;

  Engine& engine_;
  const Graph& graph_;
  const EncoderInput& input_;
  View<float, 2> hidden_;
  GraphMemory memory_;
  const BufferPlaces& places_;
  TrainingStep step_;
  LayerOutputs outputs_;
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
  // What it keeps in training beside that.
  [[nodiscard]] virtual Slice training_value() const noexcept { return {}; }
  // Whether that input has a gradient: angles have none.
  [[nodiscard]] virtual bool has_gradient(std::size_t number) const noexcept;
  // What forward() takes from the engine for so many rows; and taking it now.
  [[nodiscard]] virtual std::size_t workspace_bytes(const Engine& engine, std::int64_t rows) const;
  virtual void reserve(Engine& engine, std::int64_t rows) const;

  [[nodiscard]] const Slice& output() const noexcept { return output_; }
  [[nodiscard]] std::span<const Slice> inputs() const noexcept { return inputs_; }
  // The input whose memory the output may take, or −1. It is a whole value. Where types depend on the call, it does so
  // only where both are of one type. On the way back the input's gradient may take the memory of the output's.
  [[nodiscard]] int overwritten() const noexcept { return overwritten_; }

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
  std::vector<bool> adds_;
};

}  // namespace headlight::layers
