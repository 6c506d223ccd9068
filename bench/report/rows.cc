#include "report/rows.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace headlight::bench::report {
namespace {

using nlohmann::json;

// "suite/case/with/slashes/isa/threads:2/iterations:1/manual_time"
Row row_of_name(const std::string& name) {
  const auto fail = [&] { throw std::runtime_error("'" + name + "' is not named suite/case/isa/threads:N"); };
  const std::size_t threads = name.find("/threads:");
  if (threads == std::string::npos || threads == 0) fail();
  const std::size_t isa = name.rfind('/', threads - 1);
  const std::size_t suite = name.find('/');
  if (isa == std::string::npos || suite >= isa) fail();
  Row row;
  row.suite = name.substr(0, suite);
  row.name = name.substr(suite + 1, isa - suite - 1);
  row.isa = name.substr(isa + 1, threads - isa - 1);
  const char* const begin = name.data() + threads + 9;
  if (std::from_chars(begin, name.data() + name.size(), row.threads).ec != std::errc()) fail();
  return row;
}

// "peer|OpenBLAS|0.3.21 SkylakeX|seconds_best"
void add_peer_figure(const std::string& key, double value, Row& row) {
  const std::size_t version = key.find('|', 5);
  const std::size_t figure = key.rfind('|');
  if (version == std::string::npos || figure <= version) throw std::runtime_error("'" + key + "' is no peer's figure");
  const std::string name = key.substr(5, version - 5);
  auto peer =
      std::find_if(row.peers.begin(), row.peers.end(), [&](const PeerFigures& one) { return one.name == name; });
  if (peer == row.peers.end()) {
    row.peers.push_back({name, key.substr(version + 1, figure - version - 1)});
    peer = row.peers.end() - 1;
  }
  const std::string what = key.substr(figure + 1);
  if (what == "seconds_best") peer->seconds_best = value;
  if (what == "seconds_median") peer->seconds_median = value;
  if (what == "ratio" && value > 0) peer->speed = 1 / value;
}

void sort_peers(Row& row) {
  std::stable_sort(row.peers.begin(), row.peers.end(),
                   [](const PeerFigures& a, const PeerFigures& b) { return a.speed < b.speed; });
}

void add_context(const json& context, Measured& measured) {
  if (!measured.context.empty()) return;
  for (const char* key : {"date", "cpu_name", "cores", "l1_data_bytes", "l2_bytes", "l3_bytes", "headlight_version",
                          "headlight_compiler", "headlight_simd", "headlight_build"}) {
    if (context.contains(key)) measured.context[key] = context.at(key).get<std::string>();
  }
  if (context.contains("load_avg") && !context.at("load_avg").empty())
    measured.context["load_average"] = std::to_string(context.at("load_avg").at(0).get<double>());
}

// Their time over ours; 0: not known.
double speed_against(const Row& ours, const Row& theirs) {
  for (const char* share : {"peak_share", "element_share", "read_share"}) {
    if (ours.figure(share) > 0 && theirs.figure(share) > 0) return ours.figure(share) / theirs.figure(share);
  }
  return ours.figure("seconds_median") > 0 ? theirs.figure("seconds_median") / ours.figure("seconds_median") : 0;
}

void add_turn(const std::string& name, const Row& theirs, double speed, Row& row) {
  auto peer =
      std::find_if(row.peers.begin(), row.peers.end(), [&](const PeerFigures& one) { return one.name == name; });
  if (peer == row.peers.end()) {
    row.peers.push_back({name, "", theirs.figure("seconds_best"), theirs.figure("seconds_median")});
    peer = row.peers.end() - 1;
  }
  peer->speed = (peer->speed * peer->build_turns + speed) / (peer->build_turns + 1);
  ++peer->build_turns;
  sort_peers(row);
}

}  // namespace

const char* Row::limit() const { return figure("read_share") > figure("peak_share") ? "read_share" : "peak_share"; }

double Row::figure(const std::string& key) const {
  const auto found = figures.find(key);
  return found == figures.end() ? 0 : found->second;
}

