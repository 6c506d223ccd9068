// Training of the demonstration model, step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "headlight/gradient_tree.h"
#include "headlight/optimizer.h"
#include "tools/headlight/demonstration/model.h"

namespace headlight::demonstration {

struct TrainingOptions {
  EncoderOptions encoder = default_encoder();
  std::int64_t steps = 2000;
  std::int64_t batch = 64;  // sentences a step
  // Parts of a batch whose gradients are computed by themselves and then added, as GradientTree does: a part of what
  // the weights depend on, and who computes which of them is none. A divisor of the batch.
  std::int64_t shards = 1;
  // Those of a SavedState: what is kept between the passes, and what products multiply. Parameters are float32.
  NumberType activations = NumberType::float32;
  double learning_rate = 2e-3;  // the highest: after a fifteenth of the steps, which falls along a cosine then
  double weight_decay = 1e-2;
  double max_norm = 1.0;
  std::uint64_t seed = 1;
};

struct TrainingReport {
  Losses losses;
  double penalty = 0;
  StepReport step;  // non_finite names a parameter: the step was not taken
};

[[nodiscard]] AdamWOptions adamw_options(const TrainingOptions& options);

// Who takes the steps of a run: this process, or several of which each computes some shards of every batch.
class Steps {
 public:
  struct Shards {
    std::int64_t first;
    std::int64_t count;
  };

  virtual ~Steps() = default;
  // Those that are computed here, ascending.
  [[nodiscard]] virtual Shards shards() const = 0;
  virtual void zero_gradients() = 0;
  // The gradients are those of the next of them; behind the last one comes the step.
  virtual void add_shard(Engine& engine) = 0;
  virtual StepReport step(Engine& engine, const StepOptions& options) = 0;
  // Whether this process writes the files of the run.
  [[nodiscard]] virtual bool writes() const = 0;

  [[nodiscard]] virtual std::int64_t steps_taken() const = 0;
  virtual void set_steps_taken(std::int64_t steps) = 0;
  // Moments of all parameters, as Optimizer::state() names them: of all, where this process writes them (every one has
  // to ask), and those that it keeps, to read them again.
  [[nodiscard]] virtual std::vector<Parameter> whole_moments() = 0;
  struct Moment {
    std::string name;
    std::int64_t first;  // the place of values in all of that name
    std::span<float> values;
  };
  [[nodiscard]] virtual std::vector<Moment> own_moments() = 0;
};

// One sentence in eight has its words in any order: to know a neighbour there, one must look.
//
// Losses are those of the shards that are computed here.
//
// Step n draws its sentences, its dropout and nothing else from the seed and n. So the parameters after a step depend
// on the options alone: not on threads, and not on whether the run was stopped and went on in between.
class Trainer {
 public:
  explicit Trainer(const TrainingOptions& options);
  // make_steps(parameters): by others than this process alone.
  using MakeSteps = std::function<std::unique_ptr<Steps>(std::vector<Parameter> parameters)>;
  Trainer(const TrainingOptions& options, const MakeSteps& make_steps);

  // What a loss may have beside: adds its gradient to those of model.parameters(), and returns its value.
  using Penalty = std::function<double(Engine& engine, Model& model)>;
  void set_penalty(Penalty penalty) { penalty_ = std::move(penalty); }
  // Looks at the heads in each step's way back, before the penalty is asked; null: nobody.
  void set_visitor(HeadVisitor* visitor) { visitor_ = visitor; }

  // The next step. One that is not taken for a gradient that is not finite counts as none.
  TrainingReport step(Engine& engine);
  [[nodiscard]] std::int64_t steps_taken() const { return steps_->steps_taken(); }
  [[nodiscard]] bool done() const { return steps_taken() >= options_.steps; }

  [[nodiscard]] const TrainingOptions& options() const noexcept { return options_; }
  [[nodiscard]] Model& model() noexcept { return model_; }
  // Parameters, and the moments that the optimiser keeps of them: with the number of steps taken, all that a run is.
  // Where several processes share out the moments, all ask, and the one that writes has them.
  [[nodiscard]] std::vector<Parameter> state();
  [[nodiscard]] std::vector<Steps::Moment> own_moments() { return steps_->own_moments(); }
  [[nodiscard]] bool writes() const { return steps_->writes(); }
  void set_steps_taken(std::int64_t steps) { steps_->set_steps_taken(steps); }

  // Ends training and hands the model out, ready to compute.
  [[nodiscard]] Model finish() &&;

 private:
  Losses learn(Engine& engine, std::uint64_t number);

  TrainingOptions options_;
  Model model_;
  std::unique_ptr<Steps> steps_;
  Penalty penalty_;
  HeadVisitor* visitor_ = nullptr;
};

}  // namespace headlight::demonstration
