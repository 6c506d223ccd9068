// A whole encoder of MiniLM's shape (6 layers, width 384, 12 heads of 32) with seeded weights: milliseconds a batch,
// GFLOP/s of its products and the share of the multiply-add peak measured around each case.
//   encoder_bench [--benchmark_filter=avx512]
#include "headlight/layers/encoder.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "layers/encoder_twin.h"
#include "support/fma_peak.h"

namespace {

using headlight::Encoder;
using headlight::Tensor;
using headlight::test::Tokens;

constexpr headlight::EncoderOptions kMiniLm{.vocabulary = 30522,
                                            .max_positions = 512,
                                            .token_types = 2,
                                            .width = 384,
                                            .heads = 12,
                                            .feed_forward_width = 1536,
                                            .layers = 6};

struct Case {
  std::int64_t batch, length;
};

constexpr Case kCases[] = {{1, 8}, {1, 16}, {1, 32}, {1, 128}, {1, 512}, {32, 128}};

Tokens tokens_of(const Case& shape) {
  headlight::test::Random random(1);
  return {random, kMiniLm.vocabulary, std::vector<std::int64_t>(static_cast<std::size_t>(shape.batch), shape.length)};
}

// The first sequence against float64, computed once for each length. Six layers of float32 rounding stay far below 1e-4
// of a normalised row, and a wrong weight or head does not.
bool is_right(const Encoder& encoder, const Case& shape, const Tokens& tokens, const Tensor<float, 2>& hidden) {
  static std::map<std::int64_t, Tensor<double, 3>> truths;
  if (!truths.contains(shape.length))
    truths.emplace(shape.length, headlight::test::encoder_twin<double>(encoder, tokens.only(0)));
  const Tensor<double, 3>& truth = truths.at(shape.length);
  for (std::int64_t n = 0; n < truth.size(); ++n) {
    if (!(std::abs(hidden.data()[n] - truth.data()[n]) < 1e-4)) return false;
  }
  return true;
}

// Two for each multiply-add of projections, feed-forward and attention.
double operations_of(const Case& shape) {
  const auto tokens = static_cast<double>(shape.batch * shape.length);
  const auto width = static_cast<double>(kMiniLm.width);
  const double layer = 2 * width * (4 * width + 2 * static_cast<double>(kMiniLm.feed_forward_width)) +
                       4 * static_cast<double>(shape.length) * width;
  return tokens * layer * static_cast<double>(kMiniLm.layers);
}

void run(benchmark::State& state, const Encoder& encoder, const Case& shape, headlight::Isa isa, int threads) {
  headlight::EngineOptions engine_options;
  engine_options.isa = isa;
  engine_options.threads = threads;
  headlight::Engine engine(engine_options);
  const Tokens tokens = tokens_of(shape);
  Tensor<float, 2> hidden({tokens.count(), kMiniLm.width});
  encoder.forward(engine, tokens.input(), hidden);
  if (!is_right(encoder, shape, tokens, hidden)) {
    state.SkipWithError("the result is wrong");
    return;
  }

  using Clock = std::chrono::steady_clock;
  double peak = headlight::bench::measure_fma_peak(isa, threads);
  double best = 1e9;
  for (auto step : state) {
    static_cast<void>(step);
    const auto start = Clock::now();
    encoder.forward(engine, tokens.input(), hidden);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  peak = std::max(peak, headlight::bench::measure_fma_peak(isa, threads));
  const double rate = operations_of(shape) / best * 1e-9;
  state.counters["best_ms"] = best * 1e3;
  state.counters["best_GFLOPS"] = rate;
  state.counters["peak_GFLOPS"] = peak;
  state.counters["best_share"] = rate / peak;
}

}  // namespace

int main(int argc, char** argv) {
  Encoder encoder(kMiniLm);
  encoder.initialize(1);
  for (const headlight::Isa isa : headlight::available_isas()) {
    for (const Case& shape : kCases) {
      for (const int threads : {1, 2}) {
        const std::string name = std::string(headlight::name(isa)) + "/" + std::to_string(shape.batch) + "x" +
                                 std::to_string(shape.length) + "/threads:" + std::to_string(threads);
        benchmark::RegisterBenchmark(name.c_str(), [&encoder, &shape, isa, threads](benchmark::State& state) {
          run(state, encoder, shape, isa, threads);
        })->UseRealTime();
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
