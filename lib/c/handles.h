// What the opaque types of the C interface are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c/arguments.h"
#include "headlight/c/engine.h"
#include "headlight/c/layers.h"
#include "headlight/c/operations.h"
#include "headlight/engine.h"
#include "headlight/gemm.h"
#include "headlight/layers/layer.h"
#include "headlight/layers/multi_head_attention.h"
#include "headlight/number_type.h"

struct headlight_engine {
  explicit headlight_engine(const headlight::EngineOptions& options) : engine(options) {}
  headlight::Engine engine;
};

struct headlight_packed_matrix {
  headlight::PackedMatrix matrix;
};

namespace headlight::c {

// One stretch of a layer's training, which lies in memory of its own for as long as the layer is in it. Who watches it
// learns that the layer has stopped, and that its gradients are gone, or that all of it is.
struct Training {};

}  // namespace headlight::c

struct headlight_layer {
  explicit headlight_layer(std::unique_ptr<headlight::Layer> own) : headlight_layer(*own) { owned = std::move(own); }
  // Of somebody who outlives the handle.
  explicit headlight_layer(headlight::Layer& layer_) : layer(&layer_), parameters(layer_.places()) {}

  // Nobody but this interface holds spans of parameters; it settles the layer after each time.
  void settle() noexcept { layer->freeze(); }

  std::unique_ptr<headlight::Layer> owned;  // null: it belongs to somebody else
  headlight::Layer* layer;
  // Listed once, so that their names and shapes stay where they are.
  std::vector<headlight::layers::ParameterPlace> parameters;
  std::shared_ptr<headlight::c::Training> training;  // null: not in training
};

namespace headlight::c {

inline Engine& engine_of(const char* operation, headlight_engine* engine) {
  return required(operation, "engine", engine).engine;
}
inline const Engine& engine_of(const char* operation, const headlight_engine* engine) {
  return required(operation, "engine", engine).engine;
}

// call() of a function that computes: whose body gets the engine, checked before all else. (In what order a call's
// arguments are looked at is the compiler's choice.)
template <class Handle, class Body>
headlight_status call(const char* operation, Handle* engine, headlight_error* error, const Body& body) noexcept {
  return call(error, [&] { body(engine_of(operation, engine)); });
}

// The layer as one of its kind, to change.
template <class Kind>
Kind& to_change(const char* operation, const headlight_layer* layer) {
  auto* const found = dynamic_cast<Kind*>(required(operation, "layer", layer).layer);
  if (found == nullptr) refuse(operation, "layer was made by another function than headlight_", operation, "_create");
  return *found;
}
template <class Kind>
const Kind& as(const char* operation, const headlight_layer* layer) {
  return to_change<Kind>(operation, layer);
}

template <class Kind, class... Arguments>
std::unique_ptr<headlight_layer> make_layer(const Arguments&... arguments) {
  return std::make_unique<headlight_layer>(std::make_unique<Kind>(arguments...));
}

// In C an instruction set's number is one more, for 0 says "the best".
constexpr headlight_isa isa_in_c(Isa isa) noexcept { return static_cast<headlight_isa>(isa) + 1; }

// By number of NumberType.
inline constexpr std::array<headlight_type, std::size(kNumberTypes)> kTypesInC = {
    HEADLIGHT_FLOAT32, HEADLIGHT_BFLOAT16, HEADLIGHT_FLOAT16, HEADLIGHT_INT8, HEADLIGHT_INT4};

// What matrices may be packed as, and layers multiply in.
inline NumberType number_type(const char* operation, const char* argument, headlight_type type) {
  const auto found = std::find(kTypesInC.begin(), kTypesInC.end(), type);
  if (found == kTypesInC.end()) {
    refuse(operation, argument, " is ", type,
           ", expected HEADLIGHT_FLOAT32, HEADLIGHT_BFLOAT16, HEADLIGHT_FLOAT16, HEADLIGHT_INT8 or HEADLIGHT_INT4");
  }
  return static_cast<NumberType>(found - kTypesInC.begin());
}

constexpr headlight_type type_in_c(NumberType type) noexcept { return kTypesInC[static_cast<std::size_t>(type)]; }

inline Merge merge_of(const char* operation, headlight_merge value) {
  return enumerated<Merge>(operation, "merge", value, HEADLIGHT_MERGE_CONCATENATE, HEADLIGHT_MERGE_GATED_BY_ELEMENT);
}

static_assert(static_cast<int>(kLastActivation) == HEADLIGHT_ACTIVATION_SILU - HEADLIGHT_ACTIVATION_NONE);

inline Activation named_activation(const char* operation, headlight_activation value) {
  return enumerated<Activation>(operation, "activation", value, HEADLIGHT_ACTIVATION_NONE, HEADLIGHT_ACTIVATION_SILU);
}

// `otherwise` stands for HEADLIGHT_ACTIVATION_DEFAULT.
inline Activation activation_of(const char* operation, headlight_activation value, Activation otherwise) {
  return value == HEADLIGHT_ACTIVATION_DEFAULT ? otherwise : named_activation(operation, value);
}

}  // namespace headlight::c
