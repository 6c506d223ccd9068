// What the CPU is and which instruction sets it runs.
#pragma once

#include <cstdint>
#include <string>

#include "headlight/engine.h"

namespace headlight::runtime {

#if defined(__x86_64__)
// The registers of CPUID that decide: leaf 1, leaf 7 sub-leaf 0, and XCR0, in which the operating system says which
// registers it saves on a context switch (0 when it does not use XSAVE). AMD's and Intel's manuals agree on every bit
// used.
struct X86Features {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint64_t xcr0 = 0;
};

[[nodiscard]] X86Features read_x86_features() noexcept;

// Whether every extension that the kernels of this set are compiled with (cmake/HeadlightTargets.cmake) may be used.
[[nodiscard]] bool supports(const X86Features& features, Isa isa) noexcept;
#endif

// Whether this build holds the set and this CPU runs it.
[[nodiscard]] bool is_available(Isa isa) noexcept;

// "scalar, sse4, avx2", for messages.
[[nodiscard]] std::string list_of_available_isas();

// The name that the CPU gives itself ("AMD EPYC 9654 96-Core Processor"), or the architecture when it has none.
[[nodiscard]] std::string cpu_name();

}  // namespace headlight::runtime
