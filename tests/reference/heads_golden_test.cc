// The twins of what is measured on heads against NumPy and SciPy in float64.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "reference/head_parts.h"
#include "reference/heads.h"
#include "support/golden.h"
#include "support/head_case.h"

namespace headlight::test::heads_golden_test {

constexpr double kTolerance = 1e-9;

class Golden {
 public:
  void expect(double found, const char* what) {
    EXPECT_NEAR(found, numbers_.next<1>({1})(0), kTolerance) << what << ", number " << count_;
    ++count_;
  }
  [[nodiscard]] bool at_end() { return numbers_.at_end(); }

 private:
  GoldenNumbers numbers_{"heads.npy"};
  int count_ = 0;
};

void check_attention(Golden& golden, std::uint64_t seed, std::int64_t length) {
  Random random(seed);
  const Tensor<double, 3> weights = head_weights(random, 3, length);
  for (int h = 0; h < 3; ++h) golden.expect(reference::entropy(head_of_weights(weights, h)), "entropy");
  for (int h = 0; h < 3; ++h) golden.expect(reference::confidence(head_of_weights(weights, h)), "confidence");
  for (int h = 0; h < 3; ++h) golden.expect(reference::attention_distance(head_of_weights(weights, h)), "distance");
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      golden.expect(reference::jensen_shannon(head_of_weights(weights, a), head_of_weights(weights, b)), "divergence");
    }
  }
  const View<const double, 2> flat(weights.data(), {3, length * length});
  golden.expect(reference::position_disagreement(flat, length), "position disagreement");
  const std::vector<std::int64_t> separators = {length / 2, length - 1};
  std::vector<std::int64_t> tokens;
  for (std::int64_t token = length / 3; token < length; ++token) tokens.push_back(token);
  for (int h = 0; h < 3; ++h) {
    const View<const double, 2> rows(&weights(h, tokens[0], 0), {length - tokens[0], length});
    const reference::Places found = reference::places(rows, tokens, separators, 2, 8);
    for (const double share :
         {found.peaks_previous, found.peaks_next, found.peaks_itself, found.peaks_first, found.peaks_separator,
          found.weight_first, found.weight_separators, found.weight_local, found.even_no_op, found.even_local}) {
      golden.expect(share, "place");
    }
    for (const double weight : found.profile) golden.expect(weight, "profile");
  }
}

void check_outputs(Golden& golden, std::uint64_t seed, std::int64_t rows, const std::vector<std::int64_t>& offsets) {
  Random random(seed);
  const Tensor<double, 3> x = head_outputs(random, rows, 3, 5);
  const Tensor<double, 3> gradient = converted<double>(random.normal_tensor<3>({rows, 3, 5}));
  const auto head = [&](std::int64_t h) { return head_of_outputs(x, h); };
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) golden.expect(reference::cka(head(a), head(b)), "CKA");
  }
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) golden.expect(reference::minibatch_cka(head(a), head(b), offsets), "minibatch CKA");
  }
  golden.expect(reference::hsic1(reference::linear_kernel(head(0)), reference::linear_kernel(head(1))), "HSIC");
  golden.expect(reference::effective_rank({x.data(), {rows, 15}}), "effective rank");
  golden.expect(reference::cosine_disagreement(heads_as_rows(x).view()), "disagreement");
  for (int h = 0; h < 3; ++h) {
    golden.expect(reference::importance(head(h), head_of_outputs(gradient, h), offsets), "importance");
  }
  golden.expect(reference::similarity_penalty({x.data(), {rows, 15}}, 3), "similarity");
  const std::int64_t taken = std::min<std::int64_t>(15, rows);
  Tensor<double, 2> weight({15, 15}), norms({rows, 3});
  for (std::int64_t i = 0; i < 15; ++i) {
    for (std::int64_t j = 0; j < 15; ++j) {
      for (std::int64_t n = 0; n < taken; ++n)
        weight(i, j) += gradient.data()[n * 15 + i] * gradient.data()[n * 15 + j];
    }
  }
  reference::head_part_norms<double>({x.data(), {rows, 15}}, weight.view(), norms.view());
  for (const double norm : norms) golden.expect(norm, "part");
}

void check_weights(Golden& golden) {
  Tensor<float, 2> w32 = Random(6).normal_tensor<2>({12, 20});
  Tensor<double, 2> w = converted<double>(w32);
  for (std::int64_t i = 0; i < 80; ++i) w.data()[160 + i] = w.data()[i] + w.data()[160 + i] / 1024;
  const auto head = [&](std::int64_t h) { return View<const double, 2>(w.data() + h * 80, {4, 20}); };
  for (std::int64_t b = 1; b < 3; ++b) {
    for (const double cosine : reference::cosines_of_angles(head(0), head(b))) {
      golden.expect(std::acos(std::min(1.0, cosine)), "angle");
    }
  }
  golden.expect(reference::orthogonality_penalty({w.data(), {3, 80}}), "orthogonality");
  for (std::int64_t a = 0; a < 3; ++a) {
    for (std::int64_t b = 0; b < 3; ++b) golden.expect(reference::subspace_overlap(head(a), head(b)), "overlap");
  }
  golden.expect(reference::subspace_penalty(w.view(), 3), "subspaces");
}

TEST(ReferenceHeadsGoldenTest, AgreeWithNumPyAndSciPy) {
  Golden golden;
  check_attention(golden, 1, 2);
  check_attention(golden, 2, 7);
  check_attention(golden, 3, 33);
  check_outputs(golden, 4, 40, {0, 10, 23, 40});
  check_outputs(golden, 5, 9, {0, 4, 9});
  check_weights(golden);
  EXPECT_TRUE(golden.at_end());
}

}  // namespace headlight::test::heads_golden_test
