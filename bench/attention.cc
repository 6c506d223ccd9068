// Attention forward: GFLOP/s over visible pairs and the share of the multiply-add peak measured around each case; for
// one query, bytes of keys and values a second. Inputs are [B, L, H, D] unless the name says by_head ([B, H, L, D]).
//   attention_bench [--benchmark_filter=avx512/self]
#include "headlight/attention.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "reference/attention.h"
#include "support/fma_peak.h"

namespace {

using headlight::Engine;
using headlight::Tensor;
using headlight::View;

enum class Memory { by_position, by_head };

struct Case {
  const char* name;
  std::int64_t batch, query_length, key_length, query_heads, key_value_heads, head_dim;
  headlight::Causal causal = headlight::Causal::none;
  std::int64_t left = -1;
  Memory memory = Memory::by_position;
};

// Tensors [B, L, H, D] in either memory order.
class Tensor4 {
 public:
  Tensor4(std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t dim, Memory memory,
          std::uint32_t seed)
      : storage_({batch * length * heads * dim}) {
    for (float& element : storage_) {
      seed = seed * 1664525u + 1013904223u;
      element = static_cast<float>(static_cast<int>(seed >> 20) - 2048) / 1024.0f;
    }
    const bool by_head = memory == Memory::by_head;
    view_ = {storage_.data(),
             {batch, length, heads, dim},
             {length * heads * dim, by_head ? dim : heads * dim, by_head ? length * dim : dim, 1}};
  }
  operator View<const float, 4>() const { return view_; }  // NOLINT(runtime/explicit)
  operator View<float, 4>() { return view_; }              // NOLINT(runtime/explicit)
  [[nodiscard]] const View<float, 4>& view() const { return view_; }

 private:
  Tensor<float, 1> storage_;
  View<float, 4> view_;
};

// Some rows against float64.
bool is_right(const Case& shape, const headlight::AttentionOptions& options, const Tensor4& query, const Tensor4& key,
              const Tensor4& value, const Tensor4& out) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
  for (std::int64_t probe = 0; probe < 8; ++probe) {
    const std::int64_t b = probe % shape.batch;
    const std::int64_t h = probe * 7919 % shape.query_heads;
    const std::int64_t i = (probe * 104729 + shape.query_length - 1) % shape.query_length;
    const std::int64_t from = h / (shape.query_heads / shape.key_value_heads);
    std::vector<double> weights(static_cast<std::size_t>(shape.key_length));
    double sum = 0;
    for (std::int64_t j = 0; j < shape.key_length; ++j) {
      if (!headlight::reference::visible(options, shape.query_length, shape.key_length, b, h, i, j)) continue;
      double score = 0;
      for (std::int64_t d = 0; d < shape.head_dim; ++d)
        score += static_cast<double>(query.view()(b, i, h, d)) * key.view()(b, j, from, d);
      sum += weights[static_cast<std::size_t>(j)] = std::exp(score * scale);
    }
    for (std::int64_t d = 0; d < shape.head_dim; ++d) {
      double expected = 0;
      for (std::int64_t j = 0; j < shape.key_length; ++j)
        expected += weights[static_cast<std::size_t>(j)] / sum * value.view()(b, j, from, d);
      if (std::abs(expected - out.view()(b, i, h, d)) > 1e-5) return false;
    }
  }
  return true;
}

double visible_pairs(const Case& shape, const headlight::AttentionOptions& options) {
  double pairs = 0;
  for (std::int64_t i = 0; i < shape.query_length; ++i) {
    for (std::int64_t j = 0; j < shape.key_length; ++j)
      pairs += headlight::reference::visible(options, shape.query_length, shape.key_length, 0, 0, i, j);
  }
  return pairs * static_cast<double>(shape.batch * shape.query_heads);
}

