// Training of the demonstration model, step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "headlight/optimizer.h"
#include "tools/headlight/demonstration/model.h"

namespace headlight::demonstration {

struct TrainingOptions {
  EncoderOptions encoder = default_encoder();
  std::int64_t steps = 2000;
  std::int64_t batch = 64;      // sentences a step
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

// One sentence in eight has its words in any order: to know a neighbour there, one must look.
//
// Step n draws its sentences, its dropout and nothing else from the seed and n. So the parameters after a step depend
// on the options alone: not on threads, and not on whether the run was stopped and went on in between.
class Trainer {
 public:
  explicit Trainer(const TrainingOptions& options);

  // What a loss may have beside: adds its gradient to those of model.parameters(), and returns its value.
  using Penalty = std::function<double(Engine& engine, Model& model)>;
  void set_penalty(Penalty penalty) { penalty_ = std::move(penalty); }
  // Looks at the heads in each step's way back, before the penalty is asked; null: nobody.
  void set_visitor(HeadVisitor* visitor) { visitor_ = visitor; }

  // The next step. One that is not taken for a gradient that is not finite counts as none.
  TrainingReport step(Engine& engine);
  [[nodiscard]] std::int64_t steps_taken() const noexcept { return optimizer_.steps(); }
  [[nodiscard]] bool done() const noexcept { return steps_taken() >= options_.steps; }

  [[nodiscard]] const TrainingOptions& options() const noexcept { return options_; }
  [[nodiscard]] Model& model() noexcept { return model_; }
  // Parameters, and the moments that the optimiser keeps of them: with the number of steps taken, all that a run is.
  [[nodiscard]] std::vector<Parameter> state();
  void set_steps_taken(std::int64_t steps) { optimizer_.set_steps(steps); }

  // Ends training and hands the model out, ready to compute.
  [[nodiscard]] Model finish() &&;

 private:
  TrainingOptions options_;
  Model model_;
  AdamW optimizer_;
  Penalty penalty_;
  HeadVisitor* visitor_ = nullptr;
};

}  // namespace headlight::demonstration
