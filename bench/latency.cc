// How long single calls take, and how long the unlucky ones: p50, p99, p99.9 and the longest of 100,000 calls, alone
// and beside a process that wants every core, with operands in the caches and thrown out of them.
//   latency_bench [--out=FILE] [--calls=N] and the options of every suite but those of Google Benchmark
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/attention_case.h"
#include "harness/clock.h"
#include "harness/competitor.h"
#include "harness/eviction.h"
#include "harness/histogram.h"
#include "harness/inputs.h"
#include "harness/minilm_case.h"
#include "harness/statistics.h"
#include "headlight/system.h"

namespace headlight::bench {
namespace {

struct Settings {
  Options options;
  std::string out;
  std::size_t calls = 100'000;
  // What a row may take, however few calls that makes: more than any but long calls need.
  double seconds = 240;
  double seconds_of_long_calls = 12;
};

struct Condition {
  bool competitor;
  bool cold;
};

struct LatencyCase {
  const char* name;
  std::function<Work(const CaseContext&)> make;
  // Calls of milliseconds, on packed weights that lie where nobody outside can throw them out of the caches.
  bool long_calls = false;
};

Settings settings_of(int argc, char** argv) {
  Settings settings;
  settings.options = parse_options(argc, argv);
  settings.options.peers = false;
  if (settings.options.quick) settings.calls = 5'000, settings.seconds = settings.seconds_of_long_calls = 0.6;
  if (settings.options.smoke) settings.calls = 20, settings.seconds = settings.seconds_of_long_calls = 0.2;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help") {
      std::printf("Measures single calls. bench/README.md says how.\n  --out=FILE --calls=N\n%s", kOptionsHelp);
      std::exit(0);
    }
    if (argument.starts_with("--out=")) {
      settings.out = argument.substr(6);
    } else if (argument.starts_with("--calls=")) {
      const auto [end, error] = std::from_chars(argument.data() + 8, argument.data() + argument.size(), settings.calls);
      if (error != std::errc() || end != argument.data() + argument.size() || settings.calls == 0)
        throw std::invalid_argument("--calls: expected a number from 1");
    } else {
      throw std::invalid_argument("unknown option " + std::string(argument));
    }
  }
  return settings;
}

Eviction eviction_of(const LatencyCase& one, const Work& work) {
  std::vector<std::span<const float>> operands;
  if (!one.long_calls) {
    operands = work.reads;
    operands.insert(operands.end(), work.writes.begin(), work.writes.end());
  }
  return Eviction(std::move(operands));
}

std::vector<double> times_of(const Work& work, std::optional<Eviction>& evict, std::size_t calls, double most_seconds) {
  for (int call = 0; call < 3; ++call) work.run();
  std::vector<double> seconds;
  seconds.reserve(calls);
  const auto start = Clock::now();
  while (seconds.size() < calls && (seconds.size() < 10 || seconds_since(start) < most_seconds)) {
    if (evict) (*evict)();
    const auto call = Clock::now();
    work.run();
    seconds.push_back(seconds_since(call));
  }
  return seconds;
}

nlohmann::json row_of(const LatencyCase& one, const Settings& settings, const Condition& condition, int threads) {
  std::optional<Competitor> competitor;
  if (condition.competitor) competitor.emplace(system_info().cores);
  EngineOptions engine_options;
  engine_options.isa = settings.options.isas.front();
  engine_options.threads = threads;
  Engine engine(engine_options);
  const Work work = one.make({engine, settings.options});
  work.run();
  if (!work.is_right()) throw std::runtime_error(std::string(one.name) + ": the result is not the reference's");
  std::optional<Eviction> evict;
  if (condition.cold) evict.emplace(eviction_of(one, work));
  const double most_seconds = one.long_calls ? settings.seconds_of_long_calls : settings.seconds;
  const std::vector<double> seconds = times_of(work, evict, settings.calls, most_seconds);
  nlohmann::json buckets = nlohmann::json::array();
  for (const Bucket& bucket : histogram_of(seconds)) buckets.push_back({bucket.seconds, bucket.calls});
  return {{"case", one.name},
          {"isa", name(engine.isa())},
          {"threads", threads},
          {"beside", condition.competitor ? "a competing process" : "nothing"},
          {"caches", !evict             ? "warm"
                     : evict->by_line() ? "cold"
                                        : "cold, swept"},
          {"calls", seconds.size()},
          {"ended_after_seconds", seconds.size() < settings.calls ? most_seconds : 0},
          {"p50", quantile(seconds, 0.5)},
          {"p99", quantile(seconds, 0.99)},
          {"p999", quantile(seconds, 0.999)},
          {"max", greatest(seconds)},
          {"buckets", buckets}};
}

Work self_attention(std::int64_t length, std::int64_t head_dim, const CaseContext& context) {
  AttentionCase shape;
  shape.query_length = shape.key_length = length;
  shape.query_heads = shape.key_value_heads = 12;
  shape.head_dim = head_dim;
  return attention_work(shape, context);
}

int run(const Settings& settings) {
  std::vector<LatencyCase> cases = {
      {"attention/full/H12/L16/D64", [](const CaseContext& context) { return self_attention(16, 64, context); }},
      {"attention/full/H12/L128/D32", [](const CaseContext& context) { return self_attention(128, 32, context); }},
      {"minilm/1x16",
       [](const CaseContext& context) {
         return minilm_work({1, 16}, context);
       },
       true}};
  if (settings.options.smoke) cases.resize(1);
  const Condition conditions[] = {{false, false}, {false, true}, {true, false}, {true, true}};
  nlohmann::json rows = nlohmann::json::array();
  const std::size_t total = cases.size() * settings.options.threads.size() * std::size(conditions);
  for (const LatencyCase& one : cases) {
    for (const int threads : settings.options.threads) {
      for (const Condition& condition : conditions) {
        const nlohmann::json& row = rows.emplace_back(row_of(one, settings, condition, threads));
        const auto us = [&](const char* key) { return 1e6 * row.at(key).get<double>(); };
        std::printf("[%zu/%zu] latency/%s/threads:%d %s, %s: %zu calls  p50 %.1f  p99 %.1f  p99.9 %.1f  max %.1f us\n",
                    rows.size(), total, one.name, threads, condition.competitor ? "beside another" : "alone",
                    condition.cold ? "cold" : "warm", row.at("calls").get<std::size_t>(), us("p50"), us("p99"),
                    us("p999"), us("max"));
        std::fflush(stdout);
      }
    }
  }
  if (settings.out.empty()) return 0;
  std::ofstream file(settings.out);
  file << nlohmann::json{{"latency", rows}}.dump(1) << '\n';
  if (!file.flush()) throw std::runtime_error(settings.out + ": cannot be written");
  return 0;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) try {
  return headlight::bench::run(headlight::bench::settings_of(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "latency_bench: " << error.what() << '\n';
  return 1;
}
