#include <algorithm>
#include <cmath>
#include <string>

#include "analysis/linear_algebra.h"
#include "analysis/rows.h"
#include "headlight/analysis/diversity.h"
#include "headlight/gemm.h"
#include "ops/check.h"
#include "runtime/parallel.h"

namespace headlight::analysis {
namespace {

// Rows [first, first + count) in float64.
std::vector<double> rows_of(const View<const float, 2>& matrix, std::int64_t first, std::int64_t count) {
  std::vector<double> rows(static_cast<std::size_t>(count * matrix.extent(1)));
  std::size_t at = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    for (std::int64_t d = 0; d < matrix.extent(1); ++d) rows[at++] = static_cast<double>(matrix(i, d));
  }
  return rows;
}

void check_finite(std::string_view operation, const char* name, const std::vector<double>& values) {
  if (std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); })) return;
  ops::fail(operation, std::string(name) + " holds a NaN or an infinity, expected finite numbers");
}

}  // namespace

std::vector<double> principal_angles(View<const float, 2> a, View<const float, 2> b) {
  constexpr std::string_view kName = "principal_angles";
  ops::check_view(kName, "a", a);
  ops::check_view(kName, "b", b);
  const std::int64_t width = a.extent(1);
  const std::array<std::int64_t, 2> expected = {-1, width};
  ops::check_shape(kName, "b", b.shape, expected, "[q, E]");
  std::vector<double> p = rows_of(a, 0, a.extent(0)), q = rows_of(b, 0, b.extent(0));
  check_finite(kName, "a", p);
  check_finite(kName, "b", q);
  std::int64_t p_rank = orthonormalize(p, a.extent(0), width), q_rank = orthonormalize(q, b.extent(0), width);
  if (p_rank < q_rank) {
    p.swap(q);
    std::swap(p_rank, q_rank);
  }
  // Cosines: the singular values of Q Pᵀ. Sines: those of what is left of Q outside the space of P.
  std::vector<double> product(static_cast<std::size_t>(q_rank * p_rank));
  for (std::int64_t j = 0; j < q_rank; ++j) {
    for (std::int64_t i = 0; i < p_rank; ++i) {
      double sum = 0;
      for (std::int64_t d = 0; d < width; ++d) {
        sum += q[static_cast<std::size_t>(j * width + d)] * p[static_cast<std::size_t>(i * width + d)];
      }
      product[static_cast<std::size_t>(j * p_rank + i)] = sum;
    }
  }
  for (std::int64_t j = 0; j < q_rank; ++j) {
    for (std::int64_t i = 0; i < p_rank; ++i) {
      const double cosine = product[static_cast<std::size_t>(j * p_rank + i)];
      for (std::int64_t d = 0; d < width; ++d) {
        q[static_cast<std::size_t>(j * width + d)] -= cosine * p[static_cast<std::size_t>(i * width + d)];
      }
    }
  }
  const std::vector<double> cosines = singular_values(product, q_rank, p_rank);
  const std::vector<double> sines = singular_values(q, q_rank, width);
  std::vector<double> angles(cosines.size());
  for (std::size_t n = 0; n < angles.size(); ++n) {
    const double cosine = std::min(1.0, cosines[n]), sine = std::min(1.0, sines[angles.size() - 1 - n]);
    angles[n] = cosine * cosine >= 0.5 ? std::asin(sine) : std::acos(cosine);
  }
  std::sort(angles.begin(), angles.end());
  return angles;
}

std::vector<Measure> subspace_overlaps(Engine& engine, View<const float, 2> weight, std::int64_t heads) {
  constexpr std::string_view kName = "subspace_overlaps";
  const std::int64_t rows = rows_of_head(kName, weight, heads);
  const std::int64_t width = weight.extent(1);
  // Orthonormal rows of each head; those that its rank lacks stay zero.
  Tensor<float, 2> bases({heads * rows, width});
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(heads));
  std::vector<std::vector<double>> parts(static_cast<std::size_t>(heads));
  for (std::int64_t head = 0; head < heads; ++head) {
    parts[static_cast<std::size_t>(head)] = rows_of(weight, head * rows, rows);
    check_finite(kName, "weight", parts[static_cast<std::size_t>(head)]);
  }
  runtime::parallel_for(engine, heads, engine.threads(), [&](std::int64_t head, int) {
    std::vector<double>& part = parts[static_cast<std::size_t>(head)];
    const std::int64_t rank = orthonormalize(part, rows, width);
    ranks[static_cast<std::size_t>(head)] = rank;
    for (std::int64_t n = 0; n < rank * width; ++n) {
      bases.data()[head * rows * width + n] = static_cast<float>(part[static_cast<std::size_t>(n)]);
    }
  });
  Tensor<float, 2> cosines({heads * rows, heads * rows});
  gemm(engine, bases, bases, cosines, {.transpose_b = Transpose::yes});
  std::vector<Measure> overlaps;
  for (std::int64_t a = 0; a < heads; ++a) {
    for (std::int64_t b = 0; b < heads; ++b) {
      const std::int64_t smaller = std::min(ranks[static_cast<std::size_t>(a)], ranks[static_cast<std::size_t>(b)]);
      double squares = 0;
      for (std::int64_t i = a * rows; i < (a + 1) * rows; ++i) {
        for (std::int64_t j = b * rows; j < (b + 1) * rows; ++j) {
          squares += static_cast<double>(cosines(i, j)) * static_cast<double>(cosines(i, j));
        }
      }
      overlaps.push_back(smaller == 0 ? Measure(Undefined::zero)
                                      : std::min(1.0, squares / static_cast<double>(smaller)));
    }
  }
  return overlaps;
}

}  // namespace headlight::analysis
