#include "headlight/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <numbers>

#include "headlight/out_of_memory.h"
#include "kernels/kernels.h"
#include "layers/optimizer_runs.h"
#include "ops/check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {

namespace {

using layers::kOptimizerRun;

constexpr std::array<std::string_view, 1> kSgdMoments = {"momentum"};
constexpr std::array<std::string_view, 2> kAdamWMoments = {"first_moment", "second_moment"};

// Σ g² in float64: no square of a float overflows or vanishes there. Eight chains, for the order is fixed here and no
// compiler may make it.
double sum_of_squares(std::span<const float> gradient) noexcept {
  double sums[8] = {};
  std::size_t at = 0;
  for (; at + 8 <= gradient.size(); at += 8) {
    for (std::size_t chain = 0; chain < 8; ++chain) {
      const auto g = static_cast<double>(gradient[at + chain]);
      sums[chain] += g * g;
    }
  }
  for (; at < gradient.size(); ++at) sums[0] += static_cast<double>(gradient[at]) * static_cast<double>(gradient[at]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

void check_below_one(std::string_view name, std::string_view option, double value) {
  if (value >= 0 && value < 1) return;
  ops::fail(name, option, " is ", value, ", expected a number in [0, 1)");
}

// Runs of different parameters are different workers' work, so no two may lie over one piece of memory. Sorted by where
// they begin, places overlap somewhere only if two neighbours do.
void check_apart(std::string_view name, std::span<const Parameter> parameters) {
  struct Place {
    ops::Extent extent;
    const char* what;
    std::size_t parameter;
  };
  std::vector<Place> places;
  places.reserve(2 * parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::span<const float> values = parameters[p].values, gradient = parameters[p].gradient;
    if (values.empty()) continue;
    places.push_back({ops::extent_of(values), "values", p});
    places.push_back({ops::extent_of(gradient), "gradient", p});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    if (a.extent.begin != b.extent.begin) return a.extent.begin < b.extent.begin;
    return a.parameter < b.parameter;
  });
  const auto found = std::adjacent_find(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return ops::ranges_overlap(a.extent, b.extent);
  });
  if (found == places.end()) return;
  const auto described = [&](const Place& place) {
    return std::string(place.what) + " of parameter " + parameters[place.parameter].name;
  };
  ops::fail(name, described(found[0]), " and ", described(found[1]), " share memory, expected each to have its own");
}

template <class Runs, class Function>
void for_each_run(Engine& engine, const Runs& runs, Function f) {
  std::size_t elements = 0;
  for (const auto& run : runs) elements += run.values.size();
  const auto count = static_cast<std::int64_t>(runs.size());
  const int workers = runtime::workers_for(engine, count, runtime::costs::kOptimizer * static_cast<double>(elements));
  runtime::parallel_for(engine, count, workers, [&](std::int64_t task, int) { f(static_cast<std::size_t>(task)); });
}

}  // namespace

Optimizer::Optimizer(std::string_view name, std::vector<Parameter> parameters,
                     std::span<const std::string_view> moments)
    : name_(name), parameters_(std::move(parameters)), moments_(moments) {
  std::size_t elements = 0;
  std::size_t runs = 0;
  for (const Parameter& parameter : parameters_) {
    if (parameter.gradient.size() != parameter.values.size()) {
      ops::fail(name_, "parameter ", parameter.name, " has no gradient, expected those of a layer in training");
    }
    elements += parameter.values.size();
    runs += divide_up(parameter.values.size(), kOptimizerRun);
  }
  try {
    check_apart(name_, parameters_);
    memory_.resize(elements * moments_.size());
    runs_.reserve(runs);
    sums_.resize(runs);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(name_, elements * moments_.size() * sizeof(float) + runs * (sizeof(Run) + sizeof(double)));
  }
  std::size_t before = 0;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const Parameter& parameter = parameters_[p];
    for (std::size_t at = 0; at < parameter.values.size(); at += kOptimizerRun) {
      const std::size_t count = std::min(kOptimizerRun, parameter.values.size() - at);
      const auto moment = [&](std::size_t index) {
        if (index >= moments_.size()) return std::span<float>();
        return std::span<float>(memory_).subspan(index * elements + before + at, count);
      };
      runs_.push_back(
          {parameter.values.subspan(at, count), parameter.gradient.subspan(at, count), moment(0), moment(1), p});
    }
    before += parameter.values.size();
  }
}

StepReport Optimizer::step(Engine& engine, const StepOptions& options) {
  layers::check_step(name_, options);
  const StepReport report = layers::report_of(sums_of_squares(engine), [&](std::size_t run) -> std::string_view {
    return parameters_[runs_[run].parameter].name;
  });
  if (report.taken()) update_for_norm(engine, options, report.gradient_norm);
  return report;
}

