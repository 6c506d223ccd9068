// What headlight-mpi study scale measures: seconds, bytes, and memory.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "headlight/attention_backward.h"
#include "tools/headlight/support/resident_memory.h"
#include "tools/headlight_mpi/scale.h"
#include "tools/headlight_mpi/scale_check.h"
#include "tools/headlight_mpi/scale_tensors.h"

namespace headlight::program::scale_study {
namespace {

constexpr double kMegabyte = 1e6;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The most that is resident from now on, beyond what is now (proc(5)); NaN where the system does not begin anew.
class Memory {
 public:
  Memory() {
    std::ofstream("/proc/self/clear_refs") << "5" << std::flush;
    const double now = bytes("VmRSS");
    begin_ = bytes("VmHWM") <= now + kSlack ? now : std::numeric_limits<double>::quiet_NaN();
  }
  [[nodiscard]] double megabytes() const { return (bytes("VmHWM") - begin_) / kMegabyte; }
  // With what was before.
  [[nodiscard]] double megabytes_in_all() const { return std::isnan(begin_) ? begin_ : bytes("VmHWM") / kMegabyte; }

 private:
  static constexpr double kSlack = 1 << 18;  // pages that come while it is read

  static double bytes(const std::string& name) {
    const std::optional<std::int64_t> found = resident_bytes(name);
    return found ? static_cast<double>(*found) : std::numeric_limits<double>::quiet_NaN();
  }

  double begin_;
};

// The best of some, number by number; of each, the slowest rank's.
template <class Call>
Pass best_of(MPI_Comm ranks, int repeats, const Call& call) {
  Pass best;
  for (int n = 0; n < repeats; ++n) {
    MPI_Barrier(ranks);
    const mpi::Statistics done = call();
    double numbers[] = {done.seconds, done.waiting_seconds, done.bytes_late / kMegabyte,
                        done.bytes_received / kMegabyte};
    MPI_Allreduce(MPI_IN_PLACE, numbers, 4, MPI_DOUBLE, MPI_MAX, ranks);
    if (n == 0) best = {.seconds = numbers[0], .waiting = numbers[1], .megabytes = numbers[3], .late = numbers[2]};
    best.seconds = std::min(best.seconds, numbers[0]);
    best.waiting = std::min(best.waiting, numbers[1]);
    best.late = std::min(best.late, numbers[2]);
  }
  return best;
}

double most_of_all(MPI_Comm ranks, double number) {
  MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_DOUBLE, MPI_MAX, ranks);
  return number;
}

Point run(MPI_Comm ranks, const Study& study) {
  const Memory memory;
  Engine engine(study.arguments.study.engine.options());
  mpi::Group group(ranks, study.arguments.ranks.group());
  const mpi::Spread spread = study.arguments.spread();
  AttentionOptions options{.causal = Causal::top_left};
  const mpi::Plan plan = mpi::plan(study.whole, options, group.rank(), group.size(), spread);
  Tensors tensors(study.whole, study.arguments.number_type(), plan.queries, plan.query_rows);
  const auto forward = [&](const AttentionOptions& with) {
    AttentionOptions all = with;
    all.log_sum_exp = tensors.log_sum_exp;
    return best_of(ranks, study.arguments.repeats, [&] {
      return mpi::attention(group, engine, study.whole, tensors.query.view(), tensors.key.view(), tensors.value.view(),
                            tensors.out.view(), all, spread);
    });
  };
  const auto backward = [&](const AttentionOptions& with) {
    return best_of(ranks, study.arguments.repeats, [&] {
      return mpi::attention_backward(
          group, engine, study.whole, tensors.query.view(), tensors.key.view(), tensors.value.view(),
          tensors.out.view(), tensors.log_sum_exp, tensors.out_gradient.view(),
          {tensors.query_gradient.view(), tensors.key_gradient.view(), tensors.value_gradient.view()}, with, spread);
    });
  };
  Point point{.ranks = group.size(), .forward = {}, .backward = {}, .plan = plan.text()};
  point.forward = forward(options);
  point.forward.memory = most_of_all(ranks, memory.megabytes());
  mpi::agree(group, problem_of_forward(tensors));
  tensors.add_gradients();
  point.backward = backward(options);
  point.backward.memory = most_of_all(ranks, memory.megabytes());
  point.resident = most_of_all(ranks, memory.megabytes_in_all());
  mpi::agree(group, problem_of_backward(tensors, ranks));
  // Keys that are padding are sent, and no row attends to them.
  const std::vector<std::int64_t> no_keys = {0};
  options.key_lengths = no_keys;
  point.forward.transfers = forward(options).seconds;
  point.backward.transfers = backward(options).seconds;
  return point;
}

void run_one_process(Study& study) {
  const Memory memory;
  Engine engine(study.arguments.study.engine.options());
  const std::int64_t length = study.whole.query_length;
  Tensors tensors(study.whole, study.arguments.number_type(), {{0, length}}, length);
  AttentionOptions options{.causal = Causal::top_left, .log_sum_exp = tensors.log_sum_exp};
  const auto best = [&](const auto& call) {
    Pass pass{.seconds = std::numeric_limits<double>::infinity()};
    for (int n = 0; n < study.arguments.repeats; ++n) {
      const auto begin = std::chrono::steady_clock::now();
      call();
      pass.seconds = std::min(pass.seconds, seconds_since(begin));
    }
    pass.memory = memory.megabytes();
    return pass;
  };
  study.one_process_forward = best([&] {
    attention(engine, tensors.query.view(), tensors.key.view(), tensors.value.view(), tensors.out.view(), options);
  });
  tensors.add_gradients();
  study.one_process_backward = best([&] {
    attention_backward(engine, tensors.query.view(), tensors.key.view(), tensors.value.view(), tensors.out.view(),
                       tensors.log_sum_exp, tensors.out_gradient.view(),
                       {tensors.query_gradient.view(), tensors.key_gradient.view(), tensors.value_gradient.view()},
                       options);
  });
}

}  // namespace

void measure(Study& study) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool alone = study.arguments.all_ranks_alone;
  if (rank == 0 && !alone) run_one_process(study);
  for (int ranks = alone ? size : 1; ranks <= size; ++ranks) {
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &some);
    if (some == MPI_COMM_NULL) continue;
    study.points.push_back(run(some, study));
    MPI_Comm_free(&some);
  }
}

}  // namespace headlight::program::scale_study
