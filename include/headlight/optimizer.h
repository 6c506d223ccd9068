// Optimisers: how parameters follow their gradients.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/parameters.h"

namespace headlight {

// Of one step.
struct StepOptions {
  // γ, each step's own; see WarmupCosine.
  double learning_rate = 1e-3;
  // Gradients are scaled down together so that ‖all gradients‖₂ is at most this: by max_norm / (norm + 1e-6) where that
  // is below 1, as torch.nn.utils.clip_grad_norm_ does. 0: never. The gradients themselves stay as they are.
  double max_norm = 0;
};

// What a step found.
struct StepReport {
  // Of all gradients together, before clipping.
  double gradient_norm = 0;
  // Whether all gradients are finite. If not, nothing was changed, and `non_finite` is the name of the first parameter
  // whose gradient holds a NaN or an infinity.
  bool all_finite = true;
  std::string_view non_finite{};

  // Whether the parameters have changed.
  [[nodiscard]] bool taken() const noexcept { return all_finite; }
};

// What optimisers share. Parameters come from layer.parameters() after set_training(true), and stay where they are
// while the optimiser lives; each has memory of its own, so none is given twice. The same bits on any number of
// threads.
class HEADLIGHT_API Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One step along the gradients, which stay: zero_gradients() before the next backward pass. Throws
  // std::invalid_argument for a learning rate or a norm that is negative or not finite.
  StepReport step(Engine& engine, const StepOptions& options);
  void zero_gradients() noexcept { headlight::zero_gradients(parameters_); }

  // Those that it was made with.
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  // What has to be saved, beside the parameters and the number of steps, to go on with the same bits: a tensor for each
  // parameter and moment, "momentum.NAME" or "first_moment.NAME" and "second_moment.NAME", to read and to write. Throws
  // OutOfMemory.
  [[nodiscard]] std::vector<Parameter> state();
  // Internal: the two halves of step(), for who holds a part of the parameters and asks others about the rest. Σ g² of
  // every run of at most 16384 elements of a parameter, in their order; and the update, where ‖all gradients‖₂ is that.
  [[nodiscard]] std::span<const double> sums_of_squares(Engine& engine) noexcept;
  void update_for_norm(Engine& engine, const StepOptions& options, double gradient_norm);
  // Steps taken, 0 to 2⁶².
  [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
  void set_steps(std::int64_t steps);

 protected:
  // `moments`: their names, at most two, which live as long as the program. Throws std::invalid_argument for a
  // parameter without a gradient, and where values or gradients share memory (it names both parameters); OutOfMemory.
  Optimizer(std::string_view name, std::vector<Parameter> parameters, std::span<const std::string_view> moments);

  // A run of one parameter, which is a task.
  struct Run {
    std::span<float> values;
    std::span<const float> gradient;
    std::span<float> first;  // moments; empty where there are none
    std::span<float> second;
    std::size_t parameter = 0;
  };
  // The update of step number `step` (from 1), gradients multiplied by `scale`.
  virtual void update(Engine& engine, std::span<const Run> runs, double learning_rate, float scale,
                      std::int64_t step) const = 0;

 private:
  std::string_view name_;
  std::vector<Parameter> parameters_;
  std::span<const std::string_view> moments_;
  std::vector<float> memory_;
  std::vector<Run> runs_;
  std::vector<double> sums_;
  std::int64_t steps_ = 0;
};

// Of Sgd, below.
struct SgdOptions {
  // μ and λ.
  double momentum = 0;
  double weight_decay = 0;
};

// g ← gradient + λ θ; b ← μ b + g; θ ← θ − γ b (without momentum: γ g). As torch.optim.SGD.
class HEADLIGHT_API Sgd final : public Optimizer {
 public:
  // Throws std::invalid_argument for an option out of range and for parameters that Optimizer refuses, OutOfMemory.
  explicit Sgd(std::vector<Parameter> parameters, const SgdOptions& options = {});

 private:
  void update(Engine& engine, std::span<const Run> runs, double learning_rate, float scale,
              std::int64_t step) const override;

  SgdOptions options_;
};

// Of AdamW, below.
struct AdamWOptions {
  // β₁, β₂, ε and λ.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
};

// θ ← θ (1 − γ λ); m ← m + (1 − β₁)(g − m); v ← β₂ v + (1 − β₂) g²;
// θ ← θ − γ / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε). As torch.optim.AdamW (Loshchilov & Hutter 2019).
class HEADLIGHT_API AdamW final : public Optimizer {
 public:
  // Throws as Sgd does.
  explicit AdamW(std::vector<Parameter> parameters, const AdamWOptions& options = {});

 private:
  void update(Engine& engine, std::span<const Run> runs, double learning_rate, float scale,
              std::int64_t step) const override;

  AdamWOptions options_;
};

// The learning rate of step t = 0, 1, …: rises in a line to `peak` over `warmup` steps, then falls along half a cosine
// to `least` at step `total`, and stays (Loshchilov & Hutter 2017).
struct WarmupCosine {
  // The highest and the last learning rate, and the steps to either.
  double peak = 1e-3;
  double least = 0;
  std::int64_t warmup = 0;
  std::int64_t total = 1;

  // The learning rate of that step.
  [[nodiscard]] HEADLIGHT_API double operator()(std::int64_t step) const noexcept;
};

}  // namespace headlight
