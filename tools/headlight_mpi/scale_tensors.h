// What headlight-mpi study scale computes with: numbers that every rank can work out for every token.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/mpi.h"
#include "tools/headlight/support/stored_array.h"

namespace headlight::program::scale_study {

enum class Kind : std::uint64_t { query, key, value, out_gradient };

// From −1 to 1.
[[nodiscard]] inline float number(Kind kind, std::int64_t token, std::int64_t head, std::int64_t dim) {
  std::uint64_t bits = static_cast<std::uint64_t>(token) << 32 ^ static_cast<std::uint64_t>(head) << 16 ^
                       static_cast<std::uint64_t>(dim) << 2 ^ static_cast<std::uint64_t>(kind);
  // SplitMix64's last steps (Steele, Lea & Flood 2014).
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return static_cast<float>((bits ^ bits >> 31) >> 40) * 0x1p-23f - 1;
}

// What a rank holds of a call, made as soon as it is needed.
struct Tensors {
  Tensors(const AttentionShape& whole_, NumberType type_, const std::vector<mpi::Run>& runs_, std::int64_t rows_)
      : whole(whole_),
        type(type_),
        runs(runs_),
        rows(rows_),
        query(filled(Kind::query)),
        key(filled(Kind::key)),
        value(filled(Kind::value)),
        out(zeros()),
        log_sum_exp({1, whole.query_heads, rows}) {}
  void add_gradients() {
    out_gradient = filled(Kind::out_gradient);
    key_gradient = zeros();
    value_gradient = zeros();
    query_gradient = zeros();
  }
  // Where the numbers of a row's head begin.
  [[nodiscard]] std::int64_t place(std::int64_t row, std::int64_t head) const noexcept {
    return (row * whole.query_heads + head) * whole.head_dim;
  }

  AttentionShape whole;
  NumberType type;
  std::vector<mpi::Run> runs;
  std::int64_t rows;
  StoredArray query, key, value, out;
  Tensor<float, 3> log_sum_exp;
  StoredArray out_gradient{}, query_gradient{}, key_gradient{}, value_gradient{};

 private:
  [[nodiscard]] StoredArray zeros() const { return {type, {1, rows, whole.query_heads, whole.head_dim}}; }
  [[nodiscard]] StoredArray filled(Kind kind) const {
    StoredArray array = zeros();
    std::int64_t n = 0;
    for (const mpi::Run& run : runs) {
      for (std::int64_t token = run.first; token < run.first + run.count; ++token) {
        for (std::int64_t head = 0; head < whole.query_heads; ++head) {
          for (std::int64_t dim = 0; dim < whole.head_dim; ++dim) array.set(n++, number(kind, token, head, dim));
        }
      }
    }
    return array;
  }
};

}  // namespace headlight::program::scale_study
