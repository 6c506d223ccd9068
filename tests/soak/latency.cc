// soak_latency [CALLS]: how long a call takes that everybody waits for, at the median and in the worst of a thousand:
// an encoder of the shape of MiniLM-L6 on 16 tokens, one thread pinned to a core of its own, alone and beside a
// neighbour on another core. Figures for docs/performance.md; nothing passes or fails by them.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "headlight/gemm.h"
#include "headlight/layers.h"

namespace headlight::soak {
namespace {

constexpr EncoderOptions kMiniLm = {.vocabulary = 30522,
                                    .max_positions = 512,
                                    .token_types = 2,
                                    .width = 384,
                                    .heads = 12,
                                    .feed_forward_width = 1536,
                                    .layers = 6};
constexpr std::size_t kTokens = 16;

// The cores that this process may use.
std::vector<int> cores() {
  cpu_set_t set;
  std::vector<int> found;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return found;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) found.push_back(core);
  }
  return found;
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) std::fprintf(stderr, "the thread could not be pinned\n");
}

// Copies from end to end what no cache holds.
void copy_memory(const std::atomic<bool>& ended) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  const auto from = std::make_unique<char[]>(kBytes), to = std::make_unique<char[]>(kBytes);
  while (!ended) std::memcpy(to.get(), from.get(), kBytes);
}

// Computes what its own caches hold.
void multiply(const std::atomic<bool>& ended) {
  Engine engine({.threads = 1});
  Tensor<float, 2> a({128, 128}), b({128, 128}), c({128, 128});
  while (!ended) gemm(engine, a, b, c);
}

// Microseconds of each call, ascending: as the clock on the wall has them, and as the thread computed, without what
// other programs took of its core in between.
struct Times {
  std::vector<double> wall, computing;
};

double microseconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

Times measure(std::size_t calls) {
  Engine engine({.threads = 1});
  Encoder encoder(kMiniLm);
  encoder.initialize(1);
  std::vector<std::int64_t> ids, places, types(kTokens, 0);
  for (std::size_t n = 0; n < kTokens; ++n) {
    ids.push_back(static_cast<std::int64_t>(1000 + 37 * n));
    places.push_back(static_cast<std::int64_t>(n));
  }
  const std::vector<std::int64_t> ends = {0, kTokens};
  const EncoderInput input = {.ids = ids, .positions = places, .token_types = types, .offsets = ends};
  Tensor<float, 2> hidden({kTokens, kMiniLm.width});
  encoder.reserve(engine, kTokens);
  Times times;
  for (int warm = 0; warm < 100; ++warm) encoder.forward(engine, input, hidden);
  for (std::size_t n = 0; n < calls; ++n) {
    const double wall = microseconds(CLOCK_MONOTONIC), computing = microseconds(CLOCK_THREAD_CPUTIME_ID);
    encoder.forward(engine, input, hidden);
    times.computing.push_back(microseconds(CLOCK_THREAD_CPUTIME_ID) - computing);
    times.wall.push_back(microseconds(CLOCK_MONOTONIC) - wall);
  }
  for (auto* list : {&times.wall, &times.computing}) std::sort(list->begin(), list->end());
  return times;
}

void print_row(const char* name, const char* clock, const std::vector<double>& times) {
  const auto at = [&times](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  std::printf("| %s | %s | %.0f | %.0f | %.0f | %.0f | %.2f |\n", name, clock, at(0.5), at(0.99), at(0.999),
              times.back(), at(0.999) / at(0.5));
  std::fflush(stdout);
}

void print_rows(const char* name, const Times& times) {
  print_row(name, "wall", times.wall);
  print_row(name, "computing", times.computing);
}

void run_beside(const char* name, int core, void (*neighbour)(const std::atomic<bool>&), std::size_t calls) {
  std::atomic<bool> ended = false;
  std::thread thread([&] {
    pin_to(core);
    neighbour(ended);
  });
  print_rows(name, measure(calls));
  ended = true;
  thread.join();
}

}  // namespace
}  // namespace headlight::soak

int main(int count, char** arguments) {
  using namespace headlight::soak;
  const auto calls = static_cast<std::size_t>(count > 1 ? std::max(1000, std::atoi(arguments[1])) : 5000);
  const std::vector<int> found = cores();
  if (!found.empty()) pin_to(found.front());
  std::printf("| %zu calls | clock | p50 µs | p99 | p99.9 | most | p99.9 / p50 |\n|---|---|---|---|---|---|---|\n",
              calls);
  print_rows("alone", measure(calls));
  if (found.size() < 2) return 0;
  run_beside("beside products on another core", found[1], multiply, calls);
  run_beside("beside copies of 256 MiB on another core", found[1], copy_memory, calls);
}
