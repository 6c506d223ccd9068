#include "runtime/tile_permission.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace headlight::runtime {

bool ask_for_tile_registers() noexcept {
#if defined(__x86_64__) && defined(__linux__)
  // Headers of kernels before 5.16 do not have them.
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureXtileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtileData) == 0;
#else
  return false;
#endif
}

}  // namespace headlight::runtime
