#include "harness/competitor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

namespace headlight::bench {
namespace {

[[noreturn]] void burn() {
  for (volatile unsigned counter = 0;;) counter = counter + 1;
}

}  // namespace

Competitor::Competitor(int threads) : process_(::fork()) {
  if (process_ < 0) throw std::runtime_error("no competing process could be started");
  if (process_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int thread = 1; thread < threads; ++thread) std::thread(burn).detach();
  burn();
}

Competitor::~Competitor() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

}  // namespace headlight::bench
