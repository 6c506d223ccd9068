// headlight study relations: what one head cannot hold and many can.
#include <memory>
#include <string>
#include <vector>

#include "tools/headlight/studies/training.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/quantity_text.h"

namespace headlight::program {
namespace relations_study {
namespace {

using demonstration::kRelations;
using demonstration::Relation;

constexpr std::int64_t kHeads[] = {1, 2, 4, 8};
// So many four heads need to find everything; after fewer it would show who learns fast, not who can hold what.
constexpr std::int64_t kQuickSteps = 1000;

std::vector<Variant> variants(const demonstration::TrainingOptions& training) {
  std::vector<Variant> list;
  for (const std::int64_t heads : kHeads) {
    demonstration::TrainingOptions options = training;
    options.encoder.heads = heads;
    list.push_back({std::to_string(heads) + (heads == 1 ? " head" : " heads"), options});
  }
  return list;
}

Spread accuracy_of(const VariantResult& result, std::size_t relation) {
  return result.spread([&](const TrainedOnce& seed) { return seed.evaluation.accuracy[relation]; });
}

// The relation that is found least.
std::size_t worst_of(const VariantResult& result) {
  std::size_t worst = 0;
  for (std::size_t relation = 1; relation < kRelations; ++relation) {
    if (accuracy_of(result, relation).mean < accuracy_of(result, worst).mean) worst = relation;
  }
  return worst;
}

std::string as_table(const demonstration::TrainingOptions& training, std::int64_t seeds, bool quick,
                     const std::vector<VariantResult>& results) {
  std::string table = "The same width in 1, 2, 4 and 8 heads: how often each relation is found, %\n" +
                      described(training, seeds) + table_note(quick, results) + "  relation    ";
  for (const VariantResult& result : results) table += format("  %-23s", result.variant.name.c_str());
  table += "\n";
  for (std::size_t relation = 0; relation < kRelations; ++relation) {
    table += format("  %-12s", std::string(name(static_cast<Relation>(relation))).c_str());
    for (const VariantResult& result : results) {
      table += format("  %-23s", spread_text(accuracy_of(result, relation), "%.1f", 100).c_str());
    }
    table += "\n";
  }
  table += format("  %-12s", "all");
  for (const VariantResult& result : results) {
    table += format("  %-23s", spread_text(result.accuracy(), "%.1f", 100).c_str());
  }
  table += format("\n  %-12s", "the worst");
  for (const VariantResult& result : results) {
    const std::size_t worst = worst_of(result);
    const std::string of = std::string(name(static_cast<Relation>(worst))) + ", ";
    table += format("  %-23s", (of + format("%.1f", 100 * accuracy_of(result, worst).mean)).c_str());
  }
  return table + "\n\nAll have " + grouped(results.front().parameters) +
         " parameters: a head more makes heads narrower, not the model larger. A head has one\nset of weights for a "
         "word: where a word asks for two others, as a verb for its subject and its object, one head must mix them.\n" +
         skipped_note(results);
}

std::string as_document(const demonstration::TrainingOptions& training, const std::vector<VariantResult>& results) {
  Json document = {{"study", "relations"}, {"steps", training.steps}, {"batch", training.batch}};
  for (const VariantResult& result : results) {
    document["heads"].push_back(as_json(result));
    document["heads"].back()["heads"] = result.variant.training.encoder.heads;
  }
  return document.dump(2) + "\n";
}

std::string as_chart(const demonstration::TrainingOptions& training, std::int64_t seeds, bool quick,
                     const std::vector<VariantResult>& results) {
  Chart chart{.title = "What heads can hold",
              .subtitle =
                  "How often each relation is found, with the same width in more and more heads; bars: mean, "
                  "rules: least to most over seeds",
              .columns = 1,
              .note = described(training, seeds) + chart_note(quick, results)};
  ChartPanel panel{.x = {.label = "share found on combinations of words never seen", .text = &percent_text}};
  for (std::size_t relation = 0; relation < kRelations; ++relation) {
    ChartBars bars{std::string(name(static_cast<Relation>(relation))), {}};
    for (const VariantResult& result : results) {
      bars.bars.push_back(chart_bar(result.variant.name, accuracy_of(result, relation)));
    }
    panel.bars.push_back(bars);
  }
  chart.panels = {panel};
  return chart_svg(chart);
}

}  // namespace
}  // namespace relations_study

void add_study_relations(Command& study) {
  using namespace relations_study;
  Command command = study.add_subcommand("relations", "What one head cannot hold and many can");
  const auto arguments = std::make_shared<TrainingStudyArguments>();
  arguments->usual_layers = 1;
  arguments->quick_steps = kQuickSteps;
  arguments->add_to(command);
  command.example("--quick --svg relations.svg");
  command.callback([arguments] {
    Engine engine(arguments->study.engine.options());
    const demonstration::TrainingOptions training = arguments->training();
    const std::int64_t seeds = arguments->seed_count();
    const std::vector<VariantResult> results = train_variants(engine, variants(training), arguments->seed, seeds);
    arguments->study.give(as_table(training, seeds, arguments->study.quick, results), as_document(training, results),
                          [&] { return as_chart(training, seeds, arguments->study.quick, results); });
  });
}

}  // namespace headlight::program