void add_suite(const json& file, Measured& measured) try {
  add_context(file.at("context"), measured);
  // What Google Benchmark says of itself; all other numbers are counters of ours.
  const char* const own[] = {"family_index", "per_family_instance_index",
                             "repetitions",  "repetition_index",
                             "threads",      "iterations",
                             "real_time",    "cpu_time"};
  for (const json& entry : file.at("benchmarks")) {
    Row row = row_of_name(entry.at("name").get<std::string>());
    if (entry.value("error_occurred", false)) row.error = entry.value("error_message", "failed");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_number() || std::find(std::begin(own), std::end(own), key) != std::end(own)) continue;
      if (key.starts_with("peer|")) {
        add_peer_figure(key, value.get<double>(), row);
      } else {
        row.figures[key] = value.get<double>();
      }
    }
    sort_peers(row);
    measured.rows.push_back(std::move(row));
  }
} catch (const json::exception& error) {
  throw std::runtime_error(std::string("not a suite's file: ") + error.what());
}

void add_latency(const json& file, Measured& measured) try {
  for (const json& entry : file.at("latency")) {
    LatencyRow row;
    entry.at("case").get_to(row.name);
    entry.at("isa").get_to(row.isa);
    entry.at("threads").get_to(row.threads);
    entry.at("beside").get_to(row.beside);
    entry.at("caches").get_to(row.caches);
    entry.at("calls").get_to(row.calls);
    row.ended_after_seconds = entry.value("ended_after_seconds", 0.0);
    entry.at("p50").get_to(row.p50);
    entry.at("p99").get_to(row.p99);
    entry.at("p999").get_to(row.p999);
    entry.at("max").get_to(row.max);
    for (const json& bucket : entry.at("buckets"))
      row.buckets.emplace_back(bucket.at(0).get<double>(), bucket.at(1).get<double>());
    measured.latency.push_back(std::move(row));
  }
} catch (const json::exception& error) {
  throw std::runtime_error(std::string("not a file of latencies: ") + error.what());
}

void add_peers(const json& file, Measured& measured) try {
  for (const json& entry : file) {
    if (entry.at("peer") == "headlight") continue;  // ours through their door; every other row has its time beside it
    const auto suite = entry.at("suite").get<std::string>();
    const auto name = entry.at("case").get<std::string>();
    const int threads = entry.at("threads").get<int>();
    PeerFigures peer{entry.at("peer").get<std::string>(), entry.at("version").get<std::string>(),
                     entry.at("seconds_best").get<double>(), entry.at("seconds_median").get<double>()};
    const double ours = entry.at("ours_seconds_median").get<double>();
    if (ours > 0) peer.speed = peer.seconds_median / ours;
    // Suites run the best instruction set first.
    const auto same = [&](const Row& one) { return one.suite == suite && one.name == name && one.threads == threads; };
    auto found = std::find_if(measured.rows.begin(), measured.rows.end(), same);
    if (found == measured.rows.end()) {
      Row made;
      made.suite = suite;
      made.name = name;
      made.threads = threads;
      made.figures = {{"seconds_best", entry.at("ours_seconds_best").get<double>()}, {"seconds_median", ours}};
      found = measured.rows.insert(found, std::move(made));
    }
    found->peers.push_back(std::move(peer));
    sort_peers(*found);
  }
} catch (const json::exception& error) {
  throw std::runtime_error(std::string("not a file of peers: ") + error.what());
}

void add_build(const std::string& name, const json& ours_file, const json& theirs_file, Measured& measured) {
  Measured ours_of_turn, theirs_of_turn;
  add_suite(ours_file, ours_of_turn);
  add_suite(theirs_file, theirs_of_turn);
  for (const Row& theirs : theirs_of_turn.rows) {
    const auto same = [&](const Row& row) {
      return row.full_name() == theirs.full_name() && row.isa == theirs.isa && row.threads == theirs.threads;
    };
    const auto ours = std::find_if(ours_of_turn.rows.begin(), ours_of_turn.rows.end(), same);
    const auto row = std::find_if(measured.rows.begin(), measured.rows.end(), same);
    if (ours == ours_of_turn.rows.end() || row == measured.rows.end()) continue;
    const double speed = speed_against(*ours, theirs);
    if (speed > 0) add_turn(name, theirs, speed, *row);
  }
}

}  // namespace headlight::bench::report
