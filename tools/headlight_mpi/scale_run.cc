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
#include "headlight/tensor.h"
#include "tools/headlight/support/resident_memory.h"
#include "tools/headlight_mpi/scale.h"

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

 private:
  static constexpr double kSlack = 1 << 18;  // pages that come while it is read

  static double bytes(const std::string& name) {
    const std::optional<std::int64_t> found = resident_bytes(name);
    return found ? static_cast<double>(*found) : std::numeric_limits<double>::quiet_NaN();
  }

  double begin_;
};

// Numbers from −1 to 1 that every rank can work out for every token.
enum class Kind : std::uint64_t { query, key, value, out_gradient };
float number(Kind kind, std::int64_t token, std::int64_t head, std::int64_t dim) {
  std::uint64_t bits = static_cast<std::uint64_t>(token) << 32 ^ static_cast<std::uint64_t>(head) << 16 ^
                       static_cast<std::uint64_t>(dim) << 2 ^ static_cast<std::uint64_t>(kind);
  // SplitMix64's last steps (Steele, Lea & Flood 2014).
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return static_cast<float>((bits ^ bits >> 31) >> 40) * 0x1p-23f - 1;
}

Tensor<float, 4> filled(Kind kind, const std::vector<mpi::Run>& runs, std::int64_t rows, const AttentionShape& whole) {
  Tensor<float, 4> tensor({1, rows, whole.query_heads, whole.head_dim});
  float* to = tensor.data();
  for (const mpi::Run& run : runs) {
    for (std::int64_t token = run.first; token < run.first + run.count; ++token) {
      for (std::int64_t head = 0; head < whole.query_heads; ++head) {
        for (std::int64_t dim = 0; dim < whole.head_dim; ++dim) *to++ = number(kind, token, head, dim);
      }
    }
  }
  return tensor;
}

// Row `token` of the whole, from all the keys before it, in float64.
std::vector<double> expected_row(const AttentionShape& whole, std::int64_t token, std::int64_t head) {
  std::vector<double> sums(static_cast<std::size_t>(whole.head_dim));
  const double scale = 1 / std::sqrt(static_cast<double>(whole.head_dim));
  double all = 0;
  for (std::int64_t key = 0; key <= token; ++key) {
    double score = 0;
    for (std::int64_t dim = 0; dim < whole.head_dim; ++dim) {
      score += static_cast<double>(number(Kind::query, token, head, dim)) *
               static_cast<double>(number(Kind::key, key, head, dim));
    }
    const double weight = std::exp(scale * score);
    all += weight;
    for (std::int64_t dim = 0; dim < whole.head_dim; ++dim) {
      sums[static_cast<std::size_t>(dim)] += weight * static_cast<double>(number(Kind::value, key, head, dim));
    }
  }
  for (double& sum : sums) sum /= all;
  return sums;
}

// The first row and the last. Values are at most 1, scores √D: a rounding for each term of a score, which a weight
// takes as its own relative error, and one for each of the keys that lie in a lane of a block, and for each block.
// Gives what is wrong, or nothing.
std::string problem_of_rows(const AttentionShape& whole, const std::vector<mpi::Run>& runs,
                            const Tensor<float, 4>& out) {
  constexpr double kEpsilon = 0x1p-23, kKeysOfLane = 512;
  if (runs.empty()) return {};
  const double head_dim = static_cast<double>(whole.head_dim);
  for (const bool is_last : {false, true}) {
    const std::int64_t row = is_last ? out.shape()[1] - 1 : 0;
    const std::int64_t token = is_last ? runs.back().first + runs.back().count - 1 : runs.front().first;
    const double furthest =
        kEpsilon * (2 * head_dim * std::sqrt(head_dim) + kKeysOfLane + static_cast<double>(token) / 128);
    for (std::int64_t head = 0; head < whole.query_heads; ++head) {
      const std::vector<double> expected = expected_row(whole, token, head);
      for (std::int64_t dim = 0; dim < whole.head_dim; ++dim) {
        const double error = static_cast<double>(out(0, row, head, dim)) - expected[static_cast<std::size_t>(dim)];
        if (!(std::abs(error) <= furthest)) return "row " + std::to_string(token) + " of out is not what float64 gives";
      }
    }
  }
  return {};
}

