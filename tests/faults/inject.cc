// An object to preload (LD_PRELOAD) into any program of ours: it lets the n-th call of one kind fail, as board.h says.
// It stands before the C library and needs nothing else, so the program under test holds no hooks.
#include "faults/inject.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace headlight::faults {
namespace {

// Constant-initialised: the first malloc comes long before any constructor.
constinit Board own_board{};
constinit std::atomic<Board*> attached{nullptr};

// By the bare system call, which is none of those that are counted.
Board* shared_board(const char* descriptor) noexcept {
  const long address =
      syscall(SYS_mmap, nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, std::atoi(descriptor), 0);
  return address == -1 ? nullptr : reinterpret_cast<Board*>(address);
}

}  // namespace

Board& board() noexcept {
  Board* found = attached.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  if (environ == nullptr) return own_board;  // the program's environment is not there yet
  const char* const descriptor = std::getenv(kVariable);
  if (descriptor != nullptr) found = shared_board(descriptor);
  if (found == nullptr) found = &own_board;
  attached.store(found, std::memory_order_release);
  return *found;
}

Effect effect_on(Kind kind) noexcept {
  Board& b = board();
  b.seen[static_cast<int>(kind)].fetch_add(1, std::memory_order_relaxed);
  const Effect effect = b.effect.load(std::memory_order_acquire);
  if (effect == Effect::none) return Effect::none;
  const Kind wanted = b.kind.load(std::memory_order_relaxed);
  if (wanted != Kind::any && wanted != kind) return Effect::none;
  const std::int64_t left = b.left.fetch_sub(1, std::memory_order_relaxed);
  if (left > 0 || (left < 0 && !b.lasts.load(std::memory_order_relaxed))) return Effect::none;
  b.met.fetch_add(1, std::memory_order_relaxed);
  if (effect != Effect::signal) return effect;
  const int error = errno;
  kill(getpid(), b.number.load(std::memory_order_relaxed));
  errno = error;
  return Effect::none;
}

}  // namespace headlight::faults

extern "C" HEADLIGHT_INTERPOSED headlight::faults::Board* headlight_fault_board() noexcept {
  return &headlight::faults::board();
}
