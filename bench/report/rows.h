// What was measured, read back from the files that suites and peers write.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace headlight::bench::report {

// Somebody else on the same work, measured in alternation with ours.
struct PeerFigures {
  std::string name;
  std::string version;
  double seconds_best = 0;
  double seconds_median = 0;
  // Their time over ours: 2 means that headlight takes half the time.
  double speed = 0;
  // Another build of headlight, and how many times it was measured; 0: somebody else.
  int build_turns = 0;
};

struct Row {
  std::string suite;
  std::string name;  // of the case
  std::string isa;
  int threads = 1;
  std::map<std::string, double> figures;  // harness/counters.h names them
  std::vector<PeerFigures> peers;         // the one that we gain least against first
  std::string error;                      // a wrong result

  // "read_share" or "peak_share": the limit that is nearer.
  [[nodiscard]] const char* limit() const;
  // 0 when there is no such figure.
  [[nodiscard]] double figure(const std::string& key) const;
  [[nodiscard]] std::string full_name() const { return suite + "/" + name; }
};

struct LatencyRow {
  std::string name;
  std::string isa;
  int threads = 1;
  std::string beside;  // "nothing"
  std::string caches;  // "warm"
  double calls = 0;
  double ended_after_seconds = 0;  // 0: it made all calls that were wanted
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
  std::vector<std::pair<double, double>> buckets;  // lower end in seconds, calls
};

struct Measured {
  std::map<std::string, std::string> context;  // of the first file
  std::vector<Row> rows;
  std::vector<LatencyRow> latency;
};

// Each adds to what is there. All throw std::runtime_error naming what is wrong with the file's content.

// Google Benchmark's JSON of a suite.
void add_suite(const nlohmann::json& file, Measured& measured);
// That of latency_bench.
void add_latency(const nlohmann::json& file, Measured& measured);
// Rows of bench/peers/run: added to ours of the same suite, case and number of threads on the best instruction set. A
// case that is not among ours becomes a row with the times that its own run gave us.
void add_peers(const nlohmann::json& file, Measured& measured);

// Files of one suite by this build of headlight and by another one (another compiler, the other SIMD library), measured
// one after the other. The other becomes a peer of that name in the rows that both have; given again, it has the mean
// speed of all its turns. A suite takes minutes, in which clocks change, so what is compared are shares of a yardstick
// where both have one, and median times where not.
void add_build(const std::string& name, const nlohmann::json& ours, const nlohmann::json& theirs, Measured& measured);

}  // namespace headlight::bench::report
