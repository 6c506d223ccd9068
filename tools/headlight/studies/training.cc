#include "tools/headlight/studies/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "headlight/analysis/similarity.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace {

using analysis::Measure;
using demonstration::kRelations;
using demonstration::Part;
using demonstration::Sentence;

constexpr std::uint64_t kHeldOutSeed = 1'000'000;  // beyond that of any run
constexpr std::size_t kHeldOut = 500;
// An accuracy from which a model has learned its task.
constexpr double kLearned = 0.97;

// The mean over pairs of different heads; NaN where one has no value, or there is one head.
class PairMean {
 public:
  void add(const Measure& measure) {
    sum_ += measure.value_or(std::numeric_limits<double>::quiet_NaN());
    ++count_;
  }
  [[nodiscard]] double value() const { return sum_ / count_; }

 private:
  double sum_ = 0, count_ = 0;
};

double mean_cka(Engine& engine, const demonstration::Model& model, std::span<const Sentence> sentences) {
  const EncoderOptions& options = model.network().options();
  const demonstration::Batch batch(sentences);
  std::vector<std::int64_t> words;
  for (std::size_t s = 0; s < sentences.size(); ++s) {
    for (std::size_t w = 0; w < sentences[s].words.size(); ++w) {
      words.push_back(batch.first_word(s) + static_cast<std::int64_t>(w));
    }
  }
  std::vector<Tensor<float, 2>> outputs;
  std::vector<LayerHeads> wanted;
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    outputs.emplace_back(Tensor<float, 2>({batch.tokens(), options.width}));
    wanted.push_back({.layer = layer, .outputs = outputs.back()});
  }
  Tensor<float, 2> hidden({batch.tokens(), options.width});
  model.network().forward(engine, batch.input(), hidden, {}, wanted);
  PairMean mean;
  for (const Tensor<float, 2>& of_layer : outputs) {
    analysis::HeadCovariance covariance(options.heads, options.width / options.heads);
    covariance.add(engine, of_layer, words);
    for (std::int64_t a = 0; a < options.heads; ++a) {
      for (std::int64_t b = 0; b < a; ++b) mean.add(covariance.cka(a, b));
    }
  }
  return mean.value();
}

double mean_overlap(Engine& engine, const demonstration::Model& model) {
  const EncoderOptions& options = model.network().options();
  const Weights weights = model.network().weights();
  const std::int64_t width = options.width;
  PairMean mean;
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const WeightView& packed = weights.at("layers." + std::to_string(layer) + ".self_attn.in_proj_weight");
    for (const std::int64_t part : {0, 1}) {
      const View<const float, 2> weight(packed.values.data() + part * width * width, {width, width});
      const std::vector<Measure> overlaps = analysis::subspace_overlaps(engine, weight, options.heads);
      for (std::int64_t a = 0; a < options.heads; ++a) {
        for (std::int64_t b = 0; b < a; ++b) mean.add(overlaps[static_cast<std::size_t>(a * options.heads + b)]);
      }
    }
  }
  return mean.value();
}

TrainedOnce train_once(Engine& engine, const Variant& variant, std::uint64_t seed, std::span<const Sentence> held_out,
                       Progress& progress) {
  demonstration::TrainingOptions options = variant.training;
  options.seed = seed;
  demonstration::Trainer trainer(options);
  analysis::DiversityPenalty penalty(options.encoder.layers, options.encoder.heads, variant.penalties);
  trainer.set_visitor(&penalty);
  trainer.set_penalty([&](Engine& by, demonstration::Model& model) {
    const std::vector<Parameter> parameters = model.parameters();
    penalty.add(by, parameters);
    return penalty.take();
  });
  std::vector<double> seconds, losses;
  std::int64_t skipped = 0;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const auto began = std::chrono::steady_clock::now();
    const demonstration::TrainingReport report = trainer.step(engine);
    if (!report.step.taken()) ++skipped;
    losses.push_back(report.losses.total / static_cast<double>(kRelations));
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    progress.advance(1);
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  const demonstration::Model model = std::move(trainer).finish();
  return {.seed = seed,
          .evaluation = evaluate(engine, model, held_out),
          .seconds_per_step = *middle,
          .seconds = std::accumulate(seconds.begin(), seconds.end(), 0.0),
          .skipped = skipped,
          .losses = std::move(losses),
          .saved_bytes = model.saved_bytes(),
          .cka = mean_cka(engine, model, held_out),
          .overlap = mean_overlap(engine, model)};
}

