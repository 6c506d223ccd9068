// Keeps the process's signals on the threads of the program while workers are started, which inherit the mask.
#pragma once

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

namespace headlight::runtime {

#if defined(_WIN32)

// Windows hands no thread a signal that it has not raised itself.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {}
  ~BlockedSignals() {}
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
};

#else

// Only what a thread causes itself, and a profiler's clock, may reach a worker.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) sigdelset(&blocked, own);
    pthread_sigmask(SIG_BLOCK, &blocked, &previous_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t previous_;
};

#endif

}  // namespace headlight::runtime
