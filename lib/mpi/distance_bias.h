// A bias that tells distances alone, bias(0, h, i, j) = f(h, j − i) [1, H or 1, Lq, Lk]: rows run backwards over one
// list of numbers for each head, which every rank has.
#pragma once

#include <cstdint>
#include <string>

#include "headlight/attention.h"
#include "headlight/view.h"

namespace headlight::mpi {

// Whether a bias is such a one, of so many rows and keys. One that is the same for all rows, or for all keys, is not.
[[nodiscard]] inline bool tells_distances(const View<const float, 4>& bias, std::int64_t rows,
                                          std::int64_t keys) noexcept {
  return bias.extent(0) == 1 && bias.extent(2) == rows && bias.extent(3) == keys && bias.stride(3) == 1 &&
         (bias.stride(2) == -1 || rows == 1);
}

// Its heads `first`, `first` + stride …, so many.
[[nodiscard]] inline View<const float, 4> heads_of_bias(View<const float, 4> bias, std::int64_t first,
                                                        std::int64_t count, std::int64_t stride = 1) noexcept {
  if (!bias || bias.extent(1) == 1) return bias;
  bias.data += first * bias.stride(1);
  bias.shape[1] = count;
  bias.strides[1] *= stride;
  return bias;
}

// Its rows from `first` on.
[[nodiscard]] inline View<const float, 4> rows_of_bias(View<const float, 4> bias, std::int64_t first,
                                                       std::int64_t count) noexcept {
  if (!bias) return bias;
  bias.data += first * bias.stride(2);
  bias.shape[2] = count;
  return bias;
}

// What ranks compare, before any of them has checked it: only one that tells distances of so many rows and keys is
// read.
[[nodiscard]] std::string digest_of_bias(const View<const float, 4>& bias, std::int64_t rows, std::int64_t keys);

}  // namespace headlight::mpi
