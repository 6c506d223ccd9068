// headlight study depth: how much of the gradient reaches each layer, with the normalisation before or after the parts
// of a layer, with and without residual connections (Xiong et al. 2020; He et al. 2016).
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/list_text.h"
#include "tools/headlight/pictures/chart.h"
#include "tools/headlight/studies/depth_stack.h"
#include "tools/headlight/studies/study.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace depth_study {
namespace {

constexpr std::int64_t kDepths[] = {6, 24, 96};
constexpr std::int64_t kProbed = 40;  // steps after which gradients are looked at again

struct Arguments {
  StudyArguments study;
  std::int64_t steps = 0;  // 0: as many as the size asks for
  std::uint64_t seed = 1;
};

// What is tried: small enough for minutes, large enough that Post-LN meets its limit.
struct Plan {
  explicit Plan(const Arguments& arguments) : quick(arguments.study.quick) {
    stack.width = quick ? 32 : 64;
    stack.vocabulary = 12;
    stack.sequences = quick ? 16 : 32;
    stack.length = 8;
    stack.seed = arguments.seed;
    learning_rate = quick ? 2e-3 : 1e-3;
    steps = arguments.steps > 0 ? arguments.steps : quick ? 20 : 300;
    probed = std::min(steps, kProbed);
  }
  [[nodiscard]] double guessing() const { return std::log(static_cast<double>(stack.vocabulary)); }

  DepthOptions stack;
  double learning_rate;
  std::int64_t steps, probed;
  bool quick;
};

std::string name_of(Norm norm, bool residual) {
  return std::string(norm == Norm::pre ? "Pre-LN" : "Post-LN") + (residual ? "" : ", no residual");
}

struct Run {
  DepthOptions stack;
  std::vector<double> initial{}, probed{};  // the norm of each layer's gradient
  std::vector<double> losses{};             // of each step
  std::int64_t stopped = -1;                // the step whose gradient was not finite

