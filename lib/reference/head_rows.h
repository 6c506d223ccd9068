// Plain twins of the kernels that lib/analysis goes over rows with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "headlight/tensor.h"

namespace headlight::reference {

// Softmax weights [L] of one token: Σ_j p_j, Σ_j p_j |j − token|, the smallest of them and 0, the largest of them and
// 0, and where the only one lies that comes within 2⁻²⁰ of a largest above 0; −1 where several do.
struct WeightRow {
  double sum = 0, distance = 0, least = 0, largest = 0;
  std::int64_t peak = -1;
};
inline WeightRow weight_row(View<const double, 1> p, std::int64_t token) {
  WeightRow row;
  for (std::int64_t j = 0; j < p.extent(0); ++j) {
    row.sum += p(j);
    row.distance += p(j) * std::abs(static_cast<double>(j - token));
    row.least = std::min(row.least, p(j));
    row.largest = std::max(row.largest, p(j));
  }
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < p.extent(0); ++j) {
    if (p(j) < row.largest * (1 - 0x1p-20)) continue;
    row.peak = j;
    ++count;
  }
  if (count != 1 || row.largest == 0) row.peak = -1;
  return row;
}

// The mean of the rows of x [N, D].
inline Tensor<double, 1> mean_row(View<const double, 2> x) {
  Tensor<double, 1> mean({x.extent(1)});
  for (std::int64_t d = 0; d < x.extent(1); ++d) {
    for (std::int64_t n = 0; n < x.extent(0); ++n) mean(d) += x(n, d);
    mean(d) /= static_cast<double>(x.extent(0));
  }
  return mean;
}

// Székely & Rizzo 2014, "U-centering" of a symmetric k [n, n]:
//   k_ij − (Σ_l k_il + Σ_l k_lj) / (n − 2) + Σ_lm k_lm / ((n − 1)(n − 2)) for i ≠ j, its diagonal left out; 0 on it.
inline Tensor<double, 2> u_centred(View<const double, 2> k) {
  const std::int64_t n = k.extent(0);
  const auto count = static_cast<double>(n);
  Tensor<double, 1> sums({n});
  double all = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) sums(i) += i == j ? 0 : k(i, j);
    all += sums(i);
  }
  Tensor<double, 2> centred({n, n});
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (i == j) continue;
      centred(i, j) = k(i, j) - (sums(i) + sums(j)) / (count - 2) + all / ((count - 1) * (count - 2));
    }
  }
  return centred;
}

}  // namespace headlight::reference
