// A packed matrix, read back.
#pragma once

#include <cstdint>

#include "headlight/gemm.h"

namespace headlight::ops {

// Columns first … first + count − 1 of B [K, N], one after another: rows[j · K + k] = B[k, first + j].
void unpack_columns(const PackedMatrix& b, std::int64_t first, std::int64_t count, float* rows) noexcept;

}  // namespace headlight::ops
