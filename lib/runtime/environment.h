// The environment variables that the library reads; environment.cc is the only file that calls getenv.
#pragma once

#include <optional>

#include "headlight/engine.h"
#include "runtime/instruction_sets.h"

namespace headlight::runtime {

// More threads than any one machine has; a larger number is a typing error, not a wish.
inline constexpr int kMaxThreads = 4096;

// HEADLIGHT_NUM_THREADS: threads that compute, the caller included, 1 … 4096. Nothing when unset or empty.
// Throws std::invalid_argument that names the variable, its value and what was expected.
[[nodiscard]] std::optional<int> threads_from_environment();

// HEADLIGHT_ISA: the instruction set to use, by its name ("avx2"). Nothing when unset or empty. Throws likewise when
// the name is unknown, or when the build or such a CPU lacks that set.
[[nodiscard]] std::optional<Isa> isa_from_environment(const CpuFeatures& cpu);

}  // namespace headlight::runtime
