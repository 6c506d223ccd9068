// What headlight-mpi study scale foretells: hundreds of ranks, by the estimate that mpi::plan() chooses by.
#include <algorithm>
#include <array>

#include "tools/headlight_mpi/scale.h"

namespace headlight::program::scale_study {
namespace {

constexpr int kMostRanks = 1024;
constexpr std::array kGigabits = {1.0, 10.0, 100.0};
constexpr double kBytesOfGigabit = 1e9 / 8;
const AttentionOptions kCausal = {.causal = Causal::top_left};

double operations_of_rank(const AttentionShape& whole, int ranks) {
  return mpi::plan(whole, kCausal, 0, ranks, {.head_ranks = 1, .flops_per_second = 1}).product_seconds;
}

}  // namespace

const Forecast& Network::last_worthwhile() const {
  constexpr double kWorthwhile = 0.9;
  std::size_t n = 0;
  while (n + 1 < forecasts.size() && forecasts[n + 1].seconds <= kWorthwhile * forecasts[n].seconds) ++n;
  return forecasts[n];
}

void foretell(Study& study) {
  const Point& last = study.points.back();
  study.operations_per_second = study.one_process_forward
                                    ? operations_of_rank(study.whole, 1) / study.one_process_forward->seconds
                                    : operations_of_rank(study.whole, last.ranks) / last.forward.seconds;
  study.far = study.whole;
  study.far.query_length = study.far.key_length = study.arguments.far_length;
  for (const double gigabits : kGigabits) {
    Network network{.gigabits = gigabits};
    const mpi::Spread spread = {.flops_per_second = study.operations_per_second,
                                .bytes_per_second = gigabits * kBytesOfGigabit,
                                .bytes_per_number = study.arguments.spread().bytes_per_number};
    for (int ranks = 1; ranks <= kMostRanks; ranks *= 2) {
      const mpi::Plan plan = mpi::plan(study.far, kCausal, 0, ranks, spread);
      const double seconds = std::max(plan.product_seconds, plan.hidden_seconds) + plan.exchanged_seconds;
      network.forecasts.push_back({ranks, seconds, plan.product_seconds, seconds - plan.product_seconds});
    }
    study.networks.push_back(std::move(network));
  }
}

}  // namespace headlight::program::scale_study
