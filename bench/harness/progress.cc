#include "harness/progress.h"

#include <cstdio>
#include <regex>

namespace headlight::bench {
namespace {

// Google Benchmark's own rule: a search, inverted by a leading '-'.
std::size_t matching(const std::vector<std::string>& names, std::string filter) {
  if (filter.empty() || filter == "all") return names.size();
  const bool inverted = filter.starts_with('-');
  if (inverted) filter.erase(0, 1);
  const std::regex pattern(filter, std::regex::extended);
  std::size_t count = 0;
  for (const std::string& name : names) count += std::regex_search(name, pattern) != inverted;
  return count;
}

std::string text(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string time_text(double seconds) {
  if (seconds < 1e-6) return text("%.0f ns", seconds * 1e9);
  if (seconds < 1e-3) return text("%.2f us", seconds * 1e6);
  return text("%.3f ms", seconds * 1e3);
}

}  // namespace

Progress::Progress(const std::vector<std::string>& names, const std::string& filter)
    : total_(matching(names, filter)) {}

bool Progress::ReportContext(const Context&) { return true; }

void Progress::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    std::string name = run.run_name.function_name;
    ++done_;
    if (run.error_occurred) {
      failed_ = true;
      std::printf("[%zu/%zu] %s: %s\n", done_, total_, name.c_str(), run.error_message.c_str());
      continue;
    }
    std::string line;
    const auto add = [&](const char* counter, const char* format, double factor) {
      const auto found = run.counters.find(counter);
      if (found != run.counters.end()) line += "  " + text(format, found->second.value * factor);
    };
    if (const auto best = run.counters.find("seconds_best"); best != run.counters.end())
      line += "  " + time_text(best->second.value);
    add("gflops_best", "%.1f GFLOP/s", 1);
    add("peak_share", "%.1f %% of peak", 100);
    add("elements_per_ns", "%.2f elements/ns", 1);
    add("element_share", "%.1f %% of peak", 100);
    add("gbps_best", "%.1f GB/s", 1);
    add("read_share", "%.1f %% of reading", 100);
    add("bytes", "%.0f bytes", 1);
    add("busy_share", "%.2f %% of a core", 100);
    for (const auto& [counter, value] : run.counters) {
      if (counter.starts_with("share|")) line += "  " + text("%.1f %% ", value * 100) + counter.substr(6);
    }
    for (const auto& [counter, value] : run.counters) {
      if (!counter.starts_with("peer|") || !counter.ends_with("|ratio")) continue;
      const std::size_t end = counter.find('|', 5);
      line += "  " + text("%.2fx ", 1 / value.value) + counter.substr(5, end - 5);
    }
    add("disturbed", "(others use %.0f %% of the machine)", 100);
    std::printf("[%zu/%zu] %-58s%s\n", done_, total_, name.c_str(), line.c_str());
  }
  std::fflush(stdout);
}

}  // namespace headlight::bench
