// What the functions of training share.
#pragma once

#include <memory>

#include "c/handles.h"
#include "headlight/c/training.h"
#include "headlight/layers/training.h"

struct headlight_saved_state {
  headlight::SavedState state;
};

namespace headlight::c {

inline TrainingStep training_step(const char* operation, const headlight_training_step* given) {
  const Fields fields(operation, "step", &required(operation, "step", given));
  return {.seed = fields->seed,
          .step = fields->step,
          .layer = fields->layer,
          .layers = fields->layers == 0 ? 1 : fields->layers};
}

inline std::unique_ptr<headlight_saved_state> make_saved_state(const char* operation,
                                                               const headlight_saved_state_options* options,
                                                               const TrainingAttention& attention) {
  const Fields fields(operation, "options", options);
  const auto checkpoint = enumerated<Checkpoint>(operation, "checkpoint", fields->checkpoint,
                                                 HEADLIGHT_CHECKPOINT_KEEP_LINEAR, HEADLIGHT_CHECKPOINT_EVERY_K_LAYERS);
  const NumberType activations = number_type(operation, "activations", fields->activations);
  if (activations == NumberType::float32) {
    return std::make_unique<headlight_saved_state>(headlight_saved_state{SavedState(checkpoint, fields->k, attention)});
  }
  if (&attention != &fused_attention()) {
    refuse(operation, "activations is " + std::to_string(fields->activations) +
                          ", expected HEADLIGHT_FLOAT32: unfused attention keeps floats");
  }
  return std::make_unique<headlight_saved_state>(headlight_saved_state{SavedState(activations, checkpoint, fields->k)});
}

inline SavedState& saved_of(const char* operation, headlight_saved_state* saved) {
  return required(operation, "saved", saved).state;
}
inline const SavedState& saved_of(const char* operation, const headlight_saved_state* saved) {
  return required(operation, "saved", saved).state;
}

}  // namespace headlight::c
