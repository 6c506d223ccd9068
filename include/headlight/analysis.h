// What heads do, measured on any activations, and what models cost.
#pragma once

#include "headlight/analysis/attention.h"
#include "headlight/analysis/attention_cost.h"
#include "headlight/analysis/diversity.h"
#include "headlight/analysis/head_parts.h"
#include "headlight/analysis/measure.h"
#include "headlight/analysis/presets.h"
#include "headlight/analysis/similarity.h"
#include "headlight/analysis/training_cost.h"
