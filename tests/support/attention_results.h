// What a call of attention() gives, and whether it is as close to the truth as promised.
#pragma once

#include <cmath>

#include "reference/attention.h"
#include "support/attention_case.h"
#include "support/compare.h"

namespace headlight::test {

template <class Scalar>
struct AttentionResults {
  explicit AttentionResults(const AttentionCase& c)
      : out({c.batch, c.query_length, c.query_heads, c.value_dim}),
        log_sum_exp({c.batch, c.query_heads, c.query_length}),
        probabilities({c.batch, c.query_heads, c.query_length, c.key_length}),
        scores(probabilities.shape()) {}
  Tensor<Scalar, 4> out;
  Tensor<Scalar, 3> log_sum_exp;
  Tensor<Scalar, 4> probabilities;
  Tensor<Scalar, 4> scores;  // at the stage that the case's options name
};

// By the twin.
template <class Scalar>
AttentionResults<Scalar> plain_results(const AttentionCase& c, const AttentionInputs& in) {
  AttentionResults<Scalar> results(c);
  reference::attention<Scalar>(
      converted<Scalar>(in.query), converted<Scalar>(in.key), converted<Scalar>(in.value), results.out, in.options,
      {.log_sum_exp = results.log_sum_exp, .probabilities = results.probabilities, .scores = results.scores});
  return results;
}

// Σ_j p_ij |v_j|: what is added up in a row, whatever cancels.
[[nodiscard]] inline Tensor<double, 4> added_up(const AttentionCase& c, const AttentionInputs& in) {
  Tensor<double, 4> sizes = converted<double>(in.value);
  for (double& element : sizes) element = std::abs(element);
  Tensor<double, 4> sums({c.batch, c.query_length, c.query_heads, c.value_dim});
  reference::attention<double>(converted<double>(in.query), converted<double>(in.key), sizes, sums, in.options);
  return sums;
}

// What errors of a case are measured by.
//
// out: the true rows. Rows narrower than 8 may be all cancelled, by chance, and then measure nothing; those are
// measured by what was added up in them, Σ_j p_ij |v_j|. log_sum_exp: an error of ε there is an error of ε in every
// probability, so 1 is added to its size, and to that of scores.
struct AttentionYardsticks {
  AttentionYardsticks(const AttentionCase& c, const AttentionInputs& in, const AttentionResults<double>& truth)
      : out(converted<double>(truth.out)),
        log_sum_exp(converted<double>(truth.log_sum_exp)),
        scores(converted<double>(truth.scores)) {
    for (double& element : log_sum_exp) element = 1 + std::abs(element);
    for (double& element : scores) element = 1 + std::abs(element);
    if (c.value_dim < 8) out = added_up(c, in);
  }
  Tensor<double, 4> out;
  Tensor<double, 3> log_sum_exp;
  Tensor<double, 4> scores;
};

}  // namespace headlight::test
