// All layers.
#pragma once

#include "headlight/layers/encoder.h"
#include "headlight/layers/feed_forward.h"
#include "headlight/layers/layer.h"
#include "headlight/layers/linear.h"
#include "headlight/layers/multi_head_attention.h"
#include "headlight/layers/network.h"
#include "headlight/layers/training.h"
#include "headlight/layers/transformer.h"
