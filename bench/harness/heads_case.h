// What `headlight heads` measures over many sentences, beside the same model's plain pass over them.
#pragma once

#include <cstddef>

#include "harness/case.h"

namespace headlight::bench {

// Sentences of about the length of real ones, of words of the model's own vocabulary, from a seed.
[[nodiscard]] Work heads_work(std::size_t sentences, const CaseContext& context);

}  // namespace headlight::bench
