// Matrix products: GFLOP/s, and the share of the multiply-add peak that this process measured around each of them.
//   gemm_bench [--benchmark_filter=packed]
#include "headlight/gemm.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "support/fma_peak.h"

namespace {

using headlight::Engine;
using headlight::PackedMatrix;
using headlight::Tensor;
using headlight::Transpose;

enum class Right { packed, rows, columns };

struct Case {
  const char* name;
  std::int64_t m, n, k;
  Right right = Right::packed;
  Transpose transpose_a = Transpose::no;
  headlight::Activation activation = headlight::Activation::none;
};

// Same numbers in every run; small integers over 8, so that products are exact and sums nearly so.
void fill(Tensor<float, 2>& tensor, std::uint32_t seed) {
  for (float& element : tensor) {
    seed = seed * 1664525u + 1013904223u;
    element = static_cast<float>(static_cast<int>(seed >> 28) - 8) / 8.0f;
  }
}

// Some elements against float64.
bool is_right(const Case& shape, const Tensor<float, 2>& a, const Tensor<float, 2>& b, const Tensor<float, 2>& c) {
  for (std::int64_t probe = 0; probe < 64; ++probe) {
    const std::int64_t m = (probe * 7919 + shape.m - 1) % shape.m;
    const std::int64_t n = (probe * 104729 + shape.n - 1) % shape.n;
    double sum = 0;
    double size = 0;
    for (std::int64_t k = 0; k < shape.k; ++k) {
      const double left = shape.transpose_a == Transpose::yes ? a(k, m) : a(m, k);
      const double right = shape.right == Right::columns ? b(n, k) : b(k, n);
      sum += left * right;
      size += std::abs(left * right);
    }
    if (shape.activation == headlight::Activation::gelu) sum *= std::erfc(-sum / std::sqrt(2.0)) / 2;
    if (std::abs(c(m, n) - sum) > 1e-5 * size + 1e-6) return false;
  }
  return true;
}

void run(benchmark::State& state, const Case& shape, headlight::Isa isa, int threads) {
  headlight::EngineOptions engine_options;
  engine_options.isa = isa;
  engine_options.threads = threads;
  Engine engine(engine_options);
  const bool transposed_a = shape.transpose_a == Transpose::yes;
  const bool transposed_b = shape.right == Right::columns;
  Tensor<float, 2> a({transposed_a ? shape.k : shape.m, transposed_a ? shape.m : shape.k});
  Tensor<float, 2> b({transposed_b ? shape.n : shape.k, transposed_b ? shape.k : shape.n});
  Tensor<float, 2> c({shape.m, shape.n});
  fill(a, 1);
  fill(b, 2);
  const PackedMatrix packed = shape.right == Right::packed ? PackedMatrix(engine, b) : PackedMatrix();
  headlight::GemmOptions options;
  options.transpose_a = shape.transpose_a;
  options.transpose_b = transposed_b ? Transpose::yes : Transpose::no;
  options.activation = shape.activation;
  const auto multiply = [&] {
    if (packed) {
      headlight::gemm(engine, a, packed, c, options);
    } else {
      headlight::gemm(engine, a, b, c, options);
    }
  };
  multiply();
  if (!is_right(shape, a, b, c)) {
    state.SkipWithError("the result is wrong");
    return;
  }

  using Clock = std::chrono::steady_clock;
  double peak = headlight::bench::measure_fma_peak(isa, threads);
  double best = 1e9;
  for (auto step : state) {
    static_cast<void>(step);
    const auto start = Clock::now();
    multiply();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  peak = std::max(peak, headlight::bench::measure_fma_peak(isa, threads));
  const double operations = 2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k);
  state.counters["GFLOPS"] = benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["best_GFLOPS"] = operations / best * 1e-9;
  state.counters["peak_GFLOPS"] = peak;
  state.counters["best_share"] = operations / best * 1e-9 / peak;
}

constexpr Case kCases[] = {
    {"packed", 512, 512, 512},
    {"packed", 128, 768, 768},
    {"packed", 256, 256, 256},
    {"packed", 1024, 1024, 1024},
    {"packed", 16, 768, 768},
    {"packed", 1, 768, 768},
    {"packed", 128, 384, 384},
    {"packed", 128, 1536, 384},
    {"packed", 128, 384, 1536},
    {"packed", 128, 768, 3072},
    {"packed", 100, 4096, 4096},
    {"packed_gelu", 128, 1536, 384, Right::packed, Transpose::no, headlight::Activation::gelu},
    {"rows", 512, 512, 512, Right::rows},
    {"rows", 128, 768, 768, Right::rows},
    {"rows", 16, 768, 768, Right::rows},
    {"rows", 1, 768, 768, Right::rows},
    {"rows", 1024, 64, 1024, Right::rows},
    {"rows", 8, 8, 8, Right::rows},
    {"columns", 512, 512, 512, Right::columns},
    {"columns", 128, 768, 768, Right::columns},
    {"columns", 1, 768, 768, Right::columns},
    {"columns", 1024, 1024, 64, Right::columns},
    {"transposed_a", 512, 512, 512, Right::packed, Transpose::yes},
    {"transposed_a", 1024, 1024, 1024, Right::packed, Transpose::yes},
    {"transposed_both", 768, 768, 512, Right::columns, Transpose::yes},
};

}  // namespace

int main(int argc, char** argv) {
  for (const headlight::Isa isa : headlight::available_isas()) {
    for (const Case& shape : kCases) {
      for (const int threads : {1, 2}) {
        const std::string name = std::string(headlight::name(isa)) + "/" + shape.name + "/" + std::to_string(shape.m) +
                                 "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k) +
                                 "/threads:" + std::to_string(threads);
        benchmark::RegisterBenchmark(name.c_str(), [&shape, isa, threads](benchmark::State& state) {
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
