// A network as a list of operations over values. Parts of a network (parts.h) declare their parameters and operations
// once; all that a layer does with them follows from the lists: names, first values, loading, the forward pass, how
// much scratch memory it takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/layers/layer.h"
#include "headlight/typed_view.h"

namespace headlight::layers {

// Some columns of a value. A value is a matrix with a row for each token.
struct Slice {
  int value = -1;  // −1: none
  std::int64_t first = 0;
  std::int64_t columns = 0;

  [[nodiscard]] explicit operator bool() const noexcept { return value >= 0; }
  [[nodiscard]] Slice part(std::int64_t begin, std::int64_t count) const noexcept {
    return {value, first + begin, count};
  }
};

// Rows of a matrix, or numbers of a vector, that are a parameter of that name.
struct NamedRows {
  std::string name;
  WeightMatrix::Rows rows;
};

struct MatrixParameter {
  WeightMatrix matrix;
  std::vector<NamedRows> parts;
  bool is_table;  // of embeddings
};

struct VectorParameter {
  Tensor<float, 1> values;
  Tensor<float, 1> gradient;
  std::vector<NamedRows> parts;
  float first_value;

  [[nodiscard]] std::span<const float> all() const noexcept {
    return {values.data(), static_cast<std::size_t>(values.size())};
  }
  [[nodiscard]] std::span<float> all_of_gradient() noexcept {
    return {gradient.data(), static_cast<std::size_t>(gradient.size())};
  }
};

// Which type of number a value has (handed_on.h): one that goes from a product, or with its operands, to attention, and
// one that goes to a product, may be of 16 bits.
struct HandedOn {
  const WeightMatrix* from = nullptr;  // of the product that it comes from, at first
  const WeightMatrix* to = nullptr;    // of the product that alone reads it
  bool to_attention = false;
};

// Rows first … first + count − 1 of a batch.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

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
  std::byte* buffers = nullptr;        // of values that others take the place of
  std::byte* kept = nullptr;           // in training
  std::byte* kept_of_block = nullptr;  // those of the one block that is computed, where others' are not kept
  std::byte* gradients = nullptr;      // on the way back
};

// What a forward pass writes out of layers.
struct LayerOutputs {
  std::span<const LayerProbabilities> probabilities{};
  std::span<const LayerHeads> heads{};
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
  [[nodiscard]] bool is_training() const noexcept { return memory_.kept != nullptr; }
  [[nodiscard]] RowRange all_rows() const noexcept { return {0, tokens()}; }

  // Those rows of a slice; of one that is not given, nothing.
  [[nodiscard]] MutableTypedView<2> at(const Slice& slice, const RowRange& rows) const noexcept;
  [[nodiscard]] View<float, 2> floats(const Slice& slice, const RowRange& rows) const noexcept;
  // What is to be written out of a block's attention.
  [[nodiscard]] Probabilities probabilities(std::int64_t block) const noexcept;
  [[nodiscard]] LayerHeads heads(std::int64_t block) const noexcept;
  // On the way back: the gradient of those rows.
  [[nodiscard]] View<float, 2> gradient(const Slice& slice, const RowRange& rows) const noexcept;
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
  // The input whose memory the output may take, −1: none. All of its value, and both of one type: of types that depend
  // on the call, where they are the same. On the way back its gradient may take that of the output's.
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

// Operations run in the order in which they were added. Those between begin_rows() and end_rows() compute rows from the
// same rows alone: they run for some rows at a time, and values that only they use are that small.
class Graph {
 public:
  // What is added stays where it is. Throws OutOfMemory, as all that adds parameters.
  MatrixParameter& add_matrix(std::int64_t columns, std::vector<NamedRows> parts, bool is_table = false);
  VectorParameter& add_vector(std::vector<NamedRows> parts, float first_value);
  [[nodiscard]] Slice add_value(std::int64_t columns, const HandedOn& handed_on = {});
  // One that there is in training alone, where it is kept.
  [[nodiscard]] Slice add_training_value(std::int64_t columns);
  void begin_rows();
  void end_rows();
  // Around the operations of a block, which in training may be computed again: its input is then what is kept.
  void begin_block();
  void end_block();
  template <class Made, class... Arguments>
  void add(Arguments&&... arguments) {
    add_operation(std::make_unique<Made>(std::forward<Arguments>(arguments)...));
  }
  // After the last operation, whose output is the network's.
  void finish();

