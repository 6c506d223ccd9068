// headlight-mpi study scale: how much faster more ranks are, how much of what travels is hidden, and what a rank holds.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headlight/attention_backward.h"
#include "headlight/tensor.h"
#include "tools/headlight/pictures/chart.h"
#include "tools/headlight/studies/study.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/quantity_text.h"
#include "tools/headlight/support/validators.h"
#include "tools/headlight_mpi/ranks.h"

namespace headlight::program {
namespace scale_study {
namespace {

struct Arguments {
  StudyArguments study;
  RankArguments ranks;
  std::int64_t length = 0;  // 0: by --quick
  std::int64_t heads = 4;
  std::int64_t head_dim = 64;
  int repeats = 3;
};

// Of the slowest rank.
struct Pass {
  double seconds = 0;
  double waiting = 0;  // of them, for rows to come
  double megabytes = 0;
  double late = 0;        // of them, what was not there when it was wanted
  double travelling = 0;  // the same call without its products: what travels, and nothing to hide it behind

  [[nodiscard]] double hidden() const { return megabytes <= 0 ? 1 : 1 - late / megabytes; }
};

struct Point {
  int ranks = 0;
  Pass forward, backward;
  std::string plan;
};

struct Study {
  Arguments arguments;
  AttentionShape whole;
  int threads = 1;
  std::string isa;
  double one_process_forward = 0, one_process_backward = 0;
  std::vector<Point> points;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Tensor<float, 4> filled(std::int64_t rows, const Study& study) {
  Tensor<float, 4> tensor({1, rows, study.whole.query_heads, study.whole.head_dim});
  std::uint32_t word = 1;
  for (float& element : tensor) {
    word = word * 1664525u + 1013904223u;
    element = static_cast<float>(word >> 8) * 0x1p-23f - 1;
  }
  return tensor;
}

// What a rank holds.
struct Tensors {
  Tensors(const Study& study, std::int64_t rows)
      : query(filled(rows, study)),
        key(filled(rows, study)),
        value(filled(rows, study)),
        out_gradient(filled(rows, study)),
        out(query.shape()),
        query_gradient(query.shape()),
        key_gradient(query.shape()),
        value_gradient(query.shape()),
        log_sum_exp({1, study.whole.query_heads, rows}) {}
  Tensor<float, 4> query, key, value, out_gradient, out, query_gradient, key_gradient, value_gradient;
  Tensor<float, 3> log_sum_exp;
};

// The best of some, number by number; of each, the slowest rank's.
template <class Call>
Pass measure(MPI_Comm ranks, int repeats, const Call& call) {
  Pass best;
  for (int n = 0; n < repeats; ++n) {
    MPI_Barrier(ranks);
    const mpi::Statistics done = call();
    double numbers[] = {done.seconds, done.waiting_seconds, done.bytes_late / 1e6, done.bytes_received / 1e6};
    MPI_Allreduce(MPI_IN_PLACE, numbers, 4, MPI_DOUBLE, MPI_MAX, ranks);
    if (n == 0) best = {.seconds = numbers[0], .waiting = numbers[1], .megabytes = numbers[3], .late = numbers[2]};
    best.seconds = std::min(best.seconds, numbers[0]);
    best.waiting = std::min(best.waiting, numbers[1]);
    best.late = std::min(best.late, numbers[2]);
  }
  return best;
}

Point run(MPI_Comm ranks, Engine& engine, const Study& study) {
  mpi::Group group(ranks, study.arguments.ranks.group());
  const mpi::Spread spread = study.arguments.ranks.spread();
  AttentionOptions options{.causal = Causal::top_left};
  const mpi::Plan plan = mpi::plan(study.whole, options, group.rank(), group.size(), spread);
  Tensors tensors(study, plan.query_rows);
  const auto forward = [&](const AttentionOptions& with) {
    AttentionOptions all = with;
    all.log_sum_exp = tensors.log_sum_exp;
    return measure(ranks, study.arguments.repeats, [&] {
      return mpi::attention(group, engine, study.whole, tensors.query, tensors.key, tensors.value, tensors.out, all,
                            spread);
    });
  };
  const auto backward = [&](const AttentionOptions& with) {
    return measure(ranks, study.arguments.repeats, [&] {
      return mpi::attention_backward(
          group, engine, study.whole, tensors.query, tensors.key, tensors.value, tensors.out, tensors.log_sum_exp,
          tensors.out_gradient, {tensors.query_gradient, tensors.key_gradient, tensors.value_gradient}, with, spread);
    });
  };
  Point point{.ranks = group.size(), .forward = {}, .backward = {}, .plan = plan.text()};
  point.forward = forward(options);
  point.backward = backward(options);
  // Keys that are padding travel, and nobody sees them.
  const std::vector<std::int64_t> no_keys = {0};
  options.key_lengths = no_keys;
  point.forward.travelling = forward(options).seconds;
  point.backward.travelling = backward(options).seconds;
  return point;
}

void run_one_process(Engine& engine, Study& study) {
  Tensors tensors(study, study.whole.query_length);
  AttentionOptions options{.causal = Causal::top_left, .log_sum_exp = tensors.log_sum_exp};
  for (int n = 0; n < study.arguments.repeats; ++n) {
    auto begin = std::chrono::steady_clock::now();
    attention(engine, tensors.query, tensors.key, tensors.value, tensors.out, options);
    const double forward = seconds_since(begin);
    begin = std::chrono::steady_clock::now();
    attention_backward(engine, tensors.query, tensors.key, tensors.value, tensors.out, tensors.log_sum_exp,
                       tensors.out_gradient, {tensors.query_gradient, tensors.key_gradient, tensors.value_gradient},
                       options);
    const double backward = seconds_since(begin);
    if (n == 0 || forward < study.one_process_forward) study.one_process_forward = forward;
    if (n == 0 || backward < study.one_process_backward) study.one_process_backward = backward;
  }
}

std::string at_right(const std::string& text, std::size_t width) { return padded_left(text, width); }

std::string row(const std::string& name, double seconds, double one_process, const Pass* pass) {
  return "  " + name + std::string(16 - std::min<std::size_t>(16, name.size()), ' ') +
         at_right(seconds_text(seconds), 12) + at_right(format("%.2f", one_process / seconds), 12) +
         at_right(pass == nullptr ? "-" : format("%.1f", pass->megabytes), 12) +
         at_right(pass == nullptr ? "-" : seconds_text(pass->travelling), 14) +
         at_right(pass == nullptr ? "-" : seconds_text(pass->waiting), 12) +
         at_right(pass == nullptr ? "-" : format("%.0f %%", 100 * pass->hidden()), 10) + "\n";
}

std::string table(const Study& study, const char* title, double one_process, Pass Point::*pass) {
  std::string text = std::string("\n") + title + "\n" + std::string(18, ' ') + at_right("seconds", 12) +
                     at_right("x one", 12) + at_right("MB a rank", 12) + at_right("travel alone", 14) +
                     at_right("waiting", 12) + at_right("hidden", 10) + "\n" +
                     row("one process", one_process, one_process, nullptr);
  for (const Point& point : study.points) {
    const std::string name = grouped(point.ranks) + (point.ranks == 1 ? " rank" : " ranks");
    text += row(name, (point.*pass).seconds, one_process, point.ranks == 1 ? nullptr : &(point.*pass));
  }
  return text;
}

std::string as_text(const Study& study) {
  std::string text = "Scale: attention over ranks, L = " + grouped(study.whole.query_length) + ", causal, " +
                     grouped(study.whole.query_heads) + " heads of " + grouped(study.whole.head_dim) + ", " +
                     grouped(study.threads) + (study.threads == 1 ? " thread" : " threads") + " a rank (" + study.isa +
                     ")\nThe best of " + std::to_string(study.arguments.repeats) +
                     ". \"Hidden\": the part of what travels that is there by the time it is wanted.\n";
  text += table(study, "Forward", study.one_process_forward, &Point::forward);
  text += table(study, "Backward (scores are computed twice: 14 operations for 10)", study.one_process_backward,
                &Point::backward);
  return text + "\nThe last: " + study.points.back().plan + "\n";
}

std::string as_json(const Study& study) {
  Json document;
  document["study"] = "scale";
  document["quick"] = study.arguments.study.quick;
  document["length"] = study.whole.query_length;
  document["heads"] = study.whole.query_heads;
  document["head_dim"] = study.whole.head_dim;
  document["threads"] = study.threads;
  document["isa"] = study.isa;
  document["one_process"] = {{"forward_seconds", study.one_process_forward},
                             {"backward_seconds", study.one_process_backward}};
  for (const Point& point : study.points) {
    const auto of = [](const Pass& pass) {
      return Json{{"seconds", pass.seconds},
                  {"waiting_seconds", pass.waiting},
                  {"travel_alone_seconds", pass.travelling},
                  {"hidden", pass.hidden()},
                  {"megabytes_received", pass.megabytes}};
    };
    Json entry;
    entry["ranks"] = point.ranks;
    entry["plan"] = point.plan;
    entry["forward"] = of(point.forward);
    entry["backward"] = of(point.backward);
    document["points"].push_back(std::move(entry));
  }
  return document.dump(2) + "\n";
}

std::string as_svg(const Study& study) {
  ChartPanel panel{.title = {},
                   .x = {.label = "ranks", .lowest = 0},
                   .y = {.label = "times as fast as one process", .lowest = 0},
                   .guides = {{"as many times as ranks", 1, 1, 1}}};
  for (const auto& [name, pass, one] : {std::tuple{"forward", &Point::forward, study.one_process_forward},
                                        std::tuple{"backward", &Point::backward, study.one_process_backward}}) {
    ChartLine line{name};
    for (const Point& point : study.points) {
      line.points.push_back({static_cast<double>(point.ranks), one / (point.*pass).seconds});
    }
    panel.lines.push_back(std::move(line));
  }
  return chart_svg({.title = "Attention over ranks",
                    .subtitle = "L = " + grouped(study.whole.query_length) + ", causal, the same bits at any number",
                    .panels = {panel},
                    .columns = 1,
                    .note = grouped(study.threads) + (study.threads == 1 ? " thread" : " threads") + " a rank, " +
                            study.isa + "; backward, scores are computed twice."});
}

void run(const Arguments& arguments) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Engine engine(arguments.study.engine.options());
  const std::int64_t length = arguments.length > 0 ? arguments.length : arguments.study.quick ? 2048 : 16384;
  Study study{.arguments = arguments,
              .whole = {.query_length = length,
                        .key_length = length,
                        .query_heads = arguments.heads,
                        .key_value_heads = arguments.heads,
                        .head_dim = arguments.head_dim,
                        .value_dim = arguments.head_dim},
              .threads = engine.threads(),
              .isa = std::string(name(engine.isa())),
              .points = {}};
  if (rank == 0) run_one_process(engine, study);
  for (int ranks = 1; ranks <= size; ++ranks) {
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &some);
    if (some == MPI_COMM_NULL) continue;
    study.points.push_back(run(some, engine, study));
    MPI_Comm_free(&some);
  }
  if (rank == 0) arguments.study.give(as_text(study), as_json(study), [&] { return as_svg(study); });
}

}  // namespace
}  // namespace scale_study

void add_study_scale(Command& study) {
  using namespace scale_study;
  Command command =
      study.add_subcommand("scale", "How much faster more ranks are, and what of the transfers is hidden");
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("--length", arguments->length, "Rows and keys (default: 16384, with --quick 2048)")
      .type_name("L")
      .check(at_least(1));
  command.add_option("--heads", arguments->heads, "Heads (default: 4)").type_name("H").check(between(1, 1024));
  command.add_option("--head-dim", arguments->head_dim, "Of each head (default: 64)")
      .type_name("D")
      .check(between(1, 1024));
  command.add_option("--repeats", arguments->repeats, "Of which the best counts (default: 3)")
      .type_name("N")
      .check(between(1, 1000));
  arguments->ranks.add_to(command);
  arguments->study.add_to(command);
  command.example("--quick",
                  "Started as: mpirun -n 4 headlight-mpi study scale. Every number of ranks up to 4 is measured.");
  command.callback([arguments] { run(*arguments); });
}

}  // namespace headlight::program
