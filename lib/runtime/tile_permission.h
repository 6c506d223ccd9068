// AMX's tile registers, which Linux gives to a process that asks for them.
#pragma once

namespace headlight::runtime {

// Asks that all threads of this process may use them (https://docs.kernel.org/arch/x86/xstate.html), and returns
// whether they may. A permission is for good, and what fork() makes inherits it. From then on the system saves 8 KiB
// more for a signal's handler, on the stack of its own that it may have: where one is too small for that, the answer is
// no.
[[nodiscard]] bool ask_for_tile_registers() noexcept;

}  // namespace headlight::runtime
