// What training may ask of heads beside the loss, each term with its gradient.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/rows.h"
#include "headlight/analysis/diversity.h"
#include "headlight/gemm.h"
#include "ops/check.h"

namespace headlight::analysis {
namespace {

void check_gradient(std::string_view operation, const View<const float, 2>& weight,
                    const PenaltyGradient<2>& gradient) {
  if (!gradient.into) return;
  ops::check_view(operation, "gradient", gradient.into);
  ops::check_shape(operation, "gradient", gradient.into.shape, weight.shape, "the shape of what it is of");
}

// a [H, H], symmetric.
class HeadPairs {
 public:
  explicit HeadPairs(std::int64_t heads) : heads_(heads), values_(static_cast<std::size_t>(heads * heads)) {}
  [[nodiscard]] double& operator()(std::int64_t a, std::int64_t b) noexcept {
    return values_[static_cast<std::size_t>(a * heads_ + b)];
  }

 private:
  std::int64_t heads_;
  std::vector<double> values_;
};

}  // namespace

// With c_ab = ŵ_a · ŵ_b the penalty is Σ_a≠b c_ab², and its gradient by w_a is 4 Σ_b≠a c_ab (ŵ_b − c_ab ŵ_a) / ‖w_a‖.
Measure orthogonality_penalty(View<const float, 2> weight, std::int64_t heads, const PenaltyGradient<2>& gradient) {
  constexpr std::string_view kName = "orthogonality_penalty";
  const std::int64_t rows = rows_of_head(kName, weight, heads);
  check_gradient(kName, weight, gradient);
  const auto at = [&](std::int64_t head, std::int64_t i, std::int64_t d) {
    return static_cast<double>(weight(head * rows + i, d));
  };
  HeadPairs cosines(heads);
  std::vector<double> norms(static_cast<std::size_t>(heads));
  for (std::int64_t a = 0; a < heads; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      double sum = 0;
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t d = 0; d < weight.extent(1); ++d) sum += at(a, i, d) * at(b, i, d);
      }
      cosines(a, b) = cosines(b, a) = sum;
    }
    norms[static_cast<std::size_t>(a)] = std::sqrt(cosines(a, a));
    if (cosines(a, a) == 0) return Undefined::zero;
  }
  double penalty = 0;
  for (std::int64_t a = 0; a < heads; ++a) {
    for (std::int64_t b = 0; b < heads; ++b) {
      cosines(a, b) /= norms[static_cast<std::size_t>(a)] * norms[static_cast<std::size_t>(b)];
      if (a != b) penalty += cosines(a, b) * cosines(a, b);
    }
  }
  if (!gradient.into || !std::isfinite(penalty)) return penalty;
  for (std::int64_t a = 0; a < heads; ++a) {
    const double scale = 4 * gradient.scale / norms[static_cast<std::size_t>(a)];
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t d = 0; d < weight.extent(1); ++d) {
        double sum = 0;
        for (std::int64_t b = 0; b < heads; ++b) {
          if (b == a) continue;
          const double along = cosines(a, b) * at(a, i, d) / norms[static_cast<std::size_t>(a)];
          sum += cosines(a, b) * (at(b, i, d) / norms[static_cast<std::size_t>(b)] - along);
        }
        gradient.into(a * rows + i, d) += static_cast<float>(scale * sum);
      }
    }
  }
  return penalty;
}

