#include "report/losses.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

#include "report/text.h"

namespace headlight::bench::report {
namespace {

using nlohmann::json;

// What a lesser instruction set may stay behind, as a share of its own peak.
constexpr double kLesserPoints = 0.06;

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

// As many times as fast as one thread at least.
void add_speedup(const json& wanted, const Measured& measured, const Row& row, std::vector<GoalResult>& results) {
  if (!wanted.contains("speedup") || row.figure("seconds_median") <= 0) return;
  const double least = wanted.at("speedup").get<double>();
  for (const Row& one : measured.rows) {
    if (one.threads != 1 || one.full_name() != row.full_name() || one.isa != row.isa) continue;
    const double reached = one.figure("seconds_median") / row.figure("seconds_median");
    results.push_back({&row, format("≥ %.2f× one thread", least), format("%.2f×", reached), reached >= least});
    return;
  }
}

std::vector<GoalResult> results_of(const json& wanted, const Measured& measured, const Row& row) {
  std::vector<GoalResult> results;
  add_share(wanted, "peak_share", "peak", row, results);
  add_share(wanted, "read_share", "reading", row, results);
  add_speedup(wanted, measured, row, results);
  if (wanted.contains("busy_share") && row.figures.contains("busy_share")) {
    const double most = wanted.at("busy_share").get<double>(), reached = row.figure("busy_share");
    results.push_back(
        {&row, format("≤ %.1f %% of a core", 100 * most), format("%.2f %%", 100 * reached), reached <= most});
  }
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
    bool seen[2] = {};
    for (const PeerFigures& peer : row.peers) {
      if (peer.build_turns > 0 || peer.speed == 0 || peer.speed >= 0.99) continue;
      bool& ours_or_others = seen[peer.name.starts_with("headlight")];
      if (!std::exchange(ours_or_others, true)) losses.push_back({&row, &peer});
    }
  }
  std::stable_sort(losses.begin(), losses.end(),
                   [](const Loss& a, const Loss& b) { return a.peer->speed < b.peer->speed; });
  return losses;
}

std::vector<BuildComparison> build_comparisons(const Measured& measured) {
  std::vector<BuildComparison> builds;
  std::vector<std::vector<double>> speeds;
  for (const Row& row : measured.rows) {
    for (const PeerFigures& peer : row.peers) {
      if (peer.build_turns == 0) continue;
      std::size_t n = 0;
      while (n < builds.size() && builds[n].name != peer.name) ++n;
      if (n == builds.size()) {
        builds.emplace_back().name = peer.name;
        speeds.emplace_back();
      }
      speeds[n].push_back(peer.speed);
      if (std::abs(peer.speed - 1) > 0.03) builds[n].differing.push_back({&row, &peer});
    }
  }
  for (std::size_t n = 0; n < builds.size(); ++n) {
    BuildComparison& build = builds[n];
    std::stable_sort(build.differing.begin(), build.differing.end(),
                     [](const Loss& a, const Loss& b) { return a.peer->speed < b.peer->speed; });
    std::sort(speeds[n].begin(), speeds[n].end());
    build.rows = speeds[n].size();
    build.median = speeds[n][build.rows / 2];
  }
  return builds;
}

std::vector<GoalResult> goal_results(const json& goals, const Measured& measured) try {
  std::vector<GoalResult> results;
  for (const json& goal : goals) {
    for (const json& name : goal.at("cases")) {
      std::set<int> seen;  // a second row of as many threads is a lesser instruction set
      for (const Row& row : measured.rows) {
        if (row.full_name() != name.get<std::string>()) continue;
        const char* const key = row.threads == 1 ? "one" : "all";
        const bool lesser = !seen.insert(row.threads).second;
        if (!goal.contains(key) || (lesser && !goal.at(key).contains("peak_share"))) continue;
        json wanted = goal.at(key);
        if (lesser) wanted = {{"peak_share", wanted.at("peak_share").get<double>() - kLesserPoints}};
        for (GoalResult& result : results_of(wanted, measured, row)) results.push_back(std::move(result));
      }
    }
  }
  return results;
} catch (const json::exception& error) {
  throw std::runtime_error(std::string("not a file of goals: ") + error.what());
}

}  // namespace headlight::bench::report