  [[nodiscard]] std::string name() const { return name_of(stack.norm, stack.residual); }
  // Over the last ten steps.
  [[nodiscard]] double final_loss() const {
    const std::size_t count = std::min<std::size_t>(losses.size(), 10);
    double sum = 0;
    for (std::size_t n = losses.size() - count; n < losses.size(); ++n) sum += losses[n];
    return sum / static_cast<double>(count);
  }
};

Run try_out(Engine& engine, const Plan& plan, const DepthOptions& options, Progress& progress) {
  Run run{.stack = options};
  DepthStack stack(options);
  AdamW optimizer(stack.parameters(), {.weight_decay = 0});
  for (std::int64_t step = 0; step <= plan.steps; ++step) {
    const double loss = stack.learn_from(engine, static_cast<std::uint64_t>(step));
    if (step == 0) run.initial = stack.gradient_norms();
    if (step == plan.probed) run.probed = stack.gradient_norms();
    run.losses.push_back(loss);
    progress.advance(static_cast<std::size_t>(options.depth));
    if (!optimizer.step(engine, {.learning_rate = plan.learning_rate}).taken()) {
      run.stopped = step;
      break;
    }
  }
  return run;
}

std::vector<Run> try_all(Engine& engine, const Plan& plan) {
  std::vector<DepthOptions> all;
  std::size_t work = 0;
  for (const std::int64_t depth : kDepths) {
    for (const bool residual : {true, false}) {
      for (const Norm norm : {Norm::pre, Norm::post}) {
        DepthOptions options = plan.stack;
        options.depth = depth;
        options.norm = norm;
        options.residual = residual;
        all.push_back(options);
        work += static_cast<std::size_t>(depth * (plan.steps + 1));
      }
    }
  }
  Progress progress(work);
  std::vector<Run> runs;
  runs.reserve(all.size());
  for (const DepthOptions& options : all) runs.push_back(try_out(engine, plan, options, progress));
  return runs;
}

std::string setting(const Plan& plan) {
  return "Layers of width " + grouped(plan.stack.width) + " with " + grouped(plan.stack.heads) +
         " heads learn to turn around sequences of " + grouped(plan.stack.length) + " words. AdamW, learning rate " +
         number_text(plan.learning_rate) + "\nfrom the first step on, no warm-up, no clipping, no dropout." +
         (plan.quick ? " Quick: narrow layers and few steps.\n" : "\n");
}

// The gradient of the first layer over that of the last.
double reach(const std::vector<double>& norms) {
  return norms.empty() || norms.back() == 0 ? 0 : norms.front() / norms.back();
}

// What one kind of layer came to.
struct Kind {
  std::string learned;  // the depths that got below half the loss of guessing
  std::int64_t deepest = 0;
  double initial = 0, probed = 0;  // how much reaches the first of the most layers
};

Kind kind_of(const Plan& plan, const std::vector<Run>& runs, Norm norm, bool residual) {
  Kind kind;
  for (const Run& run : runs) {
    if (run.stack.norm != norm || run.stack.residual != residual) continue;
    kind.initial = reach(run.initial);
    kind.probed = reach(run.probed);
    if (run.stopped >= 0 || run.final_loss() > 0.5 * plan.guessing()) continue;
    runtime::append_item(kind.learned, std::to_string(run.stack.depth));
    kind.deepest = run.stack.depth;
  }
  if (kind.learned.empty()) kind.learned = "none";
  return kind;
}

std::string reach_text(double reach) { return reach == 0 ? "none" : format(reach < 0.01 ? "%.0e" : "%.2f", reach); }

// In a line, what reaches the first layer of the deepest stacks.
std::string conclusion(const Plan& plan, const std::vector<Run>& runs) {
  const Kind pre = kind_of(plan, runs, Norm::pre, true), post = kind_of(plan, runs, Norm::post, true);
  return "After " + counted(plan.probed, "step") + " the first of " + grouped(*std::rbegin(kDepths)) + " layers has " +
         reach_text(pre.probed) + " of the last one's gradient with Pre-LN, " + reach_text(post.probed) +
         " with Post-LN";
}

bool pre_trains_deeper(const Plan& plan, const std::vector<Run>& runs) {
  return kind_of(plan, runs, Norm::pre, true).deepest > kind_of(plan, runs, Norm::post, true).deepest;
}

// What the figures say, with the figures.
std::string findings(const Plan& plan, const std::vector<Run>& runs) {
  const auto row = [](const std::string& name, const std::string& learned, const std::string& initial,
                      const std::string& probed) {
    return "  " + at_right(name, 20) + at_right(learned, 14) + at_right(initial, 22) + at_right(probed, 22) + "\n";
  };
  std::string text =
      "Numbers of layers that got below half the loss of guessing, and how much of the last layer's "
      "gradient the first of " +
      grouped(*std::rbegin(kDepths)) + " has\n" +
      row("", "learned", "at initialisation", "after " + counted(plan.probed, "step"));
  bool any = false;
  for (const bool residual : {true, false}) {
    for (const Norm norm : {Norm::pre, Norm::post}) {
      const Kind kind = kind_of(plan, runs, norm, residual);
      any = any || kind.deepest > 0;
      text += row(name_of(norm, residual), kind.learned, reach_text(kind.initial), reach_text(kind.probed));
    }
  }
  text +=
      "The way from the loss to a layer goes by the sums with Pre-LN, y = x + F(LN(x)), and no normalisation "
      "interrupts them.\nPost-LN, y = LN(x + F(x)), has a normalisation on it after every part; without residual "
      "connections "
      "every part is\non it.\n" +
      conclusion(plan, runs) + ".\n";
  if (!any) return text + "In so few steps none of them learned: --steps trains longer.\n";
  return text + (pre_trains_deeper(plan, runs) ? "Pre-LN trained deeper stacks than Post-LN.\n"
                                               : "Pre-LN trained no deeper stacks than Post-LN here.\n");
}

std::string as_text(const Plan& plan, const std::vector<Run>& runs) {
  const std::string after = "after " + counted(plan.probed, "step");
  std::string text = "Depth: how much gradient reaches each layer\n" + setting(plan) +
                     "\nThe norm of the gradient of a layer's parameters, in the first and in the last layer, and the "
                     "loss (guessing: " +
                     format("%.2f", plan.guessing()) + ")\n\n" + at_right("", 26) + at_right("at initialisation", 22) +
                     at_right(after, 24) + at_right("loss", 12) + "\n" + at_right("", 26) + at_right("first", 12) +
                     at_right("last", 10) + at_right("first", 14) + at_right("last", 10) +
                     at_right("step " + grouped(plan.steps), 12) + "\n";
  for (const Run& run : runs) {
    if (run.stack.residual && run.stack.norm == Norm::pre) text += grouped(run.stack.depth) + " layers\n";
    const auto norm = [](const std::vector<double>& norms, bool first) {
      return norms.empty() ? "none" : format("%.1e", first ? norms.front() : norms.back());
    };
    text += "  " + run.name() + std::string(26 - run.name().size(), ' ') + at_right(norm(run.initial, true), 12) +
            at_right(norm(run.initial, false), 10) + at_right(norm(run.probed, true), 14) +
            at_right(norm(run.probed, false), 10) +
            at_right(run.stopped >= 0 ? "not finite" : format("%.3f", run.final_loss()), 12) + "\n";
  }
  return text + "\n" + findings(plan, runs);
}

std::string as_json(const Plan& plan, const std::vector<Run>& runs) {
  Json document;
  document["study"] = "depth";
  document["quick"] = plan.quick;
  document["seed"] = plan.stack.seed;
  document["width"] = plan.stack.width;
  document["heads"] = plan.stack.heads;
  document["tokens"] = plan.stack.sequences * plan.stack.length;
  document["learning_rate"] = plan.learning_rate;
  document["steps"] = plan.steps;
  document["probed_step"] = plan.probed;
  document["loss_of_guessing"] = plan.guessing();
  for (const Run& run : runs) {
    Json entry;
    entry["layers"] = run.stack.depth;
    entry["norm"] = run.stack.norm == Norm::pre ? "pre" : "post";
    entry["residual"] = run.stack.residual;
    entry["gradient_norms"] = {{"initial", run.initial}, {"probed", run.probed}};
    entry["losses"] = run.losses;
    entry["final_loss"] = run.final_loss();
    entry["finite"] = run.stopped < 0;
    document["runs"].push_back(std::move(entry));
  }
  return document.dump(2) + "\n";
}

ChartPanel norms_panel(const std::vector<Run>& runs, std::int64_t depth, const std::string& when,
                       std::vector<double> Run::*norms) {
  ChartPanel panel{
      .title = grouped(depth) + " layers, " + when,
      .x = {.label = "layer", .lowest = 0, .highest = static_cast<double>(depth)},
      .y = {.label = "norm of the gradient", .scale = ChartScale::logarithmic, .lowest = 1e-12, .highest = 1e3}};
  for (const Run& run : runs) {
    if (run.stack.depth != depth) continue;
    ChartLine line{run.name()};
    for (std::size_t n = 0; n < (run.*norms).size(); ++n) {
      line.points.push_back({static_cast<double>(n + 1), (run.*norms)[n]});
    }
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

ChartPanel loss_panel(const Plan& plan, const std::vector<Run>& runs, std::int64_t depth) {
  ChartPanel panel{.title = grouped(depth) + " layers, learning",
                   .x = {.label = "step", .lowest = 0, .highest = static_cast<double>(plan.steps)},
                   .y = {.label = "loss", .lowest = 0, .highest = 1.6 * plan.guessing()},
                   .guides = {{"guessing", 0, 1, plan.guessing()}}};
  for (const Run& run : runs) {
    if (run.stack.depth != depth) continue;
    ChartLine line{run.name()};
    for (std::size_t n = 0; n < run.losses.size(); ++n) line.points.push_back({static_cast<double>(n), run.losses[n]});
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

std::string as_svg(const Plan& plan, const std::vector<Run>& runs) {
  Chart chart{.title = pre_trains_deeper(plan, runs) ? "Why Pre-LN trains" : "How much gradient reaches each layer",
              .subtitle = conclusion(plan, runs),
              .columns = 3,
              .note = "Width " + grouped(plan.stack.width) + ", AdamW at " + number_text(plan.learning_rate) +
                      " without warm-up, one seed; a triangle under the axis: the norm goes on below 10⁻¹²" +
                      (plan.quick ? "; quick: narrow layers and few steps." : ".")};
  for (const std::int64_t depth : kDepths) {
    chart.panels.push_back(norms_panel(runs, depth, "at initialisation", &Run::initial));
  }
  for (const std::int64_t depth : kDepths) {
    chart.panels.push_back(norms_panel(runs, depth, "after " + counted(plan.probed, "step"), &Run::probed));
  }
  for (const std::int64_t depth : kDepths) chart.panels.push_back(loss_panel(plan, runs, depth));
  return chart_svg(chart);
}

void study_depth(const Arguments& arguments) {
  Engine engine(arguments.study.engine.options());
  const Plan plan(arguments);
  const std::vector<Run> runs = try_all(engine, plan);
  arguments.study.give(as_text(plan, runs), as_json(plan, runs), [&] { return as_svg(plan, runs); });
}

}  // namespace
}  // namespace depth_study

void add_study_depth(Command& study) {
  using namespace depth_study;
  Command command =
      study.add_subcommand("depth", "How much gradient reaches each layer of 6, 24, 96: Pre-LN, Post-LN, no residual");
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("--steps", arguments->steps, "Steps of training (default: 300, with --quick 20)")
      .type_name("N")
      .check(between(1, 100000));
  command.add_option("--seed", arguments->seed, "First weights and examples (default: 1)").type_name("N");
  arguments->study.add_to(command);
  command.example("--quick --svg depth.svg");
  command.callback([arguments] { study_depth(*arguments); });
}

}  // namespace headlight::program
