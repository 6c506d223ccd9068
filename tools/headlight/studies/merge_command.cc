// headlight study merge: every way to put heads together, trained alike.
#include <memory>
#include <string>
#include <vector>

#include "headlight/analysis/presets.h"
#include "tools/headlight/studies/training.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/quantity_text.h"

namespace headlight::program {
namespace merge_study {
namespace {

constexpr std::array kMerges = {Merge::concatenate,       Merge::average,       Merge::weighted,
                                Merge::weighted_by_input, Merge::gated_by_head, Merge::gated_by_element};

struct Plan {
  explicit Plan(const TrainingStudyArguments& arguments)
      : training(arguments.training()),
        seed(arguments.seed),
        seeds(arguments.seed_count()),
        quick(arguments.study.quick) {
    for (const Merge merge : kMerges) {
      demonstration::TrainingOptions options = training;
      options.encoder.merge = merge;
      variants.push_back({std::string(name(merge)), options});
    }
  }
  demonstration::TrainingOptions training;
  std::uint64_t seed;
  std::int64_t seeds;
  bool quick;
  std::vector<Variant> variants;
};

std::string as_table(const Plan& plan, const std::vector<VariantResult>& results) {
  std::string table = "Ways to put " + grouped(plan.training.encoder.heads) +
                      " heads together, on relations between words\n" + described(plan.training, plan.seeds) +
                      table_note(plan.quick, results) +
                      "  merge              parameters  accuracy, %            loss                   ms a step\n";
  for (const VariantResult& result : results) {
    table += format("  %-18s %10s  ", result.variant.name.c_str(), grouped(result.parameters).c_str());
    table += format("%-22s ", spread_text(result.accuracy(), "%.1f", 100).c_str());
    table += format("%-22s ", spread_text(result.loss(), "%.3f", 1).c_str());
    table += spread_text(result.seconds_per_step(), "%.2f", 1e3) + "\n";
  }
  const std::int64_t width = plan.training.encoder.width, heads = plan.training.encoder.heads;
  table += "\nBehind the heads of one layer\n  merge                 weights  FLOP a token\n";
  for (const analysis::MergeCost& cost : analysis::merge_costs(width, heads, 1)) {
    table += format("  %-18s %10s  %12s\n", std::string(name(cost.merge)).c_str(), grouped(cost.weights).c_str(),
                    grouped(static_cast<std::int64_t>(cost.flops + cost.row_flops)).c_str());
  }
  return table + "FLOP: products with matrices, and the weighted sums, softmaxes and gates.\n" + skipped_note(results);
}

std::string as_document(const Plan& plan, const std::vector<VariantResult>& results) {
  Json document = {{"study", "merge"}, {"steps", plan.training.steps}, {"batch", plan.training.batch}};
  const std::vector<analysis::MergeCost> costs =
      analysis::merge_costs(plan.training.encoder.width, plan.training.encoder.heads, 1);
  for (std::size_t n = 0; n < results.size(); ++n) {
    Json& entry = document["merges"].push_back(as_json(results[n]));
    // Of one layer, behind its heads.
    entry["weights"] = costs[n].weights;
    entry["flops_per_token"] = costs[n].flops;
    entry["row_flops_per_token"] = costs[n].row_flops;
  }
  return document.dump(2) + "\n";
}

std::string as_chart(const Plan& plan, const std::vector<VariantResult>& results) {
  Chart chart{.title = "Putting heads together",
              .subtitle =
                  "Accuracy on combinations of words never seen, and what a step takes; bars: mean, rules: "
                  "least to most over seeds",
              .note = described(plan.training, plan.seeds) + chart_note(plan.quick, results)};
  ChartPanel accuracy{.title = "Accuracy", .x = {.label = "share of relations found", .text = &percent_text}};
  ChartPanel loss{.title = "Loss", .x = {.label = "cross-entropy, nats"}};
  ChartPanel parameters{.title = "Parameters", .x = {.label = "of the encoder"}};
  ChartPanel time{.title = "Time", .x = {.label = "a training step", .text = &seconds_text}};
  for (const VariantResult& result : results) {
    const std::string& name = result.variant.name;
    accuracy.bars.push_back({name, {chart_bar("", result.accuracy())}});
    loss.bars.push_back({name, {chart_bar("", result.loss())}});
    parameters.bars.push_back({name, {{.series = "", .value = static_cast<double>(result.parameters)}}});
    time.bars.push_back({name, {chart_bar("", result.seconds_per_step())}});
  }
  chart.panels = {accuracy, loss, parameters, time};
  return chart_svg(chart);
}

}  // namespace
}  // namespace merge_study

void add_study_merge(Command& study) {
  using namespace merge_study;
  Command command = study.add_subcommand("merge", "Six ways to put heads together, trained alike");
  const auto arguments = std::make_shared<TrainingStudyArguments>();
  arguments->add_to(command);
  command.example("--quick --svg merge.svg");
  command.callback([arguments] {
    Engine engine(arguments->study.engine.options());
    const Plan plan(*arguments);
    const std::vector<VariantResult> results = train_variants(engine, plan.variants, plan.seed, plan.seeds);
    arguments->study.give(as_table(plan, results), as_document(plan, results), [&] { return as_chart(plan, results); });
  });
}

}  // namespace headlight::program
