// What the CPU is and which instruction sets it runs.
#pragma once

#include <string>

#include "headlight/engine.h"
#include "runtime/instruction_sets.h"

namespace headlight::runtime {

// What this CPU has. Under a hypervisor each question takes microseconds: who needs it twice keeps it.
[[nodiscard]] CpuFeatures cpu_features() noexcept;

// Whether a CPU of this architecture that has them runs the set.
[[nodiscard]] bool supports(const CpuFeatures& features, Isa isa) noexcept;

// Whether this build holds the set; and whether such a CPU runs it too.
[[nodiscard]] bool is_built(Isa isa) noexcept;
[[nodiscard]] bool is_available(const CpuFeatures& features, Isa isa) noexcept;
// The last of those, in the order of available_isas().
[[nodiscard]] Isa best_isa(const CpuFeatures& features) noexcept;

// Those features of a set that this build holds, such a CPU has and these numerics allow.
[[nodiscard]] InstructionFeatures features_of(const CpuFeatures& features, Isa isa,
                                              Numerics numerics = Numerics::reproducible) noexcept;
// Those of these features that an engine uses on such a CPU without being told to.
[[nodiscard]] InstructionFeatures worthwhile(const CpuFeatures& cpu, InstructionFeatures features) noexcept;

// "scalar, sse4, avx2", for messages; and "avx512_bf16" or "none".
[[nodiscard]] std::string list_of_available_isas();
[[nodiscard]] std::string list_of(InstructionFeatures features);

// The name that the CPU gives itself ("AMD EPYC 9654 96-Core Processor"), or the architecture when it has none.
[[nodiscard]] std::string cpu_name();

}  // namespace headlight::runtime