double mean_of(const std::array<double, kRelations>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(kRelations);
}

Json as_json(const Spread& spread) { return {{"mean", spread.mean}, {"least", spread.least}, {"most", spread.most}}; }

}  // namespace

void TrainingStudyArguments::add_to(Command& command) {
  const auto usual = [](std::int64_t value) { return " (default: " + std::to_string(value) + ")"; };
  const auto usual_or = [&usual](std::int64_t value, std::int64_t quick) {
    if (value == quick) return usual(value);
    return " (default: " + std::to_string(value) + ", with --quick " + std::to_string(quick) + ")";
  };
  command
      .add_option("--steps", steps, "Training steps of each model, 1 to 1000000" + usual_or(kUsualSteps, quick_steps))
      .type_name("N")
      .check(between(1, 1'000'000));
  command
      .add_option(
          "--seeds", seeds,
          "Models trained of each kind, 1 to 1000, each with a seed of its own" + usual_or(kUsualSeeds, kQuickSeeds))
      .type_name("N")
      .check(between(1, 1000));
  command.add_option("--seed", seed, "The first of the seeds; the next ones follow it" + usual(1)).type_name("N");
  command.add_option("--layers", layers, "Layers of each model, 1 to 12" + usual(usual_layers))
      .type_name("N")
      .check(between(1, 12));
  command.add_option("--width", width, "Width of each model: 8, 16, 32, 64 or 128" + usual(kUsualWidth))
      .type_name("E")
      .check(one_of_numbers({8, 16, 32, 64, 128}));
  study.add_to(command);
}

demonstration::TrainingOptions TrainingStudyArguments::training() const {
  demonstration::TrainingOptions training;
  training.encoder.layers = layers > 0 ? layers : usual_layers;
  training.encoder.width = width > 0 ? width : kUsualWidth;
  training.encoder.feed_forward_width = 2 * training.encoder.width;
  training.encoder.dropout = 0;
  training.batch = study.quick ? 16 : 32;
  training.learning_rate = 5e-3;
  training.steps = steps > 0 ? steps : study.quick ? quick_steps : kUsualSteps;
  return training;
}

Spread VariantResult::accuracy() const {
  return spread([](const TrainedOnce& seed) { return mean_of(seed.evaluation.accuracy); });
}
Spread VariantResult::loss() const {
  return spread([](const TrainedOnce& seed) { return mean_of(seed.evaluation.loss); });
}
Spread VariantResult::cka() const {
  return spread([](const TrainedOnce& seed) { return seed.cka; });
}
Spread VariantResult::overlap() const {
  return spread([](const TrainedOnce& seed) { return seed.overlap; });
}
Spread VariantResult::seconds_per_step() const {
  return spread([](const TrainedOnce& seed) { return seed.seconds_per_step; });
}

std::vector<VariantResult> train_variants(Engine& engine, const std::vector<Variant>& variants, std::uint64_t first,
                                          std::int64_t seeds) {
  std::vector<VariantResult> results;
  std::size_t steps = 0;
  for (const Variant& variant : variants) {
    results.push_back({variant, headlight::Encoder(variant.training.encoder).parameter_count(), {}});
    steps += static_cast<std::size_t>(variant.training.steps * seeds);
  }
  const std::vector<Sentence> held_out = demonstration::sentences(kHeldOutSeed, kHeldOut, Part::held_out);
  Progress progress(steps);
  for (std::int64_t number = 0; number < seeds; ++number) {
    for (VariantResult& result : results) {
      const std::uint64_t seed = first + static_cast<std::uint64_t>(number);
      result.seeds.push_back(train_once(engine, result.variant, seed, held_out, progress));
    }
  }
  return results;
}

