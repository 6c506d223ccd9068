// Plain twins, in float64, of what lib/analysis measures on heads: each formula as its paper writes it.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "headlight/tensor.h"

namespace headlight::reference {

// Means over the rows of softmax weights [R, L]; row r belongs to token r.
inline double entropy(View<const double, 2> weights) {
  double sum = 0;
  for (std::int64_t i = 0; i < weights.extent(0); ++i) {
    for (std::int64_t j = 0; j < weights.extent(1); ++j) {
      if (weights(i, j) > 0) sum -= weights(i, j) * std::log(weights(i, j));
    }
  }
  return sum / static_cast<double>(weights.extent(0));
}

inline double confidence(View<const double, 2> weights) {
  double sum = 0;
  for (std::int64_t i = 0; i < weights.extent(0); ++i) {
    double largest = 0;
    for (std::int64_t j = 0; j < weights.extent(1); ++j) largest = std::max(largest, weights(i, j));
    sum += largest;
  }
  return sum / static_cast<double>(weights.extent(0));
}

inline double attention_distance(View<const double, 2> weights) {
  double sum = 0;
  for (std::int64_t i = 0; i < weights.extent(0); ++i) {
    for (std::int64_t j = 0; j < weights.extent(1); ++j) sum += weights(i, j) * std::abs(static_cast<double>(i - j));
  }
  return sum / static_cast<double>(weights.extent(0));
}

// Σ_j ½ a ln(a/m) + ½ b ln(b/m), m = (a + b) / 2.
inline double jensen_shannon(View<const double, 2> a, View<const double, 2> b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.extent(0); ++i) {
    for (std::int64_t j = 0; j < a.extent(1); ++j) {
      const double m = (a(i, j) + b(i, j)) / 2;
      for (const double p : {a(i, j), b(i, j)}) sum += p > 0 ? p / 2 * std::log(p / m) : 0;
    }
  }
  return sum / static_cast<double>(a.extent(0));
}

// Where the weight of rows [R, L] lies, row r being that of tokens[r]: means over the rows.
struct Places {
  // Shares of rows with one largest weight, and it is there.
  double peaks_previous = 0, peaks_next = 0, peaks_itself = 0, peaks_first = 0, peaks_separator = 0;
  // Weight on token 0, on the other separators, within `reach` tokens; and how much of the first two together and of
  // the third there would be if all weights were equal.
  double weight_first = 0, weight_separators = 0, weight_local = 0, even_no_op = 0, even_local = 0;
  std::vector<double> profile;  // weight at j − i = −far … far
};
inline Places places(View<const double, 2> weights, std::span<const std::int64_t> tokens,
                     std::span<const std::int64_t> separators, std::int64_t reach, std::int64_t far) {
  Places sums;
  sums.profile.resize(static_cast<std::size_t>(2 * far + 1));
  const auto rows = static_cast<double>(weights.extent(0)), length = static_cast<double>(weights.extent(1));
  const auto is_separator = [&](std::int64_t j) {
    return std::find(separators.begin(), separators.end(), j) != separators.end();
  };
  for (std::int64_t r = 0; r < weights.extent(0); ++r) {
    const std::int64_t i = tokens[static_cast<std::size_t>(r)];
    for (std::int64_t j = 0; j < weights.extent(1); ++j) {
      const double weight = weights(r, j) / rows, even = 1 / length / rows;
      bool is_largest = weights.extent(1) > 1;
      for (std::int64_t k = 0; k < weights.extent(1); ++k)
        is_largest = is_largest && (k == j || weights(r, k) < weights(r, j));
      if (is_largest && j == i - 1) sums.peaks_previous += 1 / rows;
      if (is_largest && j == i + 1) sums.peaks_next += 1 / rows;
      if (is_largest && j == i) sums.peaks_itself += 1 / rows;
      if (is_largest && j == 0) sums.peaks_first += 1 / rows;
      if (is_largest && is_separator(j)) sums.peaks_separator += 1 / rows;
      if (j == 0) sums.weight_first += weight;
      if (j != 0 && is_separator(j)) sums.weight_separators += weight;
      if (j == 0 || is_separator(j)) sums.even_no_op += even;
      if (std::abs(j - i) <= reach) sums.weight_local += weight;
      if (std::abs(j - i) <= reach) sums.even_local += even;
      if (std::abs(j - i) <= far) sums.profile[static_cast<std::size_t>(j - i + far)] += weight;
    }
  }
  return sums;
}

// x xᵀ, [n, n].
inline Tensor<double, 2> linear_kernel(View<const double, 2> x) {
  Tensor<double, 2> kernel({x.extent(0), x.extent(0)});
  for (std::int64_t i = 0; i < x.extent(0); ++i) {
    for (std::int64_t j = 0; j < x.extent(0); ++j) {
      for (std::int64_t d = 0; d < x.extent(1); ++d) kernel(i, j) += x(i, d) * x(j, d);
    }
  }
  return kernel;
}

