// Small dense linear algebra in float64: what the measures need and no more. Matrices are rows of one length.
#pragma once

#include <cstdint>
#include <vector>

namespace headlight::analysis {

// The eigenvalues of the symmetric matrix [n, n], in no order: Householder's reduction to three diagonals, then the
// implicit QL iteration (Golub & Van Loan, Matrix Computations, 8.3). Of the matrix the lower half is read, and
// overwritten; its largest number lies between 1e-140 and 1e140, or all are 0.
[[nodiscard]] std::vector<double> symmetric_eigenvalues(std::vector<double>& matrix, std::int64_t n);

// Makes the rows of a [rows, columns] orthonormal, in order (Gram–Schmidt, twice over, which is enough), and drops
// those that the ones before span up to rounding. Returns how many are left, at the front.
[[nodiscard]] std::int64_t orthonormalize(std::vector<double>& a, std::int64_t rows, std::int64_t columns);

// The singular values of a [rows, columns], descending, as many as rows: one-sided Jacobi rotations of its rows, which
// keep small ones to their last digits. The matrix is overwritten.
[[nodiscard]] std::vector<double> singular_values(std::vector<double>& a, std::int64_t rows, std::int64_t columns);

}  // namespace headlight::analysis
