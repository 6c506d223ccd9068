// headlight study activations: training in bfloat16 beside float32.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tools/headlight/studies/training.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/quantity_text.h"

namespace headlight::program {
namespace activations_study {
namespace {

constexpr NumberType kTypes[] = {NumberType::float32, NumberType::bfloat16};
constexpr std::int64_t kParts = 20;  // of a loss curve

std::vector<Variant> variants(const demonstration::TrainingOptions& training) {
  std::vector<Variant> list;
  for (const NumberType type : kTypes) {
    demonstration::TrainingOptions options = training;
    options.activations = type;
    list.push_back({std::string(name(type)), options});
  }
  return list;
}

// Some steps that follow each other, and the mean of their losses, over seeds too.
struct CurvePart {
  std::int64_t first;  // counted from 1
  std::int64_t last;
  double loss;
};

std::vector<CurvePart> curve_of(const VariantResult& result) {
  const std::int64_t steps = result.variant.training.steps, parts = std::min(kParts, steps);
  std::vector<CurvePart> curve;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = part * steps / parts, end = (part + 1) * steps / parts;
    const Spread mean = result.spread([&](const TrainedOnce& seed) {
      double sum = 0;
      for (std::int64_t step = begin; step < end; ++step) sum += seed.losses[static_cast<std::size_t>(step)];
      return sum / static_cast<double>(end - begin);
    });
    curve.push_back({begin + 1, end, mean.mean});
  }
  return curve;
}

std::string as_table(const demonstration::TrainingOptions& training, std::int64_t seeds, bool quick,
                     const std::vector<VariantResult>& results) {
  std::string table = "Activations of float32 and of bfloat16; weights, gradients and AdamW are float32\n" +
                      described(training, seeds) + table_note(quick, results) +
                      "Loss of the training sentences, the same for both: cross-entropy in nats, mean over seeds\n"
                      "  steps             float32   bfloat16    apart\n";
  const std::vector<CurvePart> floats = curve_of(results[0]), narrow = curve_of(results[1]);
  for (std::size_t part = 0; part < floats.size(); ++part) {
    const std::string steps = grouped(floats[part].first) + " to " + grouped(floats[part].last);
    table += format("  %-15s %9.4f  %9.4f  %+.4f\n", steps.c_str(), floats[part].loss, narrow[part].loss,
                    narrow[part].loss - floats[part].loss);
  }
  table += format("\nAfter the last step\n  %-11s  %-22s %-25s %-22s %s\n", "activations", "accuracy, %", "loss",
                  "ms a step", "kept");
  for (const VariantResult& result : results) {
    table +=
        format("  %-11s  %-22s ", result.variant.name.c_str(), spread_text(result.accuracy(), "%.1f", 100).c_str());
    table += format("%-25s ", spread_text(result.loss(), "%.4f", 1).c_str());
    table += format("%-22s ", spread_text(result.seconds_per_step(), "%.2f", 1e3).c_str());
    table += bytes_text(static_cast<double>(result.seeds.front().saved_bytes)) + "\n";
  }
  return table + "Kept: between the passes of the encoder.\n" + skipped_note(results);
}

std::string as_document(const demonstration::TrainingOptions& training, const std::vector<VariantResult>& results) {
  Json document = {{"study", "activations"}, {"steps", training.steps}, {"batch", training.batch}};
  for (const VariantResult& result : results) {
    Json& entry = document["types"].push_back(as_json(result));
    entry["saved_bytes"] = result.seeds.front().saved_bytes;
    for (const CurvePart& part : curve_of(result)) {
      entry["curve"].push_back({{"first_step", part.first}, {"last_step", part.last}, {"loss", part.loss}});
    }
  }
  return document.dump(2) + "\n";
}

std::string as_chart(const demonstration::TrainingOptions& training, std::int64_t seeds, bool quick,
                     const std::vector<VariantResult>& results) {
  Chart chart{.title = "Training with activations of bfloat16",
              .subtitle = "The loss of the same steps, and what they cost; weights, gradients and AdamW are float32",
              .note = described(training, seeds) + chart_note(quick, results)};
  ChartPanel loss{.title = "Loss", .x = {.label = "step"}, .y = {.label = "cross-entropy, nats"}};
  ChartPanel accuracy{.title = "Accuracy", .x = {.label = "share of relations found", .text = &percent_text}};
  ChartPanel time{.title = "Time", .x = {.label = "a training step", .text = &seconds_text}};
  ChartPanel bytes{.title = "Memory", .x = {.label = "kept between the passes", .text = &bytes_text}};
  for (const VariantResult& result : results) {
    const std::string& name = result.variant.name;
    const bool is_float = result.variant.training.activations == NumberType::float32;
    ChartLine line{.label = name, .stroke = is_float ? ChartStroke::line : ChartStroke::dashed};
    for (const CurvePart& part : curve_of(result)) {
      line.points.push_back({.x = static_cast<double>(part.first + part.last) / 2, .y = part.loss});
    }
    loss.lines.push_back(line);
    accuracy.bars.push_back({name, {chart_bar("", result.accuracy())}});
    time.bars.push_back({name, {chart_bar("", result.seconds_per_step())}});
    bytes.bars.push_back({name, {{.series = "", .value = static_cast<double>(result.seeds.front().saved_bytes)}}});
  }
  chart.panels = {loss, accuracy, time, bytes};
  return chart_svg(chart);
}

}  // namespace
}  // namespace activations_study

void add_study_activations(Command& study) {
  using namespace activations_study;
  Command command = study.add_subcommand("activations", "Training with activations of bfloat16 beside float32");
  const auto arguments = std::make_shared<TrainingStudyArguments>();
  arguments->add_to(command);
  command.example("--quick --svg activations.svg");
  command.callback([arguments] {
    Engine engine(arguments->study.engine.options());
    const demonstration::TrainingOptions training = arguments->training();
    const std::int64_t seeds = arguments->seed_count();
    const bool quick = arguments->study.quick;
    const std::vector<VariantResult> results = train_variants(engine, variants(training), arguments->seed, seeds);
    arguments->study.give(as_table(training, seeds, quick, results), as_document(training, results),
                          [&] { return as_chart(training, seeds, quick, results); });
  });
}

}  // namespace headlight::program