// Song et al. 2012, equation 5: [tr(K̃L̃) + 1ᵀK̃1 · 1ᵀL̃1 / ((n−1)(n−2)) − 2/(n−2) · 1ᵀK̃L̃1] / (n(n−3)), diagonals left out.
inline double hsic1(View<const double, 2> k, View<const double, 2> l) {
  const std::int64_t n = k.extent(0);
  double trace = 0, k_sum = 0, l_sum = 0, mixed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double k_row = 0, l_row = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      if (j == i) continue;
      trace += k(i, j) * l(j, i);
      k_row += k(i, j);
      l_row += l(i, j);
    }
    k_sum += k_row;
    l_sum += l_row;
    mixed += k_row * l_row;
  }
  const auto count = static_cast<double>(n);
  return (trace + k_sum * l_sum / ((count - 1) * (count - 2)) - 2 * mixed / (count - 2)) / (count * (count - 3));
}

// Nguyen et al. 2021, over minibatches of the rows [offsets[b], offsets[b+1]) of x and y.
inline double minibatch_cka(View<const double, 2> x, View<const double, 2> y, std::span<const std::int64_t> offsets) {
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    const auto part = [&](const View<const double, 2>& all) {
      return linear_kernel(View<const double, 2>(all.data + offsets[b] * all.stride(0),
                                                 {offsets[b + 1] - offsets[b], all.extent(1)}, all.strides));
    };
    const Tensor<double, 2> k = part(x), l = part(y);
    xy += hsic1(k, l);
    xx += hsic1(k, k);
    yy += hsic1(l, l);
  }
  return xy / std::sqrt(xx * yy);
}

// Every column less its mean.
inline Tensor<double, 2> centred(View<const double, 2> x) {
  Tensor<double, 2> result(x.shape);
  for (std::int64_t d = 0; d < x.extent(1); ++d) {
    double sum = 0;
    for (std::int64_t n = 0; n < x.extent(0); ++n) sum += x(n, d);
    for (std::int64_t n = 0; n < x.extent(0); ++n) result(n, d) = x(n, d) - sum / static_cast<double>(x.extent(0));
  }
  return result;
}

// ‖yᵀx‖²_F
inline double squared_product(View<const double, 2> x, View<const double, 2> y) {
  double squares = 0;
  for (std::int64_t i = 0; i < x.extent(1); ++i) {
    for (std::int64_t j = 0; j < y.extent(1); ++j) {
      double sum = 0;
      for (std::int64_t n = 0; n < x.extent(0); ++n) sum += x(n, i) * y(n, j);
      squares += sum * sum;
    }
  }
  return squares;
}

// Kornblith et al. 2019, linear, over all rows.
inline double cka(View<const double, 2> x, View<const double, 2> y) {
  const Tensor<double, 2> a = centred(x), b = centred(y);
  return squared_product(a, b) / std::sqrt(squared_product(a, a) * squared_product(b, b));
}

// The singular values of a, as many as it has columns, descending: Jacobi's rotations of pairs of columns until all are
// at right angles.
inline std::vector<double> singular_values(Tensor<double, 2> a) {
  const auto [rows, columns] = a.shape();
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (std::int64_t p = 0; p < columns; ++p) {
      for (std::int64_t q = p + 1; q < columns; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (std::int64_t n = 0; n < rows; ++n) {
          pp += a(n, p) * a(n, p);
          qq += a(n, q) * a(n, q);
          pq += a(n, p) * a(n, q);
        }
        if (pq == 0) continue;
        const double zeta = (qq - pp) / (2 * pq);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
        const double c = 1 / std::hypot(1.0, t), s = t * c;
        for (std::int64_t n = 0; n < rows; ++n) {
          const double before = a(n, p);
          a(n, p) = c * before - s * a(n, q);
          a(n, q) = s * before + c * a(n, q);
        }
      }
    }
  }
  std::vector<double> values;
  for (std::int64_t p = 0; p < columns; ++p) {
    double squares = 0;
    for (std::int64_t n = 0; n < rows; ++n) squares += a(n, p) * a(n, p);
    values.push_back(std::sqrt(squares));
  }
  std::sort(values.rbegin(), values.rend());
  return values;
}

// Roy & Vetterli 2007: exp of the entropy of the singular values of the centred rows, which sum to 1.
inline double effective_rank(View<const double, 2> x) {
  double sum = 0, entropy_of_values = 0;
  const std::vector<double> values = singular_values(centred(x));
  for (const double value : values) sum += value;
  for (const double value : values) entropy_of_values -= value > 0 ? value / sum * std::log(value / sum) : 0;
  return std::exp(entropy_of_values);
}

// Rows made orthonormal one after another.
inline Tensor<double, 2> gram_schmidt(View<const double, 2> a) {
  Tensor<double, 2> q(a.shape);
  for (std::int64_t i = 0; i < a.extent(0); ++i) {
    for (std::int64_t d = 0; d < a.extent(1); ++d) q(i, d) = a(i, d);
    for (std::int64_t j = 0; j < i; ++j) {
      double sum = 0;
      for (std::int64_t d = 0; d < a.extent(1); ++d) sum += q(j, d) * q(i, d);
      for (std::int64_t d = 0; d < a.extent(1); ++d) q(i, d) -= sum * q(j, d);
    }
    double squares = 0;
    for (std::int64_t d = 0; d < a.extent(1); ++d) squares += q(i, d) * q(i, d);
    for (std::int64_t d = 0; d < a.extent(1); ++d) q(i, d) /= std::sqrt(squares);
  }
  return q;
}

