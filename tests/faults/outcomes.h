// What became of faults: counted for the table, and each defect told.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace headlight::faults {

enum class Outcome : int {
  unmet,    // the process took another way and never made that call
  went_on,  // the result is that of a run without faults
  refused,  // a clear error, and nothing changed
  stopped,  // by the signal, and nothing partial was left
  defect
};
inline constexpr int kOutcomes = 5;

// Threads may add at the same time.
class Outcomes {
 public:
  void add(const char* plan, Outcome outcome, const std::string& defect = "");
  // Prints the table to standard output, in Markdown, and what was wrong to standard error. Whether nothing was.
  [[nodiscard]] bool report(const char* subject) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> order_;
  std::map<std::string, std::array<std::int64_t, kOutcomes>> rows_;
  std::vector<std::string> defects_;
};

}  // namespace headlight::faults
