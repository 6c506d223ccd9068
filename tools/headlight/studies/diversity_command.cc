// headlight study diversity: heads that are asked to differ, and heads that are not.
#include <memory>
#include <string>
#include <vector>

#include "tools/headlight/studies/training.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/quantity_text.h"

namespace headlight::program {
namespace diversity_study {
namespace {

// Beside a loss that falls from 35 (seven relations of ln V each) to less than one.
constexpr double kWeight = 1.0;

std::vector<Variant> variants(const demonstration::TrainingOptions& training) {
  demonstration::TrainingOptions orthogonal = training;
  orthogonal.encoder.orthogonal = true;
  return {{"nothing", training},
          {"orthogonal start", orthogonal},
          {"W_Q, W_K at right angles", training, {.orthogonality = kWeight}},
          {"right angles from the start", orthogonal, {.orthogonality = kWeight}},
          {"subspaces of W_Q, W_K", training, {.subspaces = kWeight}},
          {"outputs: less CKA", training, {.similarity = kWeight}},
          {"outputs: less cosine", training, {.disagreement = kWeight}},
          {"subspaces and CKA", orthogonal, {.subspaces = kWeight, .similarity = kWeight}}};
}

std::string as_table(const demonstration::TrainingOptions& training, std::int64_t seeds, bool quick,
                     const std::vector<VariantResult>& results) {
  std::string table =
      "Heads that are asked to differ, and heads that are not\n" + described(training, seeds) +
      table_note(quick, results) +
      "  asked for                    CKA of outputs         overlap of subspaces   accuracy, %            ms a step\n";
  for (const VariantResult& result : results) {
    table += format("  %-27s  %-21s  %-21s  ", result.variant.name.c_str(),
                    spread_text(result.cka(), "%.2f", 1).c_str(), spread_text(result.overlap(), "%.2f", 1).c_str());
    table += format("%-21s  ", spread_text(result.accuracy(), "%.1f", 100).c_str());
    table += spread_text(result.seconds_per_step(), "%.2f", 1e3) + "\n";
  }
  return table +
         "\nCKA: 1 where two heads of a layer say the same up to a rotation, 0 where they have nothing in common." +
         format(
             "\nOverlap: 1 where W_Q or W_K of two heads read the same directions, 0 at right angles; drawn at "
             "random %.2f.\n",
             1 / static_cast<double>(training.encoder.heads)) +
         "At right angles are the heads' W_Q and W_K as long vectors; what spaces they read from may overlap as "
         "before.\n"
         "Those of an orthogonal start are at right angles already, and the penalty only keeps them there.\n"
         "Less cosine (Li et al. 2018) makes heads opposite, and what is opposite says the same: CKA may rise.\n" +
         skipped_note(results);
}

std::string as_document(const demonstration::TrainingOptions& training, const std::vector<VariantResult>& results) {
  Json document = {{"study", "diversity"}, {"steps", training.steps}, {"batch", training.batch}};
  for (const VariantResult& result : results) {
    document["asked_for"].push_back(as_json(result));
    const analysis::DiversityWeights& weights = result.variant.penalties;
    document["asked_for"].back()["weights"] = {{"orthogonality", weights.orthogonality},
                                               {"subspaces", weights.subspaces},
                                               {"similarity", weights.similarity},
                                               {"disagreement", weights.disagreement}};
    document["asked_for"].back()["orthogonal_start"] = result.variant.training.encoder.orthogonal;
  }
  return document.dump(2) + "\n";
}

std::string as_chart(const demonstration::TrainingOptions& training, std::int64_t seeds, bool quick,
                     const std::vector<VariantResult>& results) {
  Chart chart{.title = "Heads that are asked to differ",
              .subtitle =
                  "How alike heads of a layer are, and what it does to accuracy; bars: mean, rules: least to "
                  "most over seeds",
              .columns = 1,
              .note = described(training, seeds) + chart_note(quick, results)};
  ChartPanel cka{.title = "CKA of outputs", .x = {.label = "mean over pairs of heads", .highest = 1}};
  ChartPanel overlap{.title = "Overlap of subspaces of W_Q and W_K",
                     .x = {.label = "mean over pairs of heads", .highest = 1}};
  ChartPanel accuracy{.title = "Accuracy", .x = {.label = "share of relations found", .text = &percent_text}};
  for (const VariantResult& result : results) {
    cka.bars.push_back({result.variant.name, {chart_bar("", result.cka())}});
    overlap.bars.push_back({result.variant.name, {chart_bar("", result.overlap())}});
    accuracy.bars.push_back({result.variant.name, {chart_bar("", result.accuracy())}});
  }
  chart.panels = {cka, overlap, accuracy};
  return chart_svg(chart);
}

}  // namespace
}  // namespace diversity_study

void add_study_diversity(Command& study) {
  using namespace diversity_study;
  Command command = study.add_subcommand("diversity", "Heads that are asked to differ, and heads that are not");
  const auto arguments = std::make_shared<TrainingStudyArguments>();
  arguments->add_to(command);
  command.example("--quick --svg diversity.svg");
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
