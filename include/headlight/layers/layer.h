// What all layers share: parameters with names.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/gemm.h"
#include "headlight/layers/training.h"
#include "headlight/parameters.h"
#include "headlight/tensor.h"

namespace headlight {

namespace layers {
class Initializer;
}

// A layer owns its parameters: normalisation weights are 1 at first, all others 0. Computing (`forward`) is const, and
// any number of threads may do it at once, on any engines; changing parameters is not const and needs the layer to
// itself.
//
// A layer keeps its weights a second time in the panels that products read, made on first use. While
// it trains, or somebody holds spans of parameters(), its weights may change at any time: it is *open*, and every
// product packs its weights anew, with the same bits, somewhat slower for few rows. set_training(false) and freeze()
// end that.
//
// Scratch memory comes from the engine, which keeps it: a repeated forward() or backward() of the same shape allocates
// nothing, and after a layer's reserve() of that shape the first forward() does not either. Without it memory may end
// on the way (OutOfMemory): what the call was to write then holds a part of it, and the layer is as it was. LayerNorm
// takes no memory.
class HEADLIGHT_API Layer {
 public:
  Layer() = default;
  // Parameters, gradients and spans of them go along.
  Layer(Layer&&) noexcept = default;
  Layer& operator=(Layer&&) noexcept = default;
  virtual ~Layer() = default;

  // Names, shapes and memory of all parameters, to write to. Opens the layer until freeze().
  [[nodiscard]] std::vector<Parameter> parameters();
  // The same to read: what a file of weights is written from. Valid until the layer goes.
  [[nodiscard]] Weights weights() const;
  // The number of values in all parameters.
  [[nodiscard]] std::int64_t parameter_count() const;

  // Copies every parameter from the weight of its name; an open layer stays open. All or nothing: throws
  // std::invalid_argument naming the tensor and both shapes if one is missing, has another shape, or (unless options
  // allow it) belongs to no parameter.
  void load(const Weights& weights, const LoadOptions& options = {});

  // Xavier-uniform weights, biases 0, normalisation weights 1; an open layer stays open. The same on every machine.
  void initialize(std::uint64_t seed);

  // Training: every parameter gets a gradient, zero at first, that parameters() shows and backward() adds to; else they
  // go. A layer that trains is open. Spans of gradients handed out before are no longer valid. Throws OutOfMemory, and
  // then trains no more.
  void set_training(bool training);

  // The caller's word that nobody writes through spans of parameters() any more, but for an optimiser while the layer
  // trains.
  void freeze() noexcept;

  // For layers made of layers. The parameters, their names behind `prefix`; a layer that knows them under more than one
  // set of names takes the one found in `named`.
  virtual void append_parameters(const std::string& prefix, std::vector<Parameter>& list, const Weights* named) = 0;
  virtual void initialize_from(layers::Initializer& initializer) = 0;
  virtual void make_gradients(bool wanted) = 0;
  // Forgets what was packed of the weights; an open layer packs nothing until it is closed.
  virtual void set_open(bool open) noexcept = 0;

 protected:
  // "MultiHeadAttention", for messages.
  [[nodiscard]] virtual std::string_view type_name() const noexcept = 0;

 private:
  [[nodiscard]] std::vector<Parameter> list(const std::string& prefix, const Weights* named);
  // After whatever may have changed the weights, or who may change them.
  void settle() noexcept { set_open(trains_ || handed_out_); }

  bool trains_ = false;
  bool handed_out_ = false;
};

// The packed copies of one weight matrix [N, K], one for each instruction set that was used with it.
class HEADLIGHT_API PackedCopies {
 public:
  PackedCopies() = default;
  PackedCopies(PackedCopies&& other) noexcept;
  PackedCopies& operator=(PackedCopies&& other) noexcept;
  ~PackedCopies();

  // The copy for the engine's instruction set, made now if there is none. Null when open.
  [[nodiscard]] const PackedMatrix* get(Engine& engine, View<const float, 2> weight) const;
  // Forgets all copies. Open: makes none until closed.
  void set_open(bool open) noexcept;
  [[nodiscard]] bool is_open() const noexcept { return open_; }

 private:
  struct Copy;

  // The first of a list, a copy for each instruction set. Threads that find none each make one; who comes first wins,
  // the others throw theirs away. So there is no lock.
  mutable std::atomic<Copy*> first_{nullptr};
  bool open_ = false;
};

}  // namespace headlight
