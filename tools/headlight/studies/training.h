// The demonstration model trained several times over: what studies of heads compare.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/analysis/diversity.h"
#include "tools/headlight/demonstration/evaluation.h"
#include "tools/headlight/demonstration/trainer.h"
#include "tools/headlight/pictures/chart.h"
#include "tools/headlight/studies/study.h"
#include "tools/headlight/support/command.h"
#include "tools/headlight/support/json.h"

namespace headlight::program {

// Options of every such study. 0: what the study chooses for its size.
struct TrainingStudyArguments {
  StudyArguments study;
  std::int64_t steps = 0;
  std::int64_t seeds = 0;
  std::uint64_t seed = 1;  // the first
  std::int64_t layers = 0;
  std::int64_t width = 0;
  // What the study chooses.
  std::int64_t usual_layers = 2;
  std::int64_t quick_steps = 200;

  void add_to(Command& command);
  // The demonstration model, scaled down.
  [[nodiscard]] demonstration::TrainingOptions training() const;
  [[nodiscard]] std::int64_t seed_count() const noexcept {
    return seeds > 0 ? seeds : study.quick ? kQuickSeeds : kUsualSeeds;
  }

  static constexpr std::int64_t kUsualSteps = 1000, kUsualSeeds = 3, kQuickSeeds = 2, kUsualWidth = 32;
};

// One way to make and to train the model.
struct Variant {
  std::string name;
  demonstration::TrainingOptions training;
  analysis::DiversityWeights penalties{};
};

// Mean, least and largest over seeds.
struct Spread {
  double mean = 0, least = 0, most = 0;
};

// What came of one seed, on sentences with combinations of words that training never saw.
struct TrainedOnce {
  std::uint64_t seed = 0;
  demonstration::Evaluation evaluation;
  double seconds_per_step = 0;   // the median
  double seconds = 0;            // of all steps
  std::int64_t skipped = 0;      // steps that were not taken for a gradient that was not finite
  std::vector<double> losses{};  // of each step on its own sentences, the mean over relations
  std::size_t saved_bytes = 0;   // of what lies between the passes
  double cka = 0;      // of outputs, mean over pairs of heads of a layer, over layers; NaN where it has no value
  double overlap = 0;  // of W_Q's and W_K's subspaces, likewise
};

struct VariantResult {
  Variant variant;
  std::int64_t parameters = 0;  // of the encoder
  std::vector<TrainedOnce> seeds;

  template <class Part>
  [[nodiscard]] Spread spread(Part part) const {
    Spread found{.least = part(seeds.front()), .most = part(seeds.front())};
    for (const TrainedOnce& seed : seeds) {
      const double value = part(seed);
      found.mean += value / static_cast<double>(seeds.size());
      found.least = std::min(found.least, value);
      found.most = std::max(found.most, value);
    }
    return found;
  }
  // Means over the relations.
  [[nodiscard]] Spread accuracy() const;
  [[nodiscard]] Spread loss() const;
  [[nodiscard]] Spread seconds_per_step() const;
  // NaN with one head, which has no other.
  [[nodiscard]] Spread cka() const;
  [[nodiscard]] Spread overlap() const;
};

// Every variant with the seeds first, first + 1 … , in turn, so that a change of the machine's clock meets them all
// alike.
[[nodiscard]] std::vector<VariantResult> train_variants(Engine& engine, const std::vector<Variant>& variants,
                                                        std::uint64_t first, std::int64_t seeds);

// "98.4 % (97.9 to 98.8)"; NaN: "undefined".
[[nodiscard]] std::string spread_text(const Spread& spread, const char* pattern, double unit);
[[nodiscard]] ChartBar chart_bar(const std::string& series, const Spread& spread);
// What all results have, for the study's document.
[[nodiscard]] Json as_json(const VariantResult& result);
// "2 layers of width 32, …; 600 steps of 32 sentences, 3 seeds": what was trained.
[[nodiscard]] std::string described(const demonstration::TrainingOptions& training, std::int64_t seeds);
// A line for every training that did not take all its steps.
[[nodiscard]] std::string skipped_note(const std::vector<VariantResult>& results);
// What follows it over a table: how the figures are to be read, whether they are of a quick run, and whether the models
// have learned their task at all.
[[nodiscard]] std::string table_note(bool quick, const std::vector<VariantResult>& results);
// The same in the one line below a chart.
[[nodiscard]] std::string chart_note(bool quick, const std::vector<VariantResult>& results);

}  // namespace headlight::program
