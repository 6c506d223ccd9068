// What the preloaded object (inject.cc) is told to do and what it has seen, in memory that a process may share with its
// parent: the driver writes the plan, the object counts.
#pragma once

#include <atomic>
#include <cstdint>

namespace headlight::faults {

// What a program asks of the system, by what would be lacking.
enum class Kind : int {
  allocation,  // malloc and its kind, and every operator new through it
  thread,      // pthread_create
  open,        // open, openat, fopen
  read,        // read, pread, readv
  write,       // write, pwrite, writev; but for standard error, where failures are told
  sync,        // fsync, fdatasync
  rename,      // rename, link and their kind
  map,         // mmap
  status,      // stat and its kind, readlink, realpath
  close,       // close, fclose
  folder,      // mkdir
  any          // a call of any of these
};
inline constexpr int kKinds = static_cast<int>(Kind::any);

enum class Effect : int {
  none,
  fail,     // with `number` as errno
  shorten,  // a read or write of more than one byte moves a single one
  end,      // a read finds no more bytes
  shrink,   // a file that was just mapped is cut to nothing
  signal    // the process gets signal `number` before the call, which is made
};

// All zero: nothing happens, and everything is counted.
struct Board {
  std::atomic<Effect> effect;
  std::atomic<Kind> kind;
  std::atomic<int> number;
  std::atomic<bool> lasts;         // from then on every call, not the one alone
  std::atomic<std::int64_t> left;  // calls of that kind that are still let pass
  std::atomic<std::int64_t> met;   // calls that did not pass
  std::atomic<std::int64_t> seen[kKinds];
  // What was taken and not given back yet.
  std::atomic<std::int64_t> live_allocations;
  std::atomic<std::int64_t> live_threads;
  std::atomic<std::int64_t> live_mappings;
};

// A parent names the descriptor of the shared memory in it; without it a board of the process's own is used.
inline constexpr const char* kVariable = "HEADLIGHT_FAULT_BOARD";

}  // namespace headlight::faults

// Defined in the preloaded object alone: null in a program that was started without it.
extern "C" [[gnu::weak]] headlight::faults::Board* headlight_fault_board() noexcept;
