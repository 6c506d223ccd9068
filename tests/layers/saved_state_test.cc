// backward() refuses what forward() was not given, before any gradient is added to: what is kept would be read
// elsewhere.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/encoder.h"
#include "headlight/layers/multi_head_attention.h"
#include "support/compare.h"

namespace headlight::test {
namespace {

bool all_zero(const std::vector<Parameter>& parameters) {
  return std::ranges::all_of(parameters, [](const Parameter& parameter) {
    return std::ranges::all_of(parameter.gradient, [](float gradient) { return gradient == 0.0f; });
  });
}

class EncoderPass : public testing::TestWithParam<Checkpoint> {
 protected:
  EncoderPass() : saved_(GetParam()) {
    encoder_.initialize(1);
    encoder_.set_training(true);
    encoder_.forward(engine_, input_, hidden_, saved_, {.seed = 1});
  }
  // The gradients are still zero after whatever is not as it was in forward().
  void refuses(const EncoderInput& other) {
    EXPECT_THROW(encoder_.backward(engine_, other, saved_, hidden_), std::invalid_argument);
    EXPECT_TRUE(all_zero(encoder_.parameters()));
  }

  const std::vector<std::int64_t> ids_ = {1, 2, 3, 4, 5, 6, 7, 0}, positions_ = {0, 1, 2, 3, 0, 1, 2, 3};
  const std::vector<std::int64_t> offsets_ = {0, 4, 8};
  const EncoderInput input_ = {.ids = ids_, .positions = positions_, .offsets = offsets_};
  Engine engine_{{.threads = 1}};
  Encoder encoder_{{.vocabulary = 8, .max_positions = 8, .width = 8, .heads = 2, .layers = 2}};
  Tensor<float, 2> hidden_{{8, 8}};
  SavedState saved_;
};

TEST_P(EncoderPass, RefusesOtherSequences) {
  const std::vector<std::int64_t> one = {0, 8}, uneven = {0, 3, 8};
  refuses({.ids = ids_, .positions = positions_, .offsets = one});
  refuses({.ids = ids_, .positions = positions_, .offsets = uneven});
}

TEST_P(EncoderPass, RefusesWrongIdsBeforeItLearns) {
  std::vector<std::int64_t> wrong = ids_;
  wrong[3] = 8;
  refuses({.ids = wrong, .positions = positions_, .offsets = offsets_});
  wrong = positions_;
  wrong[7] = -1;
  refuses({.ids = ids_, .positions = wrong, .offsets = offsets_});
  wrong.pop_back();
  refuses({.ids = ids_, .positions = wrong, .offsets = offsets_});
}

TEST_P(EncoderPass, TakesEqualOnes) {
  const std::vector<std::int64_t> ids = ids_, positions = positions_, offsets = offsets_;
  encoder_.backward(engine_, {.ids = ids, .positions = positions, .offsets = offsets}, saved_, hidden_);
  EXPECT_FALSE(all_zero(encoder_.parameters()));
}

INSTANTIATE_TEST_SUITE_P(Of, EncoderPass,
                         testing::Values(Checkpoint::keep_linear, Checkpoint::layer_input, Checkpoint::every_k_layers,
                                         Checkpoint::unfused));

// Self-attention keeps one product of three inputs that are one; a copy of the input would be looked for elsewhere.
TEST(AttentionPass, RefusesACopyOfAnInput) {
  Engine engine({.threads = 1});
  MultiHeadAttention attention({.width = 64, .heads = 4});
  attention.initialize(1);
  attention.set_training(true);
  Tensor<float, 3> x({2, 5, 64}), y(x.shape()), gradient(x.shape()), copy(x.shape()), copy_gradient(x.shape());
  for (std::int64_t n = 0; n < x.size(); ++n) x.data()[n] = static_cast<float>(n % 7) - 3.0f;
  std::copy(x.begin(), x.end(), copy.begin());
  SavedState saved;
  attention.forward(engine, x, x, x, y, saved, {.seed = 1});
  EXPECT_THROW(attention.backward(engine, x, copy, copy, saved, y, {.query = gradient, .key = copy_gradient}),
               std::invalid_argument);
  EXPECT_TRUE(all_zero(attention.parameters()));
  attention.backward(engine, x, x, x, saved, y, {.query = gradient});
  EXPECT_FALSE(all_zero(attention.parameters()));
}

}  // namespace
}  // namespace headlight::test
