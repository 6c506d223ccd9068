#include "harness/suite.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <limits>
#include <string_view>

#include "harness/case_name.h"
#include "harness/counters.h"
#include "harness/fma_peak.h"
#include "harness/other_load.h"
#include "harness/progress.h"
#include "harness/read_bandwidth.h"
#include "harness/statistics.h"
#include "headlight/system.h"

namespace headlight::bench {
namespace {

struct Setting {
  Isa isa;
  int threads;
};

// The warm-ups and the check come first; then rounds.
Counters measure(const Work& work, const Engine& engine, const Options& options) {
  if (!work.run) return counters_of(work, {}, {});
  Sampling sampling;
  sampling.seconds = options.smoke ? 0 : options.seconds;
  sampling.least_rounds = options.smoke ? 1 : options.quick ? 3 : 5;
  // Calls of seconds need no five rounds to be sure of.
  sampling.most_seconds = options.quick ? 1 : 5;
  sampling.settle_seconds = engine.threads() > 1 && !options.smoke ? 1e-3 : 0;

  FmaMeter peak(engine, work.type);
  std::vector<std::function<double()>> yardsticks = {[&] { return peak.burst(); }};
  std::optional<ReadMeter> read;
  if (!work.reads.empty()) {
    read.emplace(engine.isa(), engine.threads(), work.reads);
    if (work.bound_by_reading) {
      yardsticks.emplace_back([&] { return read->burst(); });
    } else {
      // Around every call it would cost time, and take the caches from what else the call finds there.
      yardsticks.emplace_back([once = median({read->burst(), read->burst(), read->burst()})] { return once; });
    }
  }
  std::vector<std::function<void()>> others;
  for (const Peer& peer : work.peers) others.push_back(peer.run);
  others.insert(others.end(), work.beside.begin(), work.beside.end());
  const OtherLoad other_load;
  const PairedTimes times = measure_paired(work.run, others, yardsticks, sampling);
  Counters counters = counters_of(work, times, {true, read.has_value()});
  if (work.found) {
    for (const auto& [name, value] : work.found()) counters[name] = value;
  }
  if (const double disturbed = other_load.share(); disturbed > 0.05) counters["disturbed"] = disturbed;
  return counters;
}

void run_case(benchmark::State& state, const Case& one, const Setting& setting, const Options& options) {
  EngineOptions engine_options;
  engine_options.isa = setting.isa;
  engine_options.threads = setting.threads;
  engine_options.numerics = options.numerics;
  Engine engine(engine_options);
  // Others run their best instruction set, so only ours of that stands beside them.
  Options case_options = options;
  case_options.peers = options.peers && setting.isa == available_isas().back();
  Work work = one.make({engine, case_options});
  if (work.run) {
    work.run();
    if (work.is_right && !work.is_right()) {
      state.SkipWithError("the result is not the reference's");
      return;
    }
  }
  // Peers write where ours did.
  std::erase_if(work.peers, [&](const Peer& peer) {
    for (const std::span<float>& memory : work.writes)
      std::fill(memory.begin(), memory.end(), std::numeric_limits<float>::quiet_NaN());
    peer.run();
    if (!work.is_right || work.is_right()) return false;
    std::cerr << one.name << ": " << peer.name << " is left out, its result is not the reference's\n";
    return true;
  });
  for (auto step : state) {
    static_cast<void>(step);
    const Counters counters = measure(work, engine, options);
    for (const auto& [name, value] : counters) state.counters[name] = value;
    const auto seconds = counters.find("seconds_median");
    state.SetIterationTime(seconds == counters.end() ? 0 : seconds->second);
  }
}

void add_context() {
  const SystemInfo system = system_info();
  benchmark::AddCustomContext("headlight_version", system.version);
  benchmark::AddCustomContext("headlight_compiler", system.compiler);
  benchmark::AddCustomContext("headlight_simd", std::string(simd_library()));
  benchmark::AddCustomContext("headlight_build", HEADLIGHT_BENCH_BUILD);
  benchmark::AddCustomContext("cpu_name", system.cpu_name);
  benchmark::AddCustomContext("cores", std::to_string(system.cores));
  for (const auto& [level, bytes] : {std::pair{"l1_data_bytes", system.l1_data_bytes},
                                     std::pair{"l2_bytes", system.l2_bytes}, std::pair{"l3_bytes", system.l3_bytes}})
    benchmark::AddCustomContext(level, std::to_string(bytes));
}

}  // namespace

int run_suite(const std::string& suite, const std::vector<Case>& cases, int argc, char** argv,
              const SuiteOptions& suite_options) try {
  Options options = parse_options(argc, argv);
  if (suite_options.one_thread) options.threads = {1};
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help") {
      std::printf("Measures headlight's %s. bench/README.md says how.\n%s", suite.c_str(), kOptionsHelp);
      return 0;
    }
  }
  std::vector<std::string> names;
  for (const Isa isa : options.isas) {
    for (const Case& one : cases) {
      if ((options.quick && !one.quick) || (options.smoke && !one.smoke)) continue;
      for (const int threads : options.threads) {
        names.push_back(case_name(suite, "/", one.name, "/", name(isa), "/threads:", threads));
        benchmark::RegisterBenchmark(names.back().c_str(),
                                     [&one, &options, isa, threads](benchmark::State& state) {
                                       run_case(state, one, {isa, threads}, options);
                                     })
            ->Iterations(1)
            ->UseManualTime();
      }
    }
  }
  add_context();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Progress progress(names, benchmark::GetBenchmarkFilter());
  benchmark::RunSpecifiedBenchmarks(&progress);
  return progress.failed() ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", suite.c_str(), error.what());
  return 1;
}

}  // namespace headlight::bench
