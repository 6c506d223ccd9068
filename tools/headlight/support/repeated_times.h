// The times of one piece of work that is run again and again, and whether they agree.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace headlight::program {

class RepeatedTimes {
 public:
  void add(double seconds) { seconds_.insert(std::upper_bound(seconds_.begin(), seconds_.end(), seconds), seconds); }
  // Runs it once more; how many seconds it took.
  template <class Work>
  double run(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    add(seconds);
    return seconds;
  }

  [[nodiscard]] bool empty() const noexcept { return seconds_.empty(); }
  // 0 where there are none.
  [[nodiscard]] double best() const noexcept { return empty() ? 0 : seconds_.front(); }
  [[nodiscard]] double middle() const noexcept { return empty() ? 0 : seconds_[seconds_.size() / 2]; }

  // Whether half of the runs took half as long again as the fastest, or more: a clock that moves does less, another
  // thread on the same core, which takes every second turn, does more.
  [[nodiscard]] bool disagree() const noexcept { return seconds_.size() >= 3 && middle() >= 1.5 * best(); }

 private:
  std::vector<double> seconds_;  // ascending
};

// What a table says of it, or nothing.
[[nodiscard]] inline std::string note_of_busy(bool busy) {
  if (!busy) return "";
  return "\nThe machine was busy: for at least one figure, every second run took 1.5 times as long as the fastest, or "
         "longer. On a quiet one the figures are better.\n";
}

}  // namespace headlight::program
