#include "report/json_report.h"

#include "report/losses.h"

namespace headlight::bench::report {
namespace {

using nlohmann::json;

json json_of(const PeerFigures& peer) {
  return {{"name", peer.name},
          {"version", peer.version},
          {"seconds_best", peer.seconds_best},
          {"seconds_median", peer.seconds_median},
          {"speed", peer.speed}};
}

json place_of(const Row& row) {
  return {{"suite", row.suite}, {"case", row.name}, {"isa", row.isa}, {"threads", row.threads}};
}

}  // namespace

json json_report(const PageInput& input) {
  json report = {{"context", input.measured.context}, {"note", input.note}};
  json& rows = report["rows"] = json::array();
  for (const Row& row : input.measured.rows) {
    json& one = rows.emplace_back(place_of(row));
    one["figures"] = row.figures;
    one["peers"] = json::array();
    for (const PeerFigures& peer : row.peers) one["peers"].push_back(json_of(peer));
    if (!row.error.empty()) one["error"] = row.error;
  }
  json& losses = report["losses"] = json::array();
  for (const Loss& loss : losses_of(input.measured)) {
    json& one = losses.emplace_back(place_of(*loss.row));
    one["peer"] = loss.peer->name;
    one["headlight_takes"] = 1 / loss.peer->speed;
  }
  json& goals = report["goals"] = json::array();
  for (const GoalResult& result : goal_results(input.goals, input.measured)) {
    json& one = goals.emplace_back(place_of(*result.row));
    one["goal"] = result.wanted;
    one["here"] = result.reached;
    one["met"] = result.met;
  }
  json& latency = report["latency"] = json::array();
  for (const LatencyRow& row : input.measured.latency)
    latency.push_back({{"case", row.name},
                       {"isa", row.isa},
                       {"threads", row.threads},
                       {"beside", row.beside},
                       {"caches", row.caches},
                       {"calls", row.calls},
                       {"ended_after_seconds", row.ended_after_seconds},
                       {"p50", row.p50},
                       {"p99", row.p99},
                       {"p999", row.p999},
                       {"max", row.max},
                       {"buckets", row.buckets}});
  return report;
}

}  // namespace headlight::bench::report
