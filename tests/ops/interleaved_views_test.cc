// Views that lie between each other's elements in one buffer and share none of them: a projection that makes query, key
// and value at once leaves them so, and there may be room for the output beside them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention_backward.h"
#include "headlight/gemm.h"
#include "headlight/layers/feed_forward.h"
#include "headlight/normalization.h"
#include "ops/check.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::interleaved_views_test {

using Shape = View<float, 4>::Shape;

// What each byte of memory that nobody writes to holds.
constexpr float kUntouched = 12345.0f;

// `parts` tensors [B, L, H, D] in one buffer: number p of them begins p · step behind the first.
struct Buffer {
  Buffer(int parts, const Shape& shape_, const Shape& strides_, std::int64_t step_)
      : shape(shape_), strides(strides_), step(step_) {
    std::int64_t last = (parts - 1) * step;
    for (std::size_t axis = 0; axis < 4; ++axis) last += (shape[axis] - 1) * strides[axis];
    memory.assign(static_cast<std::size_t>(last + 1), kUntouched);
  }
  [[nodiscard]] View<float, 4> part(std::int64_t number) { return {memory.data() + number * step, shape, strides}; }
  View<float, 4> filled(std::int64_t number, const Tensor<float, 4>& from) {
    const View<float, 4> to = part(number);
    test::for_each_row(to, from.view(), [&](auto, std::int64_t at, std::int64_t source) {
      std::copy_n(from.data() + source, shape[3], to.data + at);
    });
    return to;
  }

  Shape shape;
  Shape strides;
  std::int64_t step;
  std::vector<float> memory;
};

// Every order of the axes that a buffer of four tensors [B, L, H, D] may have.
std::vector<Buffer> buffers_of_four(std::int64_t b, std::int64_t l, std::int64_t h, std::int64_t d) {
  const Shape shape = {b, l, h, d};
  return {{4, shape, {l * 4 * h * d, 4 * h * d, d, 1}, h * d},                         // [B, L, 4, H, D]
          {4, shape, {l * h * 4 * d, h * 4 * d, 4 * d, 1}, d},                         // [B, L, H, 4, D]
          {4, shape, {4 * l * h * d, h * d, d, 1}, l * h * d},                         // [B, 4, L, H, D]
          {4, shape, {h * l * 4 * d, 4 * d, l * 4 * d, 1}, d},                         // [B, H, L, 4, D]
          {4, shape, {4 * h * l * d, d, l * d, 1}, h * l * d},                         // [B, 4, H, L, D]
          {4, shape, {h * 4 * l * d, d, 4 * l * d, 1}, l * d},                         // [B, H, 4, L, D]
          {4, shape, {4 * (d + 3), b * 4 * (d + 3), l * b * 4 * (d + 3), 1}, d + 3}};  // [H, L, B, 4, D and a gap]
}

class InterleavedViews : public test::EachIsa {};

TEST_P(InterleavedViews, AttentionHasTheBitsOfTensorsApart) {
  struct Case {
    std::int64_t batch, length, heads, head_dim;
  };
  for (const int threads : {1, 3}) {
    Engine engine(options(threads));
    for (const Case& c : {Case{2, 5, 3, 7}, Case{1, 16, 4, 32}, Case{2, 40, 3, 24}, Case{1, 600, 2, 20}}) {
      const Shape shape = {c.batch, c.length, c.heads, c.head_dim};
      test::Random random(7);
      const Tensor<float, 4> query = random.normal_tensor<4>(shape), key = random.normal_tensor<4>(shape),
                             value = random.normal_tensor<4>(shape);
      Tensor<float, 4> apart(shape);
      attention(engine, query, key, value, apart, {.causal = Causal::top_left});
      for (Buffer& buffer : buffers_of_four(c.batch, c.length, c.heads, c.head_dim)) {
        const View<float, 4> q = buffer.filled(0, query), k = buffer.filled(1, key), v = buffer.filled(2, value);
        Buffer expected = buffer;
        expected.filled(3, apart);
        attention(engine, q, k, v, buffer.part(3), {.causal = Causal::top_left});
        EXPECT_TRUE(test::same_bits(buffer.part(3), apart.view()));
        EXPECT_TRUE(buffer.memory == expected.memory) << "something beside the output was written";
      }
    }
  }
}

TEST_P(InterleavedViews, AttentionBackwardHasTheBitsOfTensorsApart) {
  Engine engine(options(3));
  const Shape shape = {2, 70, 3, 20};
  test::Random random(8);
  const Tensor<float, 4> query = random.normal_tensor<4>(shape), key = random.normal_tensor<4>(shape),
                         value = random.normal_tensor<4>(shape), out_gradient = random.normal_tensor<4>(shape);
  Tensor<float, 4> out(shape), query_gradient(shape), key_gradient(shape), value_gradient(shape);
  Tensor<float, 3> log_sum_exp({2, 3, 70});
  attention(engine, query, key, value, out, {.log_sum_exp = log_sum_exp});
  attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient,
                     {.query = query_gradient, .key = key_gradient, .value = value_gradient});
  // [B, L, 8, H, D]: query, key, value, out, its gradient, and the gradients of the first three.
  Buffer buffer(8, shape, {70 * 8 * 60, 8 * 60, 20, 1}, 60);
  attention_backward(engine, buffer.filled(0, query), buffer.filled(1, key), buffer.filled(2, value),
                     buffer.filled(3, out), log_sum_exp, buffer.filled(4, out_gradient),
                     {.query = buffer.part(5), .key = buffer.part(6), .value = buffer.part(7)});
  EXPECT_TRUE(test::same_bits(buffer.part(5), query_gradient.view()));
  EXPECT_TRUE(test::same_bits(buffer.part(6), key_gradient.view()));
  EXPECT_TRUE(test::same_bits(buffer.part(7), value_gradient.view()));
  EXPECT_TRUE(test::same_bits(buffer.part(3), out.view()));
}

