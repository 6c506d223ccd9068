#include "analysis/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace headlight::analysis {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Eight chains, which two pipes of latency 4 need, of two numbers at least.
double dot(const double* a, const double* b, std::int64_t n) noexcept {
  double sums[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::int64_t k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

void subtract(double factor, const double* b, double* a, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) a[i] -= factor * b[i];
}

// Householder: diagonal and, from index 1 on, the diagonal below it. Row k is reduced by the reflection that turns its
// first k elements into multiples of the last of them. What lies above the diagonal is neither read nor written.
void tridiagonalize(std::vector<double>& matrix, std::int64_t n, std::vector<double>& diagonal,
                    std::vector<double>& below) {
  std::vector<double> p(static_cast<std::size_t>(n));
  for (std::int64_t k = n - 1; k > 0; --k) {
    double* const v = matrix.data() + k * n;  // its first k elements become the reflection's vector
    const double norm = std::sqrt(dot(v, v, k));
    diagonal[static_cast<std::size_t>(k)] = v[k];
    below[static_cast<std::size_t>(k)] = 0;
    if (norm == 0) continue;
    const double alpha = v[k - 1] > 0 ? -norm : norm;
    below[static_cast<std::size_t>(k)] = alpha;
    const double beta = norm * (norm + std::abs(v[k - 1]));  // ‖v‖² / 2
    v[k - 1] -= alpha;
    // A ← A − v wᵀ − w vᵀ with p = A v / β, w = p − (pᵀv / 2β) v.
    for (std::int64_t i = 0; i < k; ++i) {
      const double* const row = matrix.data() + i * n;
      p[static_cast<std::size_t>(i)] = dot(row, v, i + 1);
      subtract(-v[i], row, p.data(), i);
    }
    for (std::int64_t i = 0; i < k; ++i) p[static_cast<std::size_t>(i)] /= beta;
    subtract(dot(p.data(), v, k) / (2 * beta), v, p.data(), k);
    for (std::int64_t i = 0; i < k; ++i) {
      double* const row = matrix.data() + i * n;
      const double vi = v[i], wi = p[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j <= i; ++j) row[j] -= vi * p[static_cast<std::size_t>(j)] + wi * v[j];
    }
  }
  if (n > 0) diagonal[0] = matrix[0];
}

// √(a² + b²) of numbers whose squares a float64 holds where they count: hypot's care for others would take longer than
// all the rest of a rotation, and ask for glibc 2.35.
double norm_of(double a, double b) noexcept { return std::sqrt(a * a + b * b); }

// One implicit QL sweep on rows first … last.
void ql_sweep(std::vector<double>& d, std::vector<double>& e, std::size_t first, std::size_t last) {
  double g = (d[first + 1] - d[first]) / (2 * e[first]);
  const double r0 = norm_of(g, 1.0);
  g = d[last] - d[first] + e[first] / (g + std::copysign(r0, g));
  double s = 1, c = 1, p = 0;
  for (std::size_t i = last; i-- > first;) {
    const double f = s * e[i], b = c * e[i];
    const double r = norm_of(f, g);
    e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= p;
      e[last] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    const double t = (d[i] - g) * s + 2 * c * b;
    p = s * t;
    d[i + 1] = g + p;
    g = c * t - b;
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0;
}

}  // namespace

std::vector<double> symmetric_eigenvalues(std::vector<double>& matrix, std::int64_t n) {
  const auto count = static_cast<std::size_t>(n);
  std::vector<double> d(count), e(count + 1);
  tridiagonalize(matrix, n, d, e);
  // e[i] stands between d[i] and d[i + 1] from here on.
  for (std::size_t i = 1; i < count; ++i) e[i - 1] = e[i];
  if (count > 0) e[count - 1] = 0;
  double size = 0;
  for (std::size_t i = 0; i < count; ++i) size = std::max(size, std::abs(d[i]) + std::abs(e[i]));
  for (std::size_t first = 0; first < count; ++first) {
    constexpr int kMostSweeps = 60;  // two or three are usual
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      std::size_t last = first;
      while (last + 1 < count &&
             std::abs(e[last]) > kEpsilon * std::max(std::abs(d[last]) + std::abs(d[last + 1]), kEpsilon * size)) {
        ++last;
      }
      if (last == first) break;
      ql_sweep(d, e, first, last);
    }
  }
  return d;
}

std::int64_t orthonormalize(std::vector<double>& a, std::int64_t rows, std::int64_t columns) {
  std::int64_t kept = 0;
  double largest = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const double* const row = a.data() + i * columns;
    largest = std::max(largest, std::sqrt(dot(row, row, columns)));
  }
  const double nothing = largest * kEpsilon * static_cast<double>(std::max(rows, columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    double* const row = a.data() + kept * columns;
    if (kept != i) std::copy_n(a.data() + i * columns, columns, row);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t j = 0; j < kept; ++j) {
        const double* const before = a.data() + j * columns;
        subtract(dot(before, row, columns), before, row, columns);
      }
      // What is left of a row that the others span is rounding, and a second pass would make a direction of it.
      const double norm = std::sqrt(dot(row, row, columns));
      if (pass == 0 && norm <= nothing) break;
      if (pass == 1) {
        for (std::int64_t d = 0; d < columns; ++d) row[d] /= norm;
        ++kept;
      }
    }
  }
  return kept;
}

std::vector<double> singular_values(std::vector<double>& a, std::int64_t rows, std::int64_t columns) {
  constexpr int kMostSweeps = 40;
  bool turned = true;
  for (int sweep = 0; sweep < kMostSweeps && turned; ++sweep) {
    turned = false;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = i + 1; j < rows; ++j) {
        double* const x = a.data() + i * columns;
        double* const y = a.data() + j * columns;
        const double xx = dot(x, x, columns), yy = dot(y, y, columns), xy = dot(x, y, columns);
        if (std::abs(xy) <= kEpsilon * std::sqrt(xx) * std::sqrt(yy)) continue;
        turned = true;
        const double zeta = (yy - xx) / (2 * xy);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + norm_of(1.0, zeta));
        const double c = 1 / norm_of(1.0, t), s = c * t;
        for (std::int64_t d = 0; d < columns; ++d) {
          const double before = x[d];
          x[d] = c * before - s * y[d];
          y[d] = s * before + c * y[d];
        }
      }
    }
  }
  std::vector<double> values(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    const double* const x = a.data() + i * columns;
    values[static_cast<std::size_t>(i)] = std::sqrt(dot(x, x, columns));
  }
  std::sort(values.begin(), values.end(), std::greater<>());
  return values;
}

}  // namespace headlight::analysis
