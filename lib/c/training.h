// What the functions of training share.
#pragma once

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

inline SavedState& saved_of(const char* operation, headlight_saved_state* saved) {
  return required(operation, "saved", saved).state;
}
inline const SavedState& saved_of(const char* operation, const headlight_saved_state* saved) {
  return required(operation, "saved", saved).state;
}

}  // namespace headlight::c