// Columns of one matrix: what a product reads and writes, and what rows become.
TEST_P(InterleavedViews, ProductsAndRowsMayLieBesideTheirInputs) {
  Engine engine(options(2));
  test::Random random(9);
  constexpr std::int64_t kRows = 50, kColumns = 24;
  const Tensor<float, 2> x = random.normal_tensor<2>({kRows, kColumns}),
                         b = random.normal_tensor<2>({kColumns, kColumns});
  std::vector<float> memory(kRows * 2 * kColumns, kUntouched);
  const View<float, 2> left(memory.data(), x.shape(), {2 * kColumns, 1});
  const View<float, 2> right(memory.data() + kColumns, x.shape(), {2 * kColumns, 1});
  for (std::int64_t row = 0; row < kRows; ++row) std::copy_n(&x(row, 0), kColumns, &left(row, 0));
  Tensor<float, 2> apart(x.shape());
  gemm(engine, x, b, apart);
  gemm(engine, left, b, right);
  EXPECT_TRUE(test::same_bits(right, apart.view()));
  softmax(engine, x, apart);
  softmax(engine, left, right);
  EXPECT_TRUE(test::same_bits(right, apart.view()));
  EXPECT_TRUE(test::same_bits(left, x.view()));

  FeedForward layer({.width = kColumns, .hidden_width = 2 * kColumns});
  layer.initialize(1);
  const auto with_batch = [](const auto& view) {
    using Element = std::remove_reference_t<decltype(*view.data)>;
    return View<Element, 3>(view.data, {1, view.extent(0), view.extent(1)}, {0, view.stride(0), view.stride(1)});
  };
  layer.forward(engine, with_batch(x.view()), with_batch(apart.view()));
  layer.forward(engine, with_batch(left), with_batch(right));
  EXPECT_TRUE(test::same_bits(right, apart.view()));
}

HEADLIGHT_ON_EVERY_ISA(InterleavedViews);

TEST(InterleavedViewsRefused, WhatIsTooClose) {
  Engine engine({.threads = 1});
  for (Buffer& buffer : buffers_of_four(2, 5, 3, 7)) {
    const auto says = [&](std::int64_t moved) {
      View<float, 4> out = buffer.part(2);
      out.data += moved;
      return test::refusal([&] { attention(engine, buffer.part(0), buffer.part(0), buffer.part(1), out); });
    };
    EXPECT_EQ(says(0), "");
    EXPECT_EQ(says(-4), "attention: out overlaps value in memory");
    EXPECT_EQ(says(4 - 2 * buffer.step), "attention: out overlaps query in memory");
  }
}

// Whoever is told that two views share nothing may rely on it: small ones of any shape, byte by byte.
TEST(InterleavedViewsRefused, NoSharedByteIsOverlooked) {
  constexpr std::int64_t kMemory = 400;
  static float memory[kMemory];
  test::Random random(10);
  int apart = 0;
  for (int n = 0; n < 20000; ++n) {
    std::array<View<float, 3>, 2> views;
    std::array<std::vector<bool>, 2> touched;
    for (std::size_t v = 0; v < 2; ++v) {
      View<float, 3>& view = views[v];
      view = {memory + random.integer(0, 12), {random.integer(1, 4), random.integer(1, 4), random.integer(1, 4)}};
      view.strides = {random.integer(0, 36), random.integer(0, 36), 1};
      // Often the strides of the other: views that were made together.
      if (v == 1 && random.once_in(2)) view.strides = views[0].strides;
      if (v == 1 && random.once_in(4)) std::swap(view.strides[0], view.strides[1]);
      touched[v].resize(kMemory);
      for (std::int64_t i = 0; i < view.extent(0); ++i)
        for (std::int64_t j = 0; j < view.extent(1); ++j)
          for (std::int64_t k = 0; k < view.extent(2); ++k)
            touched[v][static_cast<std::size_t>(&view(i, j, k) - memory)] = true;
    }
    const ops::Extent a = ops::check_view("test", "a", views[0]), b = ops::check_view("test", "b", views[1]);
    if (!ops::ranges_overlap(a, b) || ops::share_a_byte(a, b)) continue;
    ++apart;
    for (std::size_t at = 0; at < kMemory; ++at) {
      ASSERT_FALSE(touched[0][at] && touched[1][at])
          << test::shown(views[0].shape) << test::shown(views[0].strides) << test::shown(views[1].shape)
          << test::shown(views[1].strides) << " at " << at;
    }
  }
  EXPECT_GT(apart, 1000);
}

}  // namespace headlight::interleaved_views_test
