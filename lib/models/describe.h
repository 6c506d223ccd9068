// Tensors in messages.
#pragma once

#include <string>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"

namespace headlight::models {

using runtime::describe;

// Of a tensor that a file holds by two names.
[[noreturn]] inline void refuse_twin(const std::string& path, const std::string& name, const std::string& twin) {
  throw FileError(path,
                  "holds the tensor " + in_quotes(name) + " beside " + in_quotes(twin) + ", expected one of them");
}

}  // namespace headlight::models
