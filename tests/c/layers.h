// A layer that several programs of this folder make.
#pragma once

#include "check.h"

enum { kE = 12, kHeads = 3 };

static inline headlight_layer* make_attention(int separate) {
  headlight_multi_head_attention_options options = {
      .struct_size = sizeof options, .width = kE, .heads = kHeads, .separate_projections = separate};
  headlight_layer* layer = NULL;
  WORKS(headlight_multi_head_attention_create(&options, &layer, &error));
  WORKS(headlight_layer_initialize(layer, 7, &error));
  return layer;
}
