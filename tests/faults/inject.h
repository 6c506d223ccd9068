// Inside the preloaded object: whether a call may pass.
#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <cstdint>

#include "faults/board.h"

// What takes the place of the C library's functions, for the program and for every library in it.
#define HEADLIGHT_INTERPOSED __attribute__((visibility("default")))

namespace headlight::faults {

Board& board() noexcept;

// Counts a call of that kind, and says what shall become of it: none (it passes), fail, shorten or end. A signal is
// sent here, before the call passes.
Effect effect_on(Kind kind) noexcept;

// The same for calls that can but fail; errno is set then.
inline bool is_refused(Kind kind) noexcept {
  if (effect_on(kind) != Effect::fail) return false;
  errno = board().number.load(std::memory_order_relaxed);
  return true;
}

// The function behind ours.
template <class Function>
Function* next(Function*, const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace headlight::faults
