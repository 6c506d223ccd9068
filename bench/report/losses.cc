#include "report/losses.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "report/text.h"

namespace headlight::bench::report {
namespace {

using nlohmann::json;

void add_share(const json& wanted, const char* key, const char* of, const Row& row, std::vector<GoalResult>& results) {
  if (!wanted.contains(key) || row.figure(key) == 0) return;
  const double least = wanted.at(key).get<double>();
  results.push_back(
      {&row, "≥ " + format("%.0f %% of ", 100 * least) + of, percent_text(row.figure(key)), row.figure(key) >= least});
}

void add_against(const json& wanted, const Row& row, std::vector<GoalResult>& results) {
  if (!wanted.contains("against")) return;
  for (const auto& [name, least] : wanted.at("against").items()) {
    for (const PeerFigures& peer : row.peers) {
      const bool meant = name == "*" ? !peer.name.starts_with("headlight") : peer.name == name;
      if (!meant) continue;
      const double factor = least.get<double>();
      results.push_back(
          {&row, format("≥ %.2f× ", factor) + peer.name, format("%.2f×", peer.speed), peer.speed >= factor});
      if (name == "*") break;  // the fastest comes first
    }
  }
}

std::vector<GoalResult> results_of(const json& wanted, const Row& row) {
  std::vector<GoalResult> results;
  add_share(wanted, "peak_share", "peak", row, results);
  add_share(wanted, "read_share", "reading", row, results);
  if (wanted.contains("seconds") && row.figure("seconds_median") > 0) {
    const double most = wanted.at("seconds").get<double>();
    const double reached = row.figure("seconds_median");
    results.push_back({&row, "≤ " + time_text(most), time_text(reached), reached <= most});
  }
  if (wanted.contains("bytes") && row.figure("bytes") > 0) {
    const double most = wanted.at("bytes").get<double>();
    results.push_back({&row, "≤ " + format("%.0f bytes", most), format("%.0f bytes", row.figure("bytes")),
                       row.figure("bytes") <= most});
  }
  add_against(wanted, row, results);
  if (wanted.value("either", false)) {
    const bool one_met = std::any_of(results.begin(), results.end(), [](const GoalResult& one) { return one.met; });
    for (GoalResult& result : results) result.met = one_met;
  }
  return results;
}

}  // namespace

std::vector<Loss> losses_of(const Measured& measured) {
  std::vector<Loss> losses;
  for (const Row& row : measured.rows) {
    // The fastest comes first; 0 means that it was not measured.
    const auto fastest =
        std::find_if(row.peers.begin(), row.peers.end(), [](const PeerFigures& peer) { return peer.speed > 0; });
    if (fastest != row.peers.end() && fastest->speed < 0.99) losses.push_back({&row, &*fastest});
  }
  std::stable_sort(losses.begin(), losses.end(),
                   [](const Loss& a, const Loss& b) { return a.peer->speed < b.peer->speed; });
  return losses;
}

std::vector<GoalResult> goal_results(const json& goals, const Measured& measured) try {
  std::vector<GoalResult> results;
  for (const json& goal : goals) {
    for (const json& name : goal.at("cases")) {
      std::set<int> seen;  // a second row of as many threads is another instruction set
      for (const Row& row : measured.rows) {
        if (row.full_name() != name.get<std::string>() || !seen.insert(row.threads).second) continue;
        const char* const key = row.threads == 1 ? "one" : "all";
        if (!goal.contains(key)) continue;
        for (GoalResult& result : results_of(goal.at(key), row)) results.push_back(std::move(result));
      }
    }
  }
  return results;
} catch (const json::exception& error) {
  throw std::runtime_error(std::string("not a file of goals: ") + error.what());
}

}  // namespace headlight::bench::report
