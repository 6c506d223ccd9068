#include "headlight/engine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

#include "runtime/cores.h"
#include "runtime/cpu.h"
#include "runtime/engine_state.h"
#include "runtime/environment.h"
#include "runtime/tile_permission.h"

namespace headlight {
namespace {

[[noreturn]] void refuse(const char* option, const std::string& value, const std::string& expected) {
  throw std::invalid_argument("engine: option " + std::string(option) + " is " + value + ", expected " + expected);
}

Isa choose_isa(const EngineOptions& options, const runtime::CpuFeatures& cpu) {
  if (options.isa) {
    if (!runtime::is_available(cpu, *options.isa)) {
      const std::string_view text = name(*options.isa);
      refuse("isa", text.empty() ? "unknown" : std::string(text),
             "one that this build and CPU have: " + runtime::list_of_available_isas());
    }
    return *options.isa;
  }
  if (const std::optional<Isa> isa = runtime::isa_from_environment(cpu)) return *isa;
  return runtime::best_isa(cpu);
}

// Those of them that the operating system lets this process use; it is asked where one needs that.
InstructionFeatures permitted(InstructionFeatures features) {
  InstructionFeatures others, tiles;
  for (const InstructionFeature feature : features.list()) {
    InstructionFeatures& kind = runtime::row_of(feature).uses_tiles() ? tiles : others;
    kind = kind | feature;
  }
  const bool may_use_tiles = tiles != InstructionFeatures{} && runtime::ask_for_tile_registers();
  return may_use_tiles ? features : others;
}

InstructionFeatures choose_features(const EngineOptions& options, const runtime::CpuFeatures& cpu, Isa isa) {
  const InstructionFeatures allowed = runtime::features_of(cpu, isa, options.numerics);
  if (!options.features) return permitted(runtime::worthwhile(cpu, allowed));
  const InstructionFeatures available = runtime::features_of(cpu, isa, Numerics::fast);
  if (!available.has(*options.features)) {
    refuse("features", runtime::list_of(*options.features),
           "some of those that this build and CPU have for " + std::string(name(isa)) + ": " +
               runtime::list_of(available));
  }
  if (!allowed.has(*options.features)) {
    refuse("features", runtime::list_of(*options.features),
           "numerics fast beside it, or some of those that do without: " + runtime::list_of(allowed));
  }
  if (permitted(*options.features) != *options.features) {
    refuse("features", runtime::list_of(*options.features),
           "none by tile registers (AMX), which the operating system does not permit this process");
  }
  return *options.features;
}

Executor checked_executor(const Executor& executor) {
  const auto require = [](bool given, const char* function) {
    if (!given) refuse(function, "null", "all four functions of an executor");
  };
  require(executor.worker_count != nullptr, "executor.worker_count");
  require(executor.inside_worker != nullptr, "executor.inside_worker");
  require(executor.run != nullptr, "executor.run");
  require(executor.wait != nullptr, "executor.wait");
  return executor;
}

// Threads that were asked for, or 0.
int wanted_threads(const EngineOptions& options) {
  if (options.threads < 0 || options.threads > runtime::kMaxThreads) {
    refuse("threads", std::to_string(options.threads), "0 to " + std::to_string(runtime::kMaxThreads));
  }
  return options.threads > 0 ? options.threads : runtime::threads_from_environment().value_or(0);
}

int choose_threads(const EngineOptions& options) {
  const int wanted = wanted_threads(options);
  if (options.executor != nullptr) {
    const Executor executor = checked_executor(*options.executor);
    const int workers = executor.worker_count(executor.context);
    if (workers < 1) refuse("executor.worker_count()", std::to_string(workers), "at least 1");
    if (runtime::inside_task || executor.inside_worker(executor.context)) return 1;
    return std::min(wanted > 0 ? wanted : runtime::kMaxThreads, workers);
  }
  if (runtime::inside_task) return 1;
  return wanted > 0 ? wanted : runtime::granted_cores();
}

}  // namespace

Engine::Engine(const EngineOptions& options) : state_(std::make_unique<runtime::EngineState>()) {
  if (options.spin_microseconds < 0) {
    refuse("spin_microseconds", std::to_string(options.spin_microseconds), "0 or more");
  }
  if (name(options.numerics).empty()) refuse("numerics", "unknown", "reproducible or fast");
  const runtime::CpuFeatures cpu = runtime::cpu_features();
  state_->isa = choose_isa(options, cpu);
  state_->features = choose_features(options, cpu, state_->isa);
  state_->numerics = options.numerics;
  state_->follows_memory = cpu.has(runtime::kIntelTiles);
  state_->reads_two_streams = cpu.is_of_intel;
  state_->threads = choose_threads(options);
  state_->process = getpid();
  if (state_->threads == 1) return;
  if (options.executor != nullptr) {
    state_->executor = *options.executor;
  } else {
    state_->pool = std::make_unique<runtime::ThreadPool>(state_->threads - 1,
                                                         std::chrono::microseconds(options.spin_microseconds));
  }
}

Engine::~Engine() = default;

int Engine::threads() const noexcept { return state_->threads; }

Isa Engine::isa() const noexcept { return state_->isa; }

InstructionFeatures Engine::features() const noexcept { return state_->features; }

Numerics Engine::numerics() const noexcept { return state_->numerics; }

std::size_t Engine::scratch_bytes() const noexcept { return state_->scratch.bytes(); }

void Engine::release_scratch() noexcept { state_->scratch.release_idle(); }

}  // namespace headlight
