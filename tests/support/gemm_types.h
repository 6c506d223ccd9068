// What the types of a packed B leave of a product's operands, and the truth of such products.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "headlight/number_type.h"
#include "reference/number_types.h"
#include "support/gemm_case.h"

namespace headlight::test {

[[nodiscard]] inline float rounded_to_bfloat16(float x) {
  return static_cast<float>(reference::rounded_to_bfloat16(static_cast<double>(x)));
}
inline void round_to_bfloat16(const View<float, 2>& matrix) {
  for (std::int64_t i = 0; i < matrix.extent(0); ++i) {
    for (std::int64_t j = 0; j < matrix.extent(1); ++j) matrix(i, j) = rounded_to_bfloat16(matrix(i, j));
  }
}

inline void round_to_float16(const View<float, 2>& matrix) {
  for (std::int64_t i = 0; i < matrix.extent(0); ++i) {
    for (std::int64_t j = 0; j < matrix.extent(1); ++j) {
      matrix(i, j) = static_cast<float>(reference::rounded_to_float16(static_cast<double>(matrix(i, j))));
    }
  }
}

// Row i of a matrix, or column i.
[[nodiscard]] inline std::vector<float> matrix_line(const View<const float, 2>& matrix, std::int64_t i,
                                                    bool is_column) {
  std::vector<float> numbers;
  for (std::int64_t k = 0; k < matrix.extent(is_column ? 0 : 1); ++k) {
    numbers.push_back(is_column ? matrix(k, i) : matrix(i, k));
  }
  return numbers;
}

[[nodiscard]] inline std::vector<reference::Int8Numbers> quantized_a(const View<const float, 2>& a,
                                                                     Transpose transpose = Transpose::no) {
  const bool turned = transpose == Transpose::yes;
  std::vector<reference::Int8Numbers> rows;
  for (std::int64_t i = 0; i < a.extent(turned ? 1 : 0); ++i)
    rows.push_back(reference::asymmetric_int8(matrix_line(a, i, turned)));
  return rows;
}

[[nodiscard]] inline std::vector<reference::Int8Numbers> quantized_b(const View<const float, 2>& b,
                                                                     Transpose transpose = Transpose::no) {
  const bool turned = transpose == Transpose::yes;
  std::vector<reference::Int8Numbers> columns;
  for (std::int64_t j = 0; j < b.extent(turned ? 0 : 1); ++j)
    columns.push_back(reference::symmetric_int8(matrix_line(b, j, !turned)));
  return columns;
}

// The same in groups along K, one after another: those of row i of A, or of column j of B.
[[nodiscard]] inline std::vector<reference::Int8Numbers> grouped(
    const std::vector<float>& numbers, reference::Int8Numbers (*quantize)(std::span<const float>)) {
  std::vector<reference::Int8Numbers> groups;
  for (std::size_t first = 0; first < numbers.size(); first += reference::kInt4Group) {
    groups.push_back(
        quantize(std::span(numbers).subspan(first, std::min(reference::kInt4Group, numbers.size() - first))));
  }
  return groups;
}

// The numbers that they stand for, each line of a matrix by itself.
[[nodiscard]] inline Tensor<double, 2> grouped_values(const View<const float, 2>& matrix, bool by_columns,
                                                      reference::Int8Numbers (*quantize)(std::span<const float>)) {
  Tensor<double, 2> made(matrix.shape);
  for (std::int64_t line = 0; line < matrix.extent(by_columns ? 1 : 0); ++line) {
    const std::vector<reference::Int8Numbers> groups = grouped(matrix_line(matrix, line, by_columns), quantize);
    for (std::int64_t n = 0; n < matrix.extent(by_columns ? 0 : 1); ++n) {
      const auto at = static_cast<std::size_t>(n);
      const double value = groups[at / reference::kInt4Group].value(at % reference::kInt4Group);
      (by_columns ? made(n, line) : made(line, n)) = value;
    }
  }
  return made;
}

// The numbers that they stand for, stored as the matrix was.
[[nodiscard]] inline Tensor<double, 2> quantized_values(const View<const float, 2>& matrix,
                                                        const std::vector<reference::Int8Numbers>& lines,
                                                        bool by_columns) {
  Tensor<double, 2> made(matrix.shape);
  for (std::int64_t i = 0; i < matrix.extent(0); ++i) {
    for (std::int64_t j = 0; j < matrix.extent(1); ++j) {
      made(i, j) =
          lines[static_cast<std::size_t>(by_columns ? j : i)].value(static_cast<std::size_t>(by_columns ? i : j));
    }
  }
  return made;
}

// Of a product whose B is packed as that type. A chain of rounded operands has as many roundings as float32's; a sum of
// integers is rounded three times: to a float, and by each scale. Of int4 each group's is rounded twice, by a scale and
// as it is added.
[[nodiscard]] inline GemmTruth gemm_truth(GemmOperands& operands, NumberType type) {
  const GemmOptions& options = operands.options;
  if (type == NumberType::int8) {
    const View<float, 2> a = operands.a.view(), b = operands.b.view();
    return {operands, quantized_values(a, quantized_a(a, options.transpose_a), options.transpose_a == Transpose::yes),
            quantized_values(b, quantized_b(b, options.transpose_b), options.transpose_b == Transpose::no), 3};
  }
  if (type == NumberType::int4) {
    const View<float, 2> a = operands.a.view(), b = operands.b.view();
    const std::int64_t depth = a.extent(options.transpose_a == Transpose::yes ? 0 : 1);
    const auto groups = (depth + 31) / 32;
    return {operands, grouped_values(a, options.transpose_a == Transpose::yes, reference::symmetric_int8),
            grouped_values(b, options.transpose_b == Transpose::no, reference::symmetric_int4), 2 * groups + 1};
  }
  if (type == NumberType::float32) return GemmTruth(operands);
  const Matrix a = operands.a, b = operands.b;
  // Beside float16 A stays as it is.
  if (type == NumberType::bfloat16) {
    round_to_bfloat16(operands.a.view());
    round_to_bfloat16(operands.b.view());
  } else {
    round_to_float16(operands.b.view());
  }
  GemmTruth truth(operands);
  operands.a = a;
  operands.b = b;
  return truth;
}

}  // namespace headlight::test
