#include "tools/headlight/demonstration/trainer.h"

#include <utility>

namespace headlight::demonstration {
namespace {

constexpr std::int64_t kShuffled = 8;  // one sentence in so many

Model made_to_learn(const TrainingOptions& options) {
  Model model(options.encoder, options.seed);
  model.set_training(true);
  return model;
}

}  // namespace

Trainer::Trainer(const TrainingOptions& options)
    : options_(options),
      model_(made_to_learn(options)),
      optimizer_(model_.parameters(), {.weight_decay = options.weight_decay}) {}

TrainingReport Trainer::step(Engine& engine) {
  const auto number = static_cast<std::uint64_t>(steps_taken());
  std::vector<Sentence> sentences;
  for (std::int64_t n = 0; n < options_.batch; ++n) {
    const std::uint64_t sentence = number * static_cast<std::uint64_t>(options_.batch) + static_cast<std::uint64_t>(n);
    sentences.push_back(n % kShuffled == 0 ? Grammar::shuffled(options_.seed, sentence)
                                           : Grammar::sentence(options_.seed, sentence, Part::training));
  }
  optimizer_.zero_gradients();
  TrainingReport report;
  report.losses = model_.learn(engine, Batch(sentences), {.seed = options_.seed, .step = number}, visitor_);
  if (penalty_) report.penalty = penalty_(engine, model_);
  const WarmupCosine rate = {.peak = options_.learning_rate,
                             .least = options_.learning_rate / 50,
                             .warmup = options_.steps / 15,
                             .total = options_.steps};
  report.step = optimizer_.step(engine, {.learning_rate = rate(steps_taken()), .max_norm = options_.max_norm});
  return report;
}

std::vector<Parameter> Trainer::state() {
  std::vector<Parameter> state = model_.parameters();
  for (Parameter& moment : optimizer_.state()) state.push_back(std::move(moment));
  return state;
}

Model Trainer::finish() && {
  model_.set_training(false);
  return std::move(model_);
}

}  // namespace headlight::demonstration
