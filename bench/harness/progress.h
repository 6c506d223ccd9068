// What a suite prints: a line for each case as it ends, with its number and how many there are.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <vector>

namespace headlight::bench {

class Progress : public benchmark::BenchmarkReporter {
 public:
  // All registered names; `filter` is Google Benchmark's.
  Progress(const std::vector<std::string>& names, const std::string& filter);

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  // Whether a case gave a wrong result.
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  std::size_t total_ = 0;
  std::size_t done_ = 0;
  bool failed_ = false;
};

}  // namespace headlight::bench