// What a call needs, made as soon as it does.
struct Tensors {
  Tensors(const AttentionShape& whole_, const std::vector<mpi::Run>& runs_, std::int64_t rows_)
      : whole(whole_),
        runs(runs_),
        rows(rows_),
        query(filled(Kind::query, runs, rows, whole)),
        key(filled(Kind::key, runs, rows, whole)),
        value(filled(Kind::value, runs, rows, whole)),
        out(query.shape()),
        log_sum_exp({1, whole.query_heads, rows}) {}
  void add_gradients() {
    out_gradient = filled(Kind::out_gradient, runs, rows, whole);
    key_gradient = Tensor<float, 4>(key.shape());
    value_gradient = Tensor<float, 4>(value.shape());
    query_gradient = Tensor<float, 4>(query.shape());
  }

  AttentionShape whole;
  std::vector<mpi::Run> runs;
  std::int64_t rows;
  Tensor<float, 4> query, key, value, out;
  Tensor<float, 3> log_sum_exp;
  Tensor<float, 4> out_gradient{}, query_gradient{}, key_gradient{}, value_gradient{};
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
  const mpi::Spread spread = study.arguments.ranks.spread();
  AttentionOptions options{.causal = Causal::top_left};
  const mpi::Plan plan = mpi::plan(study.whole, options, group.rank(), group.size(), spread);
  Tensors tensors(study.whole, plan.queries, plan.query_rows);
  const auto forward = [&](const AttentionOptions& with) {
    AttentionOptions all = with;
    all.log_sum_exp = tensors.log_sum_exp;
    return best_of(ranks, study.arguments.repeats, [&] {
      return mpi::attention(group, engine, study.whole, tensors.query, tensors.key, tensors.value, tensors.out, all,
                            spread);
    });
  };
  const auto backward = [&](const AttentionOptions& with) {
    return best_of(ranks, study.arguments.repeats, [&] {
      return mpi::attention_backward(
          group, engine, study.whole, tensors.query, tensors.key, tensors.value, tensors.out, tensors.log_sum_exp,
          tensors.out_gradient, {tensors.query_gradient, tensors.key_gradient, tensors.value_gradient}, with, spread);
    });
  };
  Point point{.ranks = group.size(), .forward = {}, .backward = {}, .plan = plan.text()};
  point.forward = forward(options);
  point.forward.memory = most_of_all(ranks, memory.megabytes());
  mpi::agree(group, problem_of_rows(study.whole, plan.queries, tensors.out));
  tensors.add_gradients();
  point.backward = backward(options);
  point.backward.memory = most_of_all(ranks, memory.megabytes());
  // Keys that are padding travel, and nobody sees them.
  const std::vector<std::int64_t> no_keys = {0};
  options.key_lengths = no_keys;
  point.forward.travelling = forward(options).seconds;
  point.backward.travelling = backward(options).seconds;
  return point;
}

void run_one_process(Study& study) {
  const Memory memory;
  Engine engine(study.arguments.study.engine.options());
  const std::int64_t length = study.whole.query_length;
  Tensors tensors(study.whole, {{0, length}}, length);
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
  study.one_process_forward =
      best([&] { attention(engine, tensors.query, tensors.key, tensors.value, tensors.out, options); });
  tensors.add_gradients();
  study.one_process_backward = best([&] {
    attention_backward(engine, tensors.query, tensors.key, tensors.value, tensors.out, tensors.log_sum_exp,
                       tensors.out_gradient, {tensors.query_gradient, tensors.key_gradient, tensors.value_gradient},
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
