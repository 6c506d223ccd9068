// The libraries beside us compute what the reference does, where they are installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/inputs.h"
#include "native_peers/sgemm_peer.h"
#include "native_peers/unfused_attention.h"
#include "reference/attention.h"
#include "reference/gemm.h"
#include "support/random.h"

namespace headlight::bench::peers_test {

TEST(SgemmPeers, MultiplyInRowOrder) {
  for (const auto& peer : sgemm_peers()) {
    SCOPED_TRACE(peer->name() + " " + peer->version());
    peer->set_threads(1);
    for (const std::int64_t m : {1, 7}) {
      for (int transposed = 0; transposed < 4; ++transposed) {
        SgemmCall call;
        call.m = m;
        call.n = 5;
        call.k = 9;
        call.transpose_a = (transposed & 1) != 0;
        call.transpose_b = (transposed & 2) != 0;
        call.alpha = 0.5f;
        const auto a = filled<2>({call.transpose_a ? call.k : m, call.transpose_a ? m : call.k}, 1);
        const auto b = filled<2>({call.transpose_b ? call.n : call.k, call.transpose_b ? call.k : call.n}, 2);
        Tensor<float, 2> c({m, call.n});
        call.a = a.data();
        call.lda = a.shape()[1];
        call.b = b.data();
        call.ldb = b.shape()[1];
        call.c = c.data();
        call.ldc = call.n;
        peer->multiply(call);

        const Tensor<double, 2> wide_a = test::converted<double>(a);
        const Tensor<double, 2> wide_b = test::converted<double>(b);
        Tensor<double, 2> expected(c.shape());
        reference::GemmOptions<double> options;
        options.transpose_a = call.transpose_a ? Transpose::yes : Transpose::no;
        options.transpose_b = call.transpose_b ? Transpose::yes : Transpose::no;
        options.alpha = 0.5;
        reference::gemm<double>(wide_a, wide_b, expected, options);
        for (std::int64_t n = 0; n < c.size(); ++n) EXPECT_NEAR(c.data()[n], expected.data()[n], 1e-5);

        if (const auto packed = peer->packed(call, 1, NumberType::float32)) {
          std::fill(c.begin(), c.end(), 0.0f);
          packed();
          for (std::int64_t n = 0; n < c.size(); ++n) EXPECT_NEAR(c.data()[n], 2 * expected.data()[n], 1e-5);
        }
      }
    }
  }
}

struct UnfusedCase {
  const Tensor<float, 4> query = filled<4>({2, 6, 4, 8}, 1);
  const Tensor<float, 4> key = filled<4>({2, 9, 2, 8}, 2);
  const Tensor<float, 4> value = filled<4>({2, 9, 2, 8}, 3);
};

TEST(UnfusedAttention, IsAttention) {
  Engine engine(EngineOptions{.threads = 2});
  const auto& [query, key, value] = UnfusedCase();
  std::vector<Interval> rows;  // bottom-right causal
  for (std::int64_t row = 0; row < 12; ++row) rows.push_back({0, row % 6 + 4});
  Tensor<double, 4> expected(query.shape());
  AttentionOptions options;
  options.causal = Causal::bottom_right;
  reference::attention<double>(test::converted<double>(query), test::converted<double>(key),
                               test::converted<double>(value), expected, options);
  for (const auto& peer : sgemm_peers()) {
    SCOPED_TRACE(peer->name());
    Tensor<float, 4> out(query.shape());
    UnfusedAttention(engine, *peer, query, key, value, out, rows)();
    for (std::int64_t n = 0; n < out.size(); ++n) EXPECT_NEAR(out.data()[n], expected.data()[n], 1e-5);
  }
}

// A mask for each head over all samples, a bias for each sample over all heads.
TEST(UnfusedAttention, HidesAndAddsAsTheReferenceDoes) {
  Engine engine(EngineOptions{.threads = 2});
  const auto& [query, key, value] = UnfusedCase();
  const auto bias = filled<4>({2, 1, 6, 9}, 4);
  Tensor<std::uint8_t, 4> mask({1, 4, 6, 9});
  for (std::int64_t n = 0; n < mask.size(); ++n) mask.data()[n] = n % 5 != 2;
  Tensor<double, 4> expected(query.shape());
  AttentionOptions options;
  options.mask = BooleanMask{mask, MaskMeans::attend};
  options.bias = bias;
  reference::attention<double>(test::converted<double>(query), test::converted<double>(key),
                               test::converted<double>(value), expected, options);
  for (const auto& peer : sgemm_peers()) {
    SCOPED_TRACE(peer->name());
    Tensor<float, 4> out(query.shape());
    UnfusedAttention(engine, *peer, query, key, value, out, {}, {mask, bias})();
    for (std::int64_t n = 0; n < out.size(); ++n) EXPECT_NEAR(out.data()[n], expected.data()[n], 1e-5);
  }
}

}  // namespace headlight::bench::peers_test