void run(benchmark::State& state, const Case& shape, headlight::Isa isa, int threads) {
  headlight::EngineOptions engine_options;
  engine_options.isa = isa;
  engine_options.threads = threads;
  Engine engine(engine_options);
  const Tensor4 query(shape.batch, shape.query_length, shape.query_heads, shape.head_dim, shape.memory, 1);
  const Tensor4 key(shape.batch, shape.key_length, shape.key_value_heads, shape.head_dim, shape.memory, 2);
  const Tensor4 value(shape.batch, shape.key_length, shape.key_value_heads, shape.head_dim, shape.memory, 3);
  Tensor4 out(shape.batch, shape.query_length, shape.query_heads, shape.head_dim, shape.memory, 4);
  headlight::AttentionOptions options;
  options.causal = shape.causal;
  options.window.left = shape.left;
  headlight::attention(engine, query, key, value, out, options);
  if (!is_right(shape, options, query, key, value, out)) {
    state.SkipWithError("the result is wrong");
    return;
  }

  using Clock = std::chrono::steady_clock;
  double peak = headlight::bench::measure_fma_peak(isa, threads);
  double best = 1e9;
  for (auto step : state) {
    static_cast<void>(step);
    const auto start = Clock::now();
    headlight::attention(engine, query, key, value, out, options);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  peak = std::max(peak, headlight::bench::measure_fma_peak(isa, threads));
  const double operations = 4.0 * visible_pairs(shape, options) * static_cast<double>(shape.head_dim);
  state.counters["best_us"] = best * 1e6;
  state.counters["best_GFLOPS"] = operations / best * 1e-9;
  state.counters["peak_GFLOPS"] = peak;
  state.counters["best_share"] = operations / best * 1e-9 / peak;
  if (shape.query_length == 1) {
    const double bytes =
        8.0 * static_cast<double>(shape.batch * shape.key_length * shape.key_value_heads * shape.head_dim);
    state.counters["best_GBps"] = bytes / best * 1e-9;
  }
}

constexpr auto kFull = headlight::Causal::none;
constexpr auto kCausal = headlight::Causal::bottom_right;

constexpr Case kCases[] = {
    {"self", 1, 128, 128, 12, 12, 64},
    {"self", 1, 512, 512, 12, 12, 64},
    {"self", 1, 1024, 1024, 12, 12, 64},
    {"self", 1, 4096, 4096, 12, 12, 64},
    {"self", 1, 128, 128, 12, 12, 32},
    {"self", 1, 1024, 1024, 12, 12, 32},
    {"self", 1, 128, 128, 12, 12, 128},
    {"self", 1, 1024, 1024, 12, 12, 128},
    {"self", 1, 1000, 1000, 12, 12, 80},
    {"self", 32, 100, 100, 8, 8, 64},
    {"self", 1, 2048, 2048, 1, 1, 64},
    {"grouped", 1, 1024, 1024, 32, 8, 64},
    {"causal", 1, 128, 128, 12, 12, 64, kCausal},
    {"causal", 1, 512, 512, 12, 12, 64, kCausal},
    {"causal", 1, 1024, 1024, 12, 12, 64, kCausal},
    {"causal", 1, 4096, 4096, 12, 12, 64, kCausal},
    {"causal", 1, 1024, 1024, 12, 12, 128, kCausal},
    {"window", 1, 4096, 4096, 12, 12, 64, kCausal, 511},
    {"short", 1, 5, 5, 2, 2, 4},
    {"short", 1, 16, 16, 12, 12, 64},
    {"short", 1, 32, 32, 12, 12, 32},
    {"decode", 1, 1, 8192, 32, 32, 128, kFull, -1, Memory::by_head},
    {"decode", 1, 1, 8192, 32, 32, 128, kFull, -1, Memory::by_position},
    {"decode", 1, 1, 8192, 32, 8, 128, kFull, -1, Memory::by_head},
    {"decode", 1, 1, 1024, 12, 12, 64, kFull, -1, Memory::by_head},
};

std::string name_of(const Case& shape, headlight::Isa isa, int threads) {
  std::string name = std::string(headlight::name(isa)) + "/" + shape.name;
  if (shape.memory == Memory::by_head) name += "_by_head";
  name += "/B:" + std::to_string(shape.batch) + "/Lq:" + std::to_string(shape.query_length) +
          "/Lk:" + std::to_string(shape.key_length) + "/H:" + std::to_string(shape.query_heads) + ":" +
          std::to_string(shape.key_value_heads) + "/D:" + std::to_string(shape.head_dim);
  return name + "/threads:" + std::to_string(threads);
}

}  // namespace

int main(int argc, char** argv) {
  for (const headlight::Isa isa : headlight::available_isas()) {
    for (const Case& shape : kCases) {
      for (const int threads : {1, 2}) {
        benchmark::RegisterBenchmark(name_of(shape, isa, threads).c_str(), [&shape, isa,
                                                                            threads](benchmark::State& state) {
          run(state, shape, isa, threads);
        })->UseRealTime();
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
