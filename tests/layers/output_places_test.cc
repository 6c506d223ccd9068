// What a layer is asked for beside its output may lie over nothing that the call reads or writes.
#include <array>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "headlight/layers/transformer.h"
#include "support/refusal.h"

namespace headlight::test::output_places_test {

// As many numbers in x as in the probabilities, so that these may lie over it.
constexpr std::int64_t kLength = 16, kWidth = 64, kHeads = 4;

View<float, 4> as_probabilities(Tensor<float, 3>& x) { return {x.data(), {1, kHeads, kLength, kLength}}; }
View<float, 3> as_average(Tensor<float, 3>& x) { return {x.data(), {1, kLength, kLength}}; }
View<float, 3> as_log_sum_exp(Tensor<float, 3>& x) { return {x.data(), {1, kHeads, kLength}}; }

class OutputPlacesTest : public testing::Test {
 protected:
  static Tensor<float, 3> make() { return Tensor<float, 3>({1, kLength, kWidth}); }

  Engine engine_;
  Tensor<float, 3> x_ = make(), key_ = make(), value_ = make(), residual_ = make(), y_ = make(), other_ = make();
};

TEST_F(OutputPlacesTest, OfAttentionLieApartFromInputsAndOutput) {
  const MultiHeadAttention layer({.width = kWidth, .heads = kHeads});
  const auto refused = [&](const AttentionOptions& options, const HeadAccess& heads = {}) {
    return refusal([&] { layer.forward(engine_, x_, key_, value_, y_, options, residual_, heads); });
  };
  const std::array<std::pair<Tensor<float, 3>*, std::string>, 5> places = {
      {{&x_, "query"}, {&key_, "key"}, {&value_, "value"}, {&y_, "out"}, {&residual_, "residual"}}};
  for (const auto& place : places) {
    Tensor<float, 3>& over = *place.first;
    const std::string message = " overlaps " + place.second + " in memory";
    EXPECT_EQ(refused({.log_sum_exp = as_log_sum_exp(over)}), "MultiHeadAttention: options.log_sum_exp" + message);
    EXPECT_EQ(refused({.probabilities = {.per_head = as_probabilities(over)}}),
              "MultiHeadAttention: options.probabilities.per_head" + message);
    EXPECT_EQ(refused({.probabilities = {.averaged = as_average(over)}}),
              "MultiHeadAttention: options.probabilities.averaged" + message);
    EXPECT_EQ(refused({}, {.outputs = over}), "MultiHeadAttention: heads.outputs" + message);
    EXPECT_EQ(refused({}, {.scaled_outputs = over}), "MultiHeadAttention: heads.scaled_outputs" + message);
  }
}

TEST_F(OutputPlacesTest, OfAttentionLieApartFromEachOther) {
  const MultiHeadAttention layer({.width = kWidth, .heads = kHeads});
  const auto refused = [&](const AttentionOptions& options, const HeadAccess& heads = {}) {
    return refusal([&] { layer.forward(engine_, x_, x_, x_, y_, options, {}, heads); });
  };
  EXPECT_EQ(refused({.probabilities = {.per_head = as_probabilities(other_)}}, {.scaled_outputs = other_}),
            "MultiHeadAttention: options.probabilities.per_head overlaps heads.scaled_outputs in memory");
  EXPECT_EQ(refused({.log_sum_exp = as_log_sum_exp(other_)}, {.outputs = other_}),
            "MultiHeadAttention: options.log_sum_exp overlaps heads.outputs in memory");
  EXPECT_EQ(refused({.log_sum_exp = as_log_sum_exp(other_), .probabilities = {.averaged = as_average(other_)}}),
            "MultiHeadAttention: options.probabilities.averaged overlaps options.log_sum_exp in memory");
  EXPECT_EQ(refused({}, {.outputs = other_, .scaled_outputs = other_}),
            "MultiHeadAttention: heads.scaled_outputs overlaps heads.outputs in memory");
}

// The residual is read when the probabilities are written.
TEST_F(OutputPlacesTest, OfAnEncoderLayerLieApartFromItsInputAndOutput) {
  for (const Norm norm : {Norm::post, Norm::pre}) {
    const TransformerEncoderLayer layer({.width = kWidth, .heads = kHeads, .norm = norm});
    const auto refused = [&](const AttentionOptions& options, const HeadAccess& heads = {}) {
      return refusal([&] { layer.forward(engine_, x_, y_, options, heads); });
    };
    EXPECT_EQ(refused({.probabilities = {.per_head = as_probabilities(other_)}}), "");
    EXPECT_EQ(refused({.probabilities = {.per_head = as_probabilities(x_)}}),
              "TransformerEncoderLayer: options.probabilities.per_head overlaps x in memory");
    EXPECT_EQ(refused({.log_sum_exp = as_log_sum_exp(y_)}),
              "TransformerEncoderLayer: options.log_sum_exp overlaps y in memory");
    EXPECT_EQ(refused({}, {.outputs = x_}), "TransformerEncoderLayer: heads.outputs overlaps x in memory");
  }
}

// Self-attention writes its probabilities before the other attention reads the memory.
TEST_F(OutputPlacesTest, OfADecoderLayerLieApartFromTheMemoryToo) {
  const TransformerDecoderLayer layer({.width = kWidth, .heads = kHeads});
  const auto refused = [&](const AttentionOptions& self_options, const AttentionOptions& memory_options) {
    return refusal([&] { layer.forward(engine_, x_, key_, y_, self_options, memory_options); });
  };
  const AttentionOptions over_memory = {.probabilities = {.per_head = as_probabilities(key_)}};
  EXPECT_EQ(refused(over_memory, {}),
            "TransformerDecoderLayer: self_options.probabilities.per_head overlaps memory in memory");
  const AttentionOptions asked = {.probabilities = {.per_head = as_probabilities(other_)}};
  EXPECT_EQ(refused(asked, {}), "");
  EXPECT_EQ(refused(asked, asked),
            "TransformerDecoderLayer: memory_options.probabilities.per_head overlaps "
            "self_options.probabilities.per_head in memory");
}

TEST_F(OutputPlacesTest, AreCheckedInTrainingToo) {
  const AttentionOptions over_x = {.probabilities = {.per_head = as_probabilities(x_)}};
  SavedState saved;
  MultiHeadAttention attention({.width = kWidth, .heads = kHeads});
  attention.set_training(true);
  EXPECT_EQ(refusal([&] { attention.forward(engine_, x_, x_, x_, y_, saved, {}, over_x); }),
            "MultiHeadAttention: options.probabilities.per_head overlaps query in memory");
  TransformerEncoderLayer encoder({.width = kWidth, .heads = kHeads});
  encoder.set_training(true);
  EXPECT_EQ(refusal([&] { encoder.forward(engine_, x_, y_, saved, {}, over_x); }),
            "TransformerEncoderLayer: options.probabilities.per_head overlaps x in memory");
  TransformerDecoderLayer decoder({.width = kWidth, .heads = kHeads});
  decoder.set_training(true);
  EXPECT_EQ(refusal([&] { decoder.forward(engine_, key_, x_, y_, saved, {}, over_x); }),
            "TransformerDecoderLayer: self_options.probabilities.per_head overlaps memory in memory");
}

}  // namespace headlight::test::output_places_test
