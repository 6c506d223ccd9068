// headlight study heads: what changes, and what does not, when a layer of one width is split into more heads.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "headlight/layers.h"
#include "tools/headlight/pictures/chart.h"
#include "tools/headlight/studies/study.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/repeated_times.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace heads_study {
namespace {

constexpr std::int64_t kNarrowest = 4;  // width of a head
constexpr int kRuns = 5;                // of each draw, of which the fastest counts: others had company

struct Arguments {
  StudyArguments study;
  std::int64_t width = 0, length = 0;  // 0: what the size asks for
  std::uint64_t seed = 1;
};

struct Plan {
  explicit Plan(const Arguments& arguments)
      : quick(arguments.study.quick),
        width(arguments.width > 0 ? arguments.width
              : quick             ? 128
                                  : 512),
        length(arguments.length > 0 ? arguments.length
               : quick              ? 128
                                    : 1024),
        draws(quick ? 3 : 5),
        seed(arguments.seed) {}

  [[nodiscard]] std::vector<std::int64_t> heads() const {
    std::vector<std::int64_t> counts;
    for (std::int64_t count = 1; width / count >= kNarrowest && width % count == 0; count *= 2) counts.push_back(count);
    return counts;
  }

  bool quick;
  std::int64_t width, length;
  int draws;  // of weights and inputs
  std::uint64_t seed;
};

// A value and how far it went.
struct Spread {
  double middle = 0, low = 0, high = 0;
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

struct Row {
  std::int64_t heads = 0;
  std::int64_t parameters = 0;
  Spread variance{}, unscaled{};              // of the output; with scores that are not divided by √D
  Spread forward{}, backward{};               // seconds
  double kept = 0, scratch = 0, weights = 0;  // bytes: for backward; while computing; of weights written out
  bool busy = false;                          // runs of one of the times disagree
};

double variance_of(const Tensor<float, 3>& x) {
  double sum = 0, squares = 0;
  for (const float value : x) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const auto count = static_cast<double>(x.size());
  return squares / count - sum / count * (sum / count);
}

// Of the fastest run; `busy` becomes true where they disagree.
template <class Work>
double seconds_of(Work work, bool& busy) {
  RepeatedTimes times;
  for (int run = 0; run < kRuns; ++run) times.run(work);
  busy = busy || times.disagree();
  return times.best();
}

Row try_out(Engine& engine, const Plan& plan, std::int64_t heads) {
  const Tensor<float, 3>::Shape shape = {1, plan.length, plan.width};
  Tensor<float, 3> x(shape), y(shape), gradient(shape), x_gradient(shape);
  MultiHeadAttention layer({.width = plan.width, .heads = heads});
  Row row{.heads = heads, .parameters = layer.parameter_count()};
  std::vector<double> scaled, unscaled, forward, backward;
  SavedState saved;
  for (int draw = 0; draw < plan.draws; ++draw) {
    const std::uint64_t seed = plan.seed * 1000003 + static_cast<std::uint64_t>(draw);
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    for (float& value : x) value = normal(random);
    for (float& value : gradient) value = normal(random);
    layer.set_training(false);
    layer.initialize(seed);
    layer.forward(engine, x, x, x, y, {.scale = 1.0f});
    unscaled.push_back(variance_of(y));
    layer.forward(engine, x, x, x, y);
    scaled.push_back(variance_of(y));
    layer.set_training(true);
    layer.forward(engine, x, x, x, y, saved, {});  // warm
    layer.backward(engine, x, x, x, saved, gradient, {.query = x_gradient});
    forward.push_back(seconds_of([&] { layer.forward(engine, x, x, x, y, saved, {}); }, row.busy));
    backward.push_back(
        seconds_of([&] { layer.backward(engine, x, x, x, saved, gradient, {.query = x_gradient}); }, row.busy));
  }
  row.variance = spread_of(scaled);
  row.unscaled = spread_of(unscaled);
  row.forward = spread_of(forward);
  row.backward = spread_of(backward);
  row.kept = static_cast<double>(saved.bytes());
  row.scratch =
      static_cast<double>(layer.workspace_bytes(engine, {.query_length = plan.length, .key_length = plan.length}));
  row.weights = 4.0 * static_cast<double>(heads) * static_cast<double>(plan.length) * static_cast<double>(plan.length);
  return row;
}

std::string as_text(const Plan& plan, const std::vector<Row>& rows) {
  std::string text = "Heads: what splitting a layer costs\n";
  text += "MultiHeadAttention of width " + grouped(plan.width) + " over " + grouped(plan.length) +
          " tokens; Xavier weights, inputs of variance 1, the middle of " + std::to_string(plan.draws) +
          " draws, of each the\nfastest of " + std::to_string(kRuns) + " runs." +
          (plan.quick ? " Quick: a small layer.\n\n" : "\n\n");
  text += at_right("", 17) + at_right("", 12) + at_right("variance of the output", 28) + at_right("time", 20) +
          at_right("memory", 32) + "\n";
  text += at_right("heads", 6) + at_right("their width", 13) + at_right("parameters", 12) + at_right("at first", 14) +
          at_right("without 1/√D", 14) + at_right("forward", 10) + at_right("backward", 10) + at_right("kept", 10) +
          at_right("scratch", 10) + at_right("L × L weights", 15) + "\n";
  for (const Row& row : rows) {
    text += at_right(grouped(row.heads), 6) + at_right(grouped(plan.width / row.heads), 13) +
            at_right(grouped(row.parameters), 12) + at_right(number_text(row.variance.middle), 14) +
            at_right(number_text(row.unscaled.middle), 14) + at_right(seconds_text(row.forward.middle), 10) +
            at_right(seconds_text(row.backward.middle), 10) + at_right(bytes_text(row.kept), 10) +
            at_right(bytes_text(row.scratch), 10) + at_right(bytes_text(row.weights), 15) + "\n";
  }
  const auto [least, most] = std::minmax_element(
      rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.variance.middle < b.variance.middle; });
  text += "\nParameters do not change: H heads of width E/H have 3 · E · E together, and W_O has E · E.\n";
  text += "The output's variance hardly does: it lies between " + number_text(least->variance.middle) + " and " +
          number_text(most->variance.middle) + ". 1/√D keeps scores as large whatever the width D of\n" +
          "a head is; without it, wide heads would look at one word alone from the start.\n";
  text +=
      "Time: as many multiply-adds whatever H is, but an exponential for each of H · L² weights, and narrow heads "
      "fill vectors\nless well.\n";
  return text +
         "Memory: what is kept for backward is L numbers for every column and, for every head, one more; weights "
         "written "
         "out\nwould be H · L².\n" +
         note_of_busy(std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.busy; }));
}

