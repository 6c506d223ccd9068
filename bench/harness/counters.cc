#include "harness/counters.h"

#include <algorithm>
#include <cstddef>

#include "harness/statistics.h"

namespace headlight::bench {
namespace {

std::vector<double> rates(double amount, const Times& times) {
  std::vector<double> all;
  for (const double seconds : times.rounds) all.push_back(amount / seconds * 1e-9);
  return all;
}

}  // namespace

Counters counters_of(const Work& work, const PairedTimes& times, const Yardsticks& yardsticks) {
  Counters counters(work.facts.begin(), work.facts.end());
  if (times.ours.rounds.empty()) return counters;
  const double best = times.ours.best;
  counters["seconds_best"] = best;
  counters["seconds_median"] = times.ours.median();
  counters["rounds"] = static_cast<double>(times.ours.rounds.size());

  std::size_t next = 0;
  const std::vector<double> peak = yardsticks.peak ? times.yardsticks.at(next++) : std::vector<double>();
  const std::vector<double> read = yardsticks.read ? times.yardsticks.at(next++) : std::vector<double>();
  if (!peak.empty()) counters["peak_gflops"] = median(peak);
  if (work.operations > 0) {
    const std::vector<double> all = rates(work.operations, times.ours);
    counters["gflops_best"] = work.operations / best * 1e-9;
    counters["gflops_median"] = median(all);
    if (!peak.empty()) counters["peak_share"] = median_ratio(all, peak);
  }
  if (work.elements > 0) {
    counters["elements_per_ns"] = work.elements / best * 1e-9;
    if (work.element_operations > 0 && !peak.empty())
      counters["element_share"] = median_ratio(rates(2 * work.element_operations * work.elements, times.ours), peak);
  }
  double bytes = work.other_bytes;
  for (const std::span<const float>& memory : work.reads) bytes += static_cast<double>(memory.size_bytes());
  for (const std::span<float>& memory : work.writes) bytes += static_cast<double>(memory.size_bytes());
  if (bytes > 0) {
    counters["gbps_best"] = bytes / best * 1e-9;
    const std::vector<double> all = rates(bytes, times.ours);
    counters["gbps_median"] = median(all);
    if (!read.empty()) {
      counters["read_gbps"] = median(read);
      counters["read_share"] = median_ratio(all, read);
    }
  }
  for (std::size_t i = 0; i < std::min(work.peers.size(), times.others.size()); ++i) {
    const std::string prefix = "peer|" + work.peers[i].name + "|" + work.peers[i].version + "|";
    counters[prefix + "seconds_best"] = times.others[i].best;
    counters[prefix + "seconds_median"] = times.others[i].median();
    counters[prefix + "ratio"] = median_ratio(times.ours.rounds, times.others[i].rounds);
  }
  return counters;
}

}  // namespace headlight::bench
