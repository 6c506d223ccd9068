#include "tools/headlight/demonstration/trainer.h"

#include <utility>

namespace headlight::demonstration {
namespace {

constexpr std::int64_t kShuffled = 8;  // one sentence in so many

Model made_to_learn(const TrainingOptions& options) {
  Model model(options.encoder, options.seed);
  model.set_training(true);
  model.set_activations(options.activations);
  return model;
}

// All shards, one after the other.
class OwnSteps : public Steps {
 public:
  OwnSteps(std::vector<Parameter> parameters, const TrainingOptions& options)
      : tree_(parameters, 0, options.shards),
        shards_(options.shards),
        optimizer_(std::move(parameters), adamw_options(options)) {}

  [[nodiscard]] Shards shards() const override { return {0, shards_}; }
  void zero_gradients() override {
    optimizer_.zero_gradients();
    tree_.clear();
    added_ = 0;
  }
  void add_shard(Engine& engine) override {
    if (++added_ < shards_) {
      tree_.take(engine);
    } else {
      tree_.finish(engine);
    }
  }
  StepReport step(Engine& engine, const StepOptions& options) override { return optimizer_.step(engine, options); }
  [[nodiscard]] bool writes() const override { return true; }
  [[nodiscard]] std::int64_t steps_taken() const override { return optimizer_.steps(); }
  void set_steps_taken(std::int64_t steps) override { optimizer_.set_steps(steps); }
  [[nodiscard]] std::vector<Parameter> whole_moments() override { return optimizer_.state(); }
  [[nodiscard]] std::vector<Moment> own_moments() override {
    std::vector<Moment> list;
    for (const Parameter& moment : optimizer_.state()) list.push_back({moment.name, 0, moment.values});
    return list;
  }

 private:
  GradientTree tree_;
  std::int64_t shards_;
  std::int64_t added_ = 0;
  AdamW optimizer_;
};

}  // namespace

AdamWOptions adamw_options(const TrainingOptions& options) { return {.weight_decay = options.weight_decay}; }

Trainer::Trainer(const TrainingOptions& options)
    : Trainer(options, [&options](std::vector<Parameter> parameters) {
        return std::make_unique<OwnSteps>(std::move(parameters), options);
      }) {}

Trainer::Trainer(const TrainingOptions& options, const MakeSteps& make_steps)
    : options_(options), model_(made_to_learn(options)), steps_(make_steps(model_.parameters())) {}

Losses Trainer::learn(Engine& engine, std::uint64_t number) {
  std::vector<Sentence> sentences;
  for (std::int64_t n = 0; n < options_.batch; ++n) {
    const std::uint64_t sentence = number * static_cast<std::uint64_t>(options_.batch) + static_cast<std::uint64_t>(n);
    sentences.push_back(n % kShuffled == 0 ? Grammar::shuffled(options_.seed, sentence)
                                           : Grammar::sentence(options_.seed, sentence, Part::training));
  }
  const QuestionCounts of_batch = count_questions(sentences);
  const auto size = static_cast<std::size_t>(options_.batch / options_.shards);
  const auto [first, count] = steps_->shards();
  steps_->zero_gradients();
  Losses losses;
  for (std::int64_t shard = first; shard < first + count; ++shard) {
    const Batch batch(std::span<const Sentence>(sentences).subspan(static_cast<std::size_t>(shard) * size, size));
    // Dropout counts rows from the first of a shard: each draws as a step of its own.
    const std::uint64_t draw = number * static_cast<std::uint64_t>(options_.shards) + static_cast<std::uint64_t>(shard);
    losses += model_.learn(engine, batch, of_batch, {.seed = options_.seed, .step = draw}, visitor_);
    steps_->add_shard(engine);
  }
  return losses;
}

TrainingReport Trainer::step(Engine& engine) {
  TrainingReport report;
  report.losses = learn(engine, static_cast<std::uint64_t>(steps_taken()));
  if (penalty_) report.penalty = penalty_(engine, model_);
  const WarmupCosine rate = {.peak = options_.learning_rate,
                             .least = options_.learning_rate / 50,
                             .warmup = options_.steps / 15,
                             .total = options_.steps};
  report.step = steps_->step(engine, {.learning_rate = rate(steps_taken()), .max_norm = options_.max_norm});
  return report;
}

std::vector<Parameter> Trainer::state() {
  std::vector<Parameter> state = model_.parameters();
  for (Parameter& moment : steps_->whole_moments()) state.push_back(std::move(moment));
  return state;
}

Model Trainer::finish() && {
  model_.set_training(false);
  return std::move(model_);
}

}  // namespace headlight::demonstration