std::string as_json(const Plan& plan, const std::vector<Row>& rows) {
  const auto spread = [](const Spread& value) {
    return Json{{"median", value.middle}, {"least", value.low}, {"most", value.high}};
  };
  Json document;
  document["study"] = "heads";
  document["quick"] = plan.quick;
  document["seed"] = plan.seed;
  document["draws"] = plan.draws;
  document["width"] = plan.width;
  document["length"] = plan.length;
  for (const Row& row : rows) {
    document["rows"].push_back({{"heads", row.heads},
                                {"head_dim", plan.width / row.heads},
                                {"parameters", row.parameters},
                                {"output_variance", spread(row.variance)},
                                {"output_variance_unscaled", spread(row.unscaled)},
                                {"forward_seconds", spread(row.forward)},
                                {"backward_seconds", spread(row.backward)},
                                {"kept_bytes", row.kept},
                                {"scratch_bytes", row.scratch},
                                {"weight_bytes", row.weights}});
  }
  return document.dump(2) + "\n";
}

template <class Value>
ChartLine line_of(const std::string& label, const std::vector<Row>& rows, Value value) {
  ChartLine line{label};
  for (const Row& row : rows) {
    const Spread spread = value(row);
    line.points.push_back({static_cast<double>(row.heads), spread.middle, spread.low, spread.high});
  }
  return line;
}

double step_seconds(const Row& row) { return row.forward.middle + row.backward.middle; }