namespace {

// f(a, b, run) for the runs of the rows of `products` that each lie in one block S_ab; of a block's own, from top to
// bottom.
template <class Function>
void for_each_run(Tensor<float, 2>& products, std::int64_t heads, Function f) {
  const std::int64_t rows = products.shape()[0] / heads;
  for (std::int64_t i = 0; i < heads * rows; ++i) {
    for (std::int64_t b = 0; b < heads; ++b) {
      f(i / rows, b, std::span<float>(&products(i, b * rows), static_cast<std::size_t>(rows)));
    }
  }
}

// With S = W Wᵀ, m_ab = ‖S_ab‖²_F and s_a = ‖S_aa‖_F the penalty is Σ_a≠b c_ab, c_ab = m_ab / (s_a s_b); its gradient
// by W_a is 4 Σ_b≠a (S_ab W_b / (s_a s_b) − c_ab S_aa W_a / s_a²): a product T W, where T, symmetric, is made of the
// blocks of S scaled one by one. `products` is S, and where a gradient is asked for T afterwards.
Measure scale_blocks(Tensor<float, 2>& products, std::int64_t heads, const PenaltyGradient<2>& gradient,
                     Undefined without_norm) {
  HeadPairs squares(heads), factors(heads);
  for_each_run(products, heads, [&](std::int64_t a, std::int64_t b, std::span<const float> run) {
    double sum = squares(a, b);
    for (const float value : run) sum += static_cast<double>(value) * static_cast<double>(value);
    squares(a, b) = sum;
  });
  std::vector<double> norms;
  for (std::int64_t a = 0; a < heads; ++a) {
    norms.push_back(std::sqrt(squares(a, a)));
    if (norms.back() == 0) return without_norm;
  }
  double penalty = 0;
  for (std::int64_t a = 0; a < heads; ++a) {
    const double norm = norms[static_cast<std::size_t>(a)];
    double of_head = 0;
    for (std::int64_t b = 0; b < heads; ++b) {
      if (b == a) continue;
      factors(a, b) = 4 * gradient.scale / (norm * norms[static_cast<std::size_t>(b)]);
      of_head += squares(a, b) / (norm * norms[static_cast<std::size_t>(b)]);
    }
    factors(a, a) = -4 * gradient.scale * of_head / (norm * norm);
    penalty += of_head;
  }
  if (!gradient.into) return penalty;
  for_each_run(products, heads, [&](std::int64_t a, std::int64_t b, std::span<float> run) {
    for (float& value : run) value = static_cast<float>(static_cast<double>(value) * factors(a, b));
  });
  return penalty;
}

// x without the mean of its rows.
Tensor<float, 2> centred(const View<const float, 2>& x) {
  std::vector<double> means(static_cast<std::size_t>(x.extent(1)));
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t e = 0; e < x.extent(1); ++e) means[static_cast<std::size_t>(e)] += static_cast<double>(x(n, e));
  }
  Tensor<float, 2> result(x.shape);
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      const double mean = means[static_cast<std::size_t>(e)] / static_cast<double>(x.extent(0));
      result(n, e) = static_cast<float>(static_cast<double>(x(n, e)) - mean);
    }
  }
  return result;
}

}  // namespace

Measure subspace_penalty(Engine& engine, View<const float, 2> weight, std::int64_t heads,
                         const PenaltyGradient<2>& gradient) {
  constexpr std::string_view kName = "subspace_penalty";
  const std::int64_t rows = rows_of_head(kName, weight, heads);
  check_gradient(kName, weight, gradient);
  Tensor<float, 2> products({heads * rows, heads * rows});
  gemm(engine, weight, weight, products, {.transpose_b = Transpose::yes});
  const Measure penalty = scale_blocks(products, heads, gradient, Undefined::zero);
  if (gradient.into && penalty) gemm(engine, products, weight, gradient.into, {.beta = 1.0f});
  return penalty;
}

// The same with W = Xᵀ, X the centred outputs. The gradient X T has rows of mean 0 as X has, and so is that by what was
// centred too.
Measure similarity_penalty(Engine& engine, View<const float, 2> outputs, std::int64_t heads,
                           const PenaltyGradient<2>& gradient) {
  constexpr std::string_view kName = "similarity_penalty";
  ops::check_view(kName, "outputs", outputs);
  const std::int64_t width = outputs.extent(1);
  if (heads < 1 || width % heads != 0) {
    ops::fail(kName, "outputs have " + std::to_string(width) + " columns, expected a multiple of the " +
                         std::to_string(heads) + " heads");
  }
  check_gradient(kName, outputs, gradient);
  if (outputs.extent(0) < 2) return outputs.extent(0) == 0 ? Undefined::no_rows : Undefined::too_few_rows;
  const Tensor<float, 2> x = centred(outputs);
  Tensor<float, 2> products({width, width});
  gemm(engine, x, x, products, {.transpose_a = Transpose::yes});
  const Measure penalty = scale_blocks(products, heads, gradient, Undefined::constant);
  if (gradient.into && penalty) gemm(engine, x, products, gradient.into, {.beta = 1.0f});
  return penalty;
}

DiversityPenalty::DiversityPenalty(std::int64_t layers, std::int64_t heads, const DiversityWeights& weights)
    : layers_(layers), heads_(heads), weights_(weights) {
  for (const auto& [name, count] : {std::pair{"layers", layers}, {"heads", heads}}) {
    if (count < 1)
      ops::fail("DiversityPenalty", std::string(name) + " is " + std::to_string(count) + ", expected at least 1");
  }
  for (const auto& [name, weight] : {std::pair{"subspaces", weights.subspaces},
                                     {"orthogonality", weights.orthogonality},
                                     {"similarity", weights.similarity},
                                     {"disagreement", weights.disagreement}}) {
    if (!(weight >= 0) || !std::isfinite(weight)) {
      ops::fail("DiversityPenalty",
                std::string(name) + " is " + std::to_string(weight) + ", expected a finite number ≥ 0");
    }
  }
}

