// Shapes in messages.
#pragma once

#include "runtime/list_text.h"

namespace headlight::models {

using runtime::describe;

}  // namespace headlight::models