std::string spread_text(const Spread& spread, const char* pattern, double unit) {
  if (!std::isfinite(spread.mean)) return "undefined";
  const auto shown = [&](double value) { return format(pattern, value * unit); };
  return shown(spread.mean) + " (" + shown(spread.least) + " to " + shown(spread.most) + ")";
}

ChartBar chart_bar(const std::string& series, const Spread& spread) {
  return {.series = series, .value = spread.mean, .low = spread.least, .high = spread.most};
}

Json as_json(const VariantResult& result) {
  Json document = {{"name", result.variant.name},
                   {"parameters", result.parameters},
                   {"accuracy", as_json(result.accuracy())},
                   {"loss", as_json(result.loss())},
                   {"seconds_per_step", as_json(result.seconds_per_step())},
                   {"cka", as_json(result.cka())},
                   {"subspace_overlap", as_json(result.overlap())}};
  for (const TrainedOnce& seed : result.seeds) {
    Json relations;
    for (std::size_t relation = 0; relation < kRelations; ++relation) {
      relations[std::string(name(static_cast<demonstration::Relation>(relation)))] = seed.evaluation.accuracy[relation];
    }
    // What has no value is null, as JSON knows no NaN.
    document["seeds"].push_back({{"seed", seed.seed},
                                 {"accuracy", relations},
                                 {"loss", mean_of(seed.evaluation.loss)},
                                 {"seconds", seed.seconds},
                                 {"seconds_per_step", seed.seconds_per_step},
                                 {"steps_not_taken", seed.skipped},
                                 {"cka", seed.cka},
                                 {"subspace_overlap", seed.overlap}});
  }
  return document;
}

std::string skipped_note(const std::vector<VariantResult>& results) {
  std::string text;
  for (const VariantResult& result : results) {
    for (const TrainedOnce& seed : result.seeds) {
      if (seed.skipped == 0) continue;
      text += result.variant.name + ", seed " + std::to_string(seed.seed) + ": " + counted(seed.skipped, "step") +
              (seed.skipped == 1 ? " was" : " were") + " not taken, for the gradient was not finite.\n";
    }
  }
  return text;
}

namespace {

// Of the best of all models: the share of relations that it finds.
double best_accuracy(const std::vector<VariantResult>& results) {
  double best = 0;
  for (const VariantResult& result : results) best = std::max(best, result.accuracy().mean);
  return best;
}

}  // namespace

std::string table_note(bool quick, const std::vector<VariantResult>& results) {
  std::string text = ". Held-out sentences; mean over seeds (least to most).\n";
  if (quick) text += "Quick: fewer seeds, and fewer steps or sentences a step.\n";
  if (const double best = best_accuracy(results); best < kLearned) {
    text += format(
        "Half-learned: in so few steps even the best of these models finds %.1f %% of the relations. Accuracy is low "
        "because training\nwas short, and tells who learns fast, not who can learn what; --steps trains longer.\n",
        100 * best);
  }
  return text + "\n";
}

std::string chart_note(bool quick, const std::vector<VariantResult>& results) {
  std::string text = quick ? " (--quick)" : "";
  if (const double best = best_accuracy(results); best < kLearned) {
    text += format(". Half-learned: training was short, even the best finds %.1f %%", 100 * best);
  }
  return text;
}

std::string described(const demonstration::TrainingOptions& training, std::int64_t seeds) {
  return counted(training.encoder.layers, "layer") + " of width " + grouped(training.encoder.width) + "; " +
         counted(training.steps, "step") + " of " + grouped(training.batch) + " sentences; " + counted(seeds, "seed");
}

}  // namespace headlight::program
