#include "tools/headlight/support/stop_signal.h"

#include <csignal>

namespace headlight::program {
namespace {

volatile std::sig_atomic_t signalled = 0;

void note(int) { signalled = 1; }

void on_signals(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  signalled = 0;
  on_signals(note, static_cast<int>(SA_RESETHAND) | SA_RESTART);
}
StopSignal::~StopSignal() { on_signals(SIG_DFL, 0); }

bool StopSignal::asked() const noexcept { return signalled != 0; }

}  // namespace headlight::program