  void append_parameters(const std::string& prefix, std::vector<ParameterPlace>& list);
  void initialize_from(Initializer& initializer);
  void set_open(bool open) noexcept;
  void make_gradients(bool wanted);
  // Throws std::invalid_argument where there are no gradients to add to.
  void check_training();

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
                View<const float, 2> hidden_gradient);
  [[nodiscard]] std::size_t kept_bytes(bool keeps_blocks, std::int64_t tokens) const noexcept;
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t tokens) const;
  void reserve(Engine& engine, std::int64_t tokens) const;

 private:
  friend class GraphCall;

  struct Value {
    std::int64_t columns;
    HandedOn handed_on;
    bool is_local = false;  // made and used within one run of operations on some rows
    int last_use = -1;
    int buffer = -1;
    int same_as = -1;          // the value whose memory it takes where it is of float32
    bool is_hidden = false;    // it lies where the caller wants the output
    bool gave_buffer = false;  // to the value that was made of it in place
    int block = -1;            // to which it belongs; −1: it is there throughout
    // In training, floats a token of memory: where it is kept among those of its block (−1: it is not), and where its
    // gradient is.
    std::int64_t kept = -1;
    std::int64_t gradient = -1;
  };
  // Memory that values share which are not there at the same time.
  struct Buffer {
    std::int64_t columns;
    bool is_local;
    bool is_free;
    bool is_narrow;         // of values that lie elsewhere where they are of float32
    bool is_apart = false;  // of values that are there outside of runs alone: they share memory with local ones
  };
  // Operations first … end − 1, which run for some rows at a time.
  struct Run {
    int first;
    int end;
  };

  void add_operation(std::unique_ptr<Operation> operation);
  void find_last_uses();
  void find_local_values();
  void place_values();
  [[nodiscard]] int taken_value(int operation) const noexcept;
  void find_output_chain();
  void place_output(int operation);
  void free_values(int operation);
  void find_buffers_apart();
  [[nodiscard]] int end_of_use(const Value& value) const noexcept;
  [[nodiscard]] int take_buffer(std::int64_t columns, bool is_local, bool is_narrow);
  [[nodiscard]] NumberType type_of(const Engine& engine, int value) const noexcept;
  [[nodiscard]] std::int64_t rows_at_once(std::int64_t tokens) const noexcept;
  // Throws nothing: finish() has seen to it that there are no more buffers.
  [[nodiscard]] BufferPlaces places(const Engine& engine, std::int64_t tokens) const noexcept;
  // Calls function(operation, rows in one go) for all of them.
  template <class Function>
  void for_each_operation(const Run& some, std::int64_t tokens, Function function) const;
  [[nodiscard]] Run all_operations() const noexcept { return {0, static_cast<int>(operations_.size())}; }
  void run_forward(const GraphCall& call, const Run& some) const;
  void run_backward(const GraphCall& call, const Run& some) const;

  void keep_values();
  void find_values_of_blocks();
  void place_gradients();
  [[nodiscard]] const Run* run_of(int operation) const noexcept;
  [[nodiscard]] static std::size_t bytes_of(std::int64_t floats, std::int64_t tokens) noexcept;

  std::deque<MatrixParameter> matrices_;
  std::deque<VectorParameter> vectors_;
  // In which order parameters were added.
  struct Parameter {
    MatrixParameter* matrix;
    VectorParameter* vector;
  };
  std::vector<Parameter> parameters_;
  std::vector<Value> values_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<Run> runs_;
  std::vector<Run> blocks_;
  std::int64_t widest_local_ = 1;
  std::vector<Buffer> buffers_;
  // A token's, in training: what is kept throughout, where each block's begins behind that, and of the largest; and
  // gradients, of all tokens or of as many as go through a run at once.
  std::int64_t kept_floats_ = 0;
  std::vector<std::int64_t> first_of_block_;
  std::int64_t largest_block_ = 0;
  std::int64_t gradient_floats_ = 0;
  std::int64_t local_gradient_floats_ = 0;
};

}  // namespace headlight::layers