// What the panels show, with their figures.
std::string subtitle_of(const std::vector<Row>& rows) {
  const auto by_time = [](const Row& a, const Row& b) { return step_seconds(a) < step_seconds(b); };
  const auto by_variance = [](const Row& a, const Row& b) { return a.variance.middle < b.variance.middle; };
  const auto [fastest, slowest] = std::minmax_element(rows.begin(), rows.end(), by_time);
  const auto [least, most] = std::minmax_element(rows.begin(), rows.end(), by_variance);
  return "Parameters stay; the output's variance goes from " + number_text(least->variance.middle) + " to " +
         number_text(most->variance.middle) + ", forward and backward together from " +
         seconds_text(step_seconds(*fastest)) + " (" + counted(fastest->heads, "head") + ") to " +
         seconds_text(step_seconds(*slowest)) + " (" + grouped(slowest->heads) + ")";
}

// The top of the panel of times. A band may go beyond: one draw that had company must not flatten the lines.
constexpr double kTopOfTimes = 1.2;
double top_of_times(const std::vector<Row>& rows) {
  double most = 0;
  for (const Row& row : rows) most = std::max({most, row.forward.middle, row.backward.middle});
  return kTopOfTimes * most;
}

Spread exactly(double value) { return {value, kNotGiven, kNotGiven}; }

std::string as_svg(const Plan& plan, const std::vector<Row>& rows) {
  const ChartAxis heads{.label = "heads", .scale = ChartScale::binary};
  const ChartAxis bytes{.label = "bytes", .scale = ChartScale::binary, .text = &bytes_text};
  Chart chart{.title = "More heads at one width",
              .subtitle = subtitle_of(rows),
              .note = "Width " + grouped(plan.width) + ", " + grouped(plan.length) + " tokens; the middle of " +
                      std::to_string(plan.draws) + " draws, of each the fastest of " + std::to_string(kRuns) +
                      " runs; bands from the least to the most, cut at " + number_text(kTopOfTimes) +
                      " of the slowest middle"};
  chart.panels = {
      {.title = "Variance of the output at initialisation",
       .x = heads,
       .y = {.label = "variance", .scale = ChartScale::logarithmic},
       .lines = {line_of("scores / √D", rows, [](const Row& row) { return row.variance; }),
                 line_of("scores not divided", rows, [](const Row& row) { return row.unscaled; })}},
      {.title = "Parameters",
       .x = heads,
       .y = {.label = "parameters"},
       .lines = {line_of("parameters", rows,
                         [](const Row& row) { return exactly(static_cast<double>(row.parameters)); })}},
      {.title = "Time",
       .x = heads,
       .y = {.label = "seconds", .text = &seconds_text, .highest = top_of_times(rows)},
       .lines = {line_of("forward", rows, [](const Row& row) { return row.forward; }),
                 line_of("backward", rows, [](const Row& row) { return row.backward; })}},
      {.title = "Memory",
       .x = heads,
       .y = bytes,
       .lines = {line_of("kept for backward", rows, [](const Row& row) { return exactly(row.kept); }),
                 line_of("scratch", rows, [](const Row& row) { return exactly(row.scratch); }),
                 line_of("weights, if written out", rows, [](const Row& row) { return exactly(row.weights); })}}};
  return chart_svg(chart);
}

void study_heads(const Arguments& arguments) {
  Engine engine(arguments.study.engine.options());
  const Plan plan(arguments);
  const std::vector<std::int64_t> counts = plan.heads();
  std::vector<Row> rows;
  {
    Progress progress(counts.size());
    for (const std::int64_t count : counts) {
      rows.push_back(try_out(engine, plan, count));
      progress.advance(1);
    }
  }
  arguments.study.give(as_text(plan, rows), as_json(plan, rows), [&] { return as_svg(plan, rows); });
}

}  // namespace
}  // namespace heads_study

void add_study_heads(Command& study) {
  using namespace heads_study;
  Command command =
      study.add_subcommand("heads", "Parameters, variance, time and memory against the number of heads at one width");
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("--width", arguments->width, "Width of the layer (default: 512, with --quick 128)")
      .type_name("N")
      .check(between(kNarrowest, std::int64_t{16384}));
  command.add_option("--length", arguments->length, "Tokens (default: 1024, with --quick 128)")
      .type_name("N")
      .check(between(2, std::int64_t{1} << 20));
  command.add_option("--seed", arguments->seed, "Weights and inputs (default: 1)").type_name("N");
  arguments->study.add_to(command);
  command.example("--quick --svg heads.svg");
  command.callback([arguments] { study_heads(*arguments); });
}

}  // namespace headlight::program