// Cosines of the principal angles between the row spaces of a [p, E] and b [q, E], q ≤ p, descending; the rows of each
// independent.
inline std::vector<double> cosines_of_angles(View<const double, 2> a, View<const double, 2> b) {
  const Tensor<double, 2> p = gram_schmidt(a), q = gram_schmidt(b);
  Tensor<double, 2> product({a.extent(0), b.extent(0)});
  for (std::int64_t i = 0; i < a.extent(0); ++i) {
    for (std::int64_t j = 0; j < b.extent(0); ++j) {
      for (std::int64_t d = 0; d < a.extent(1); ++d) product(i, j) += p(i, d) * q(j, d);
    }
  }
  return singular_values(std::move(product));
}

// The mean of cos² of those angles.
inline double subspace_overlap(View<const double, 2> a, View<const double, 2> b) {
  double squares = 0;
  const std::vector<double> cosines = cosines_of_angles(a, b);
  for (const double cosine : cosines) squares += cosine * cosine;
  return squares / static_cast<double>(cosines.size());
}

// The CKA of pairs of different heads, each [N, D] of x [N, H·D], summed.
inline double similarity_penalty(View<const double, 2> x, std::int64_t heads) {
  const std::int64_t head_dim = x.extent(1) / heads;
  const auto head = [&](std::int64_t h) {
    return View<const double, 2>(x.data + h * head_dim, {x.extent(0), head_dim}, x.strides);
  };
  double penalty = 0;
  for (std::int64_t a = 0; a < heads; ++a) {
    for (std::int64_t b = 0; b < heads; ++b) penalty += a == b ? 0 : cka(head(a), head(b));
  }
  return penalty;
}

// Rows of w, [H, K], are heads: ‖ŵŵᵀ − I‖²_F.
inline double orthogonality_penalty(View<const double, 2> w) {
  const Tensor<double, 2> products = linear_kernel(w);
  double penalty = 0;
  for (std::int64_t a = 0; a < w.extent(0); ++a) {
    for (std::int64_t b = 0; b < w.extent(0); ++b) {
      const double cosine = products(a, b) / std::sqrt(products(a, a) * products(b, b));
      penalty += (cosine - (a == b ? 1 : 0)) * (cosine - (a == b ? 1 : 0));
    }
  }
  return penalty;
}

// Rows of w [H·D, E] are those of heads: Σ_a≠b ‖w_a w_bᵀ‖²_F / (‖w_a w_aᵀ‖_F ‖w_b w_bᵀ‖_F).
inline double subspace_penalty(View<const double, 2> w, std::int64_t heads) {
  const std::int64_t rows = w.extent(0) / heads;
  const Tensor<double, 2> products = linear_kernel(w);
  Tensor<double, 2> squares({heads, heads});
  for (std::int64_t i = 0; i < w.extent(0); ++i) {
    for (std::int64_t j = 0; j < w.extent(0); ++j) squares(i / rows, j / rows) += products(i, j) * products(i, j);
  }
  double penalty = 0;
  for (std::int64_t a = 0; a < heads; ++a) {
    for (std::int64_t b = 0; b < heads; ++b) {
      if (a != b) penalty += squares(a, b) / std::sqrt(squares(a, a) * squares(b, b));
    }
  }
  return penalty;
}

// Li et al. 2018: −H⁻² Σ_ab cos(w_a, w_b) over rows, and −H⁻² Σ_ab w_a · w_b / rows for positions [H, R · L].
inline double cosine_disagreement(View<const double, 2> w) {
  const Tensor<double, 2> products = linear_kernel(w);
  double sum = 0;
  for (std::int64_t a = 0; a < w.extent(0); ++a) {
    for (std::int64_t b = 0; b < w.extent(0); ++b) sum += products(a, b) / std::sqrt(products(a, a) * products(b, b));
  }
  return -sum / static_cast<double>(w.extent(0) * w.extent(0));
}

inline double position_disagreement(View<const double, 2> weights, std::int64_t rows) {
  const Tensor<double, 2> products = linear_kernel(weights);
  double sum = 0;
  for (const double product : products) sum += product;
  return -sum / static_cast<double>(weights.extent(0) * weights.extent(0) * rows);
}

// Michel et al. 2019: the mean over samples of |Σ x ∘ g|, x, g [N, D].
inline double importance(View<const double, 2> x, View<const double, 2> g, std::span<const std::int64_t> offsets) {
  double sum = 0;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    double product = 0;
    for (std::int64_t n = offsets[s]; n < offsets[s + 1]; ++n) {
      for (std::int64_t d = 0; d < x.extent(1); ++d) product += x(n, d) * g(n, d);
    }
    sum += std::abs(product);
  }
  return sum / static_cast<double>(offsets.size() - 1);
}

}  // namespace headlight::reference