std::span<const double> Optimizer::sums_of_squares(Engine& engine) noexcept {
  for_each_run(engine, runs_, [&](std::size_t run) { sums_[run] = sum_of_squares(runs_[run].gradient); });
  return sums_;
}

void Optimizer::update_for_norm(Engine& engine, const StepOptions& options, double gradient_norm) {
  const double scale = options.max_norm > 0 ? std::min(1.0, options.max_norm / (gradient_norm + 1e-6)) : 1.0;
  update(engine, runs_, options.learning_rate, static_cast<float>(scale), ++steps_);
}

std::vector<Parameter> Optimizer::state() try {
  std::vector<Parameter> list;
  const std::size_t elements = moments_.empty() ? 0 : memory_.size() / moments_.size();
  list.reserve(moments_.size() * parameters_.size());
  for (std::size_t moment = 0; moment < moments_.size(); ++moment) {
    std::size_t at = moment * elements;
    for (const Parameter& parameter : parameters_) {
      list.push_back({std::string(moments_[moment]) + "." + parameter.name, parameter.shape,
                      std::span<float>(memory_).subspan(at, parameter.values.size())});
      at += parameter.values.size();
    }
  }
  return list;
} catch (const std::bad_alloc&) {
  throw OutOfMemory(name_, moments_.size() * parameters_.size() * sizeof(Parameter));
}

void Optimizer::set_steps(std::int64_t steps) {
  // More than anybody takes, and room to count on.
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (steps < 0 || steps > kMost) ops::fail(name_, "steps is ", steps, ", expected 0 to 2^62");
  steps_ = steps;
}

Sgd::Sgd(std::vector<Parameter> parameters, const SgdOptions& options)
    : Optimizer("Sgd", std::move(parameters), std::span(kSgdMoments).first(options.momentum != 0 ? 1 : 0)),
      options_(options) {
  layers::check_not_negative("Sgd", "momentum", options.momentum);
  layers::check_not_negative("Sgd", "weight_decay", options.weight_decay);
}

void Sgd::update(Engine& engine, std::span<const Run> runs, double learning_rate, float scale, std::int64_t) const {
  const auto kernel = kernels::optimizer_kernels(engine.isa()).sgd;
  for_each_run(engine, runs, [&](std::size_t index) {
    const Run& run = runs[index];
    kernel({.values = run.values.data(),
            .gradient = run.gradient.data(),
            .momentum = run.first.empty() ? nullptr : run.first.data(),
            .count = static_cast<std::int64_t>(run.values.size()),
            .scale = scale,
            .weight_decay = static_cast<float>(options_.weight_decay),
            .decay = static_cast<float>(options_.momentum),
            .rate = static_cast<float>(learning_rate)});
  });
}

AdamW::AdamW(std::vector<Parameter> parameters, const AdamWOptions& options)
    : Optimizer("AdamW", std::move(parameters), kAdamWMoments), options_(options) {
  check_below_one("AdamW", "beta1", options.beta1);
  check_below_one("AdamW", "beta2", options.beta2);
  layers::check_not_negative("AdamW", "epsilon", options.epsilon);
  layers::check_not_negative("AdamW", "weight_decay", options.weight_decay);
}

// The numbers of a step are worked out in float64 and rounded once, as PyTorch does.
void AdamW::update(Engine& engine, std::span<const Run> runs, double learning_rate, float scale,
                   std::int64_t step) const {
  const auto t = static_cast<double>(step);
  const double rate = learning_rate / (1 - std::pow(options_.beta1, t));
  const double root = std::sqrt(1 - std::pow(options_.beta2, t));
  const auto kernel = kernels::optimizer_kernels(engine.isa()).adamw;
  for_each_run(engine, runs, [&](std::size_t index) {
    const Run& run = runs[index];
    kernel({.values = run.values.data(),
            .gradient = run.gradient.data(),
            .first = run.first.data(),
            .second = run.second.data(),
            .count = static_cast<std::int64_t>(run.values.size()),
            .scale = scale,
            .keep = static_cast<float>(1 - learning_rate * options_.weight_decay),
            .first_weight = static_cast<float>(1 - options_.beta1),
            .second_decay = static_cast<float>(options_.beta2),
            .second_weight = static_cast<float>(1 - options_.beta2),
            .root = static_cast<float>(root),
            .epsilon = static_cast<float>(options_.epsilon),
            .rate = static_cast<float>(rate)});
  });
}

double WarmupCosine::operator()(std::int64_t step) const noexcept {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (step >= total) return least;
  const double part = static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
  return least + (peak - least) * 0.5 * (1 + std::cos(std::numbers::pi * part));
}

}  // namespace headlight
