// Threads that sleep, and on a call start one piece of work at the same moment: for yardsticks of several cores,
// between whose uses nothing may run beside what is measured.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace headlight::bench {

class Crew {
 public:
  // `threads` counts the calling one.
  explicit Crew(int threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  [[nodiscard]] int threads() const noexcept { return static_cast<int>(others_.size()) + 1; }
  // work(0) on the calling thread, work(1) … on the others, none before all are awake; returns when all have ended.
  void run(const std::function<void(int thread)>& work);

 private:
  void serve(int thread);
  void take_part(int thread);

  std::vector<std::thread> others_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<int> call_{0};  // counts calls; −1: the end
  std::atomic<int> arrived_{0};
  std::atomic<int> ended_{0};
};

}  // namespace headlight::bench
