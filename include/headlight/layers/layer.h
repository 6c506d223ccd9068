// What all layers share: parameters with names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/layers/training.h"
#include "headlight/layers/weight_matrix.h"
#include "headlight/number_type.h"
#include "headlight/parameters.h"
#include "headlight/tensor.h"

namespace headlight {

namespace layers {

class Initializer;
class RowVisitor;

// Where a parameter is, before anybody asks for its numbers: some rows of a matrix, or some numbers of a vector.
struct ParameterPlace {
  std::string name;
  std::vector<std::int64_t> shape;
  WeightMatrix* matrix = nullptr;
  WeightMatrix::Rows rows{};
  Tensor<float, 1>* vector = nullptr;
  Tensor<float, 1>* vector_gradient = nullptr;
};

}  // namespace layers

// A layer owns its parameters: normalisation weights are 1 at first, all others 0. Computing (`forward`) is const, and
// any number of threads may do it at once, on any engines; changing parameters is not const and needs the layer to
// itself.
//
// Products read weights in panels, which a layer makes of a matrix on first use and then keeps in place of its rows;
// see WeightMatrix. While it trains, or somebody holds spans of parameters(), its weights may change at any time: it is
// *open*, and every product packs its weights anew, with the same bits (of float32), somewhat slower for few rows.
// set_training(false) and freeze() end that. Rows that parameters() or weights() have shown stay beside the panels.
//
// set_precision() chooses the type that products multiply in. Of bfloat16 and float16 panels take half the memory, of
// int8 a quarter, of int4 a seventh, and what goes into a product is rounded (PackedMatrix): weights, with a scale for
// each output feature in int8 and for each 32 input features in int4, and, but for float16, activations, with a scale
// for each row or for each 32 numbers of it. Sums, biases, normalisations and all else stay float32, and so do tables
// of embeddings and the parameters themselves. So does attention between its projections, unless the engine multiplies
// pairs of bfloat16 (InstructionFeature::avx512_bf16) and the type rounds activations: there queries, keys and values
// are rounded to bfloat16 as they leave their product (headlight/attention.h). It is for inference: an open layer
// multiplies in float32 whatever was chosen. A step of training is of the type that its SavedState says.
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
  // The same to read: what a file of weights is written from. Readable as long as the layer lives; they are its weights
  // until these change (load(), initialize(), parameters(), training): ask again then.
  [[nodiscard]] Weights weights() const;
  // The same, but a matrix that was lent in one piece as it is `stored`, and no rows of it are made. A matrix in parts
  // that are lent apart is shown by those of its names that `like` has, as load() takes it by those. Valid until
  // weights change.
  [[nodiscard]] Weights weights_as_stored(const Weights& like = {}) const;
  // The number of values in all parameters.
  [[nodiscard]] std::int64_t parameter_count() const;

  // Takes every parameter from the weight of its name: a copy, or, of a matrix whose weight has an owner, nothing but
  // the place, which is read from then on (unless parameters() or weights() have shown the matrix, or the layer
  // trains). An open layer stays open. All or nothing: throws std::invalid_argument naming the tensor and both shapes
  // if one is missing, has another shape, or (unless options allow it) belongs to no parameter.
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

  // The type that products multiply in unless the layer is open: float32 at first. Stays through load(), initialize()
  // and training; weights() and parameters() show the numbers that were put in, not rounded ones. Throws
  // std::invalid_argument for what is no type, OutOfMemory as WeightMatrix::set_type() does; then nothing has changed.
  void set_precision(NumberType precision);
  [[nodiscard]] NumberType precision() const noexcept { return precision_; }

  // Names, shapes and places of all parameters, valid as long as the layer stays where it is. For the C interface.
  [[nodiscard]] std::vector<layers::ParameterPlace> places();

  // For layers made of layers. The parameters, their names behind `prefix`; a layer that knows them under more than one
  // set of names takes the one found in `named`.
  virtual void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                 const Weights* named) = 0;
  virtual void initialize_from(layers::Initializer& initializer) = 0;
  virtual void make_gradients(bool wanted) = 0;
  // An open layer packs nothing until it is closed, and forgets what it had packed.
  virtual void set_open(bool open) noexcept = 0;

 protected:
  // "MultiHeadAttention", for messages.
  [[nodiscard]] virtual std::string_view type_name() const noexcept = 0;

 private:
  [[nodiscard]] std::vector<layers::ParameterPlace> places(const std::string& prefix, const Weights* named);
  // After whatever may have changed the weights, or who may change them.
  void settle() noexcept { set_open(trains_ || handed_out_); }

  NumberType precision_ = NumberType::float32;
  bool trains_ = false;
  bool handed_out_ = false;
};

}  // namespace headlight