void DiversityPenalty::visit(Engine& engine, std::int64_t layer, View<const float, 3> outputs,
                             View<float, 3> gradient) {
  static_cast<void>(layer);
  if (heads_ < 2 || outputs.extent(0) == 0) return;
  const double share = 1 / static_cast<double>(layers_) / static_cast<double>(outputs.extent(0));
  const std::int64_t length = outputs.extent(1), width = outputs.extent(2), head_dim = width / heads_;
  for (std::int64_t b = 0; b < outputs.extent(0); ++b) {
    const float* const x = outputs.data + b * outputs.stride(0);
    float* const to = gradient.data + b * gradient.stride(0);
    if (weights_.similarity > 0) {
      const double scale = weights_.similarity * share / static_cast<double>(heads_ * heads_ - heads_);
      const PenaltyGradient<2> into = {{to, {length, width}, {gradient.stride(1), 1}}, scale};
      const View<const float, 2> rows(x, {length, width}, {outputs.stride(1), 1});
      value_ += scale * similarity_penalty(engine, rows, heads_, into).value_or(0);
    }
    if (weights_.disagreement > 0) {
      const double scale = -weights_.disagreement * share;
      const std::array<std::int64_t, 3> shape = {length, heads_, head_dim};
      const PenaltyGradient<3> into = {{to, shape, {gradient.stride(1), head_dim, 1}}, scale};
      const View<const float, 3> heads(x, shape, {outputs.stride(1), head_dim, 1});
      value_ += scale * output_disagreement(heads, into).value_or(0);
    }
  }
}

void DiversityPenalty::add(Engine& engine, View<const float, 2> weight, std::int64_t heads, View<float, 2> gradient) {
  if (heads < 2) return;
  const auto pairs = static_cast<double>(heads * heads - heads);
  // Half for W_Q, half for W_K.
  const double share = 0.5 / pairs / static_cast<double>(layers_);
  if (weights_.subspaces > 0) {
    const double scale = weights_.subspaces * share;
    value_ += scale * subspace_penalty(engine, weight, heads, {gradient, scale}).value_or(0);
  }
  if (weights_.orthogonality > 0) {
    const double scale = weights_.orthogonality * share;
    value_ += scale * orthogonality_penalty(weight, heads, {gradient, scale}).value_or(0);
  }
}

namespace {

// Rows of a parameter that heads project by, and the rows that all query heads have.
struct ProjectionRows {
  std::int64_t first;
  std::int64_t rows;
  std::int64_t of_query;
};

// W_Q and W_K of a parameter; of none, nothing. Heads of keys are as high as those of queries, but may be fewer.
std::vector<ProjectionRows> projections_of(const Parameter& parameter, std::span<const Parameter> all) {
  const std::string_view name = parameter.name;
  const std::int64_t rows = parameter.shape[0];
  if (name.ends_with("in_proj_weight")) {
    const std::int64_t width = parameter.shape[1];
    return {{0, width, width}, {width, (rows - width) / 2, width}};
  }
  constexpr std::string_view kKey = "attention.key.weight";
  if (name.ends_with(kKey)) {
    const std::string query = std::string(name.substr(0, name.size() - kKey.size())) + "attention.query.weight";
    for (const Parameter& other : all) {
      if (other.name == query) return {{0, rows, other.shape[0]}};
    }
  }
  for (const std::string_view one : {"q_proj_weight", "k_proj_weight", "attention.query.weight"}) {
    if (name.ends_with(one)) return {{0, rows, rows}};
  }
  return {};
}

}  // namespace

void DiversityPenalty::add(Engine& engine, std::span<const Parameter> parameters) {
  if (weights_.subspaces == 0 && weights_.orthogonality == 0) return;
  for (const Parameter& parameter : parameters) {
    for (const auto& [first, rows, of_query] : projections_of(parameter, parameters)) {
      if (parameter.gradient.size() != parameter.values.size()) {
        ops::fail("DiversityPenalty", parameter.name + " has no gradient, expected a layer in training");
      }
      if (rows == 0) continue;
      const std::int64_t width = parameter.shape[1];
      const std::array<std::int64_t, 2> shape = {rows, width};
      add(engine, {parameter.values.data() + first * width, shape}, heads_ * rows / of_query,
          {parameter.gradient.data() + first * width, shape});
    }
  }
}

double DiversityPenalty::take() noexcept { return std::exchange(value_, 0); }

}  // namespace headlight::analysis
