// Everything of headlight::models, the library of files and published models above the engine.
#pragma once

#include "headlight/models/atomic_file.h"
#include "headlight/models/errors.h"
#include "headlight/models/gguf.h"
#include "headlight/models/npy.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_budget.h"
#include "headlight/models/text_encoder.h"
#include "headlight/models/tokenizer.h"
