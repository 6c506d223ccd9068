#include "harness/crew.h"

namespace headlight::bench {

Crew::Crew(int threads) {
  for (int thread = 1; thread < threads; ++thread) others_.emplace_back([this, thread] { serve(thread); });
}

Crew::~Crew() {
  call_ = -1;
  call_.notify_all();
  for (std::thread& other : others_) other.join();
}

void Crew::run(const std::function<void(int)>& work) {
  work_ = &work;
  arrived_ = 0;
  ended_ = 0;
  ++call_;
  call_.notify_all();
  take_part(0);
  while (ended_ != threads()) std::this_thread::yield();
}

void Crew::serve(int thread) {
  for (int seen = 0;;) {
    call_.wait(seen);
    seen = call_;
    if (seen < 0) return;
    take_part(thread);
  }
}

void Crew::take_part(int thread) {
  ++arrived_;
  // Spinning lets all start within nanoseconds; where cores are fewer than threads, somebody must make room.
  for (int spins = 0; arrived_ != threads(); ++spins) {
    if (spins > 20'000) std::this_thread::yield();
  }
  (*work_)(thread);
  ++ended_;
}

}  // namespace headlight::bench
