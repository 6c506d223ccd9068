#include <cmath>
#include <numeric>

#include "headlight/rotary.h"
#include "reference/rotary.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/rotary_cases.h"

namespace headlight::test::rotary_angles_test {

std::vector<std::int64_t> first_positions(std::int64_t count, std::int64_t first = 0) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), first);
  return positions;
}

// A row of the table for a position of a sequence of so many tokens.
void expect_row(const RotaryCase& made, const View<float, 2>& table, std::int64_t row, std::int64_t position,
                std::int64_t length) {
  const std::vector<double> theta = reference::rotary_frequencies(made.spec, made.head_dim, length);
  const double factor = reference::rotary_attention_factor(made.spec.scaling);
  const auto pairs = static_cast<std::int64_t>(theta.size());
  const bool halves = made.spec.pairing == RotaryPairing::halves;
  ASSERT_EQ(table.extent(1), 2 * pairs);
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double angle = static_cast<double>(position) * theta[static_cast<std::size_t>(i)];
    // Rounded once; an angle that is off in float64 shows beside that, and beside zeros.
    const double tolerance = kUnitRoundoff * factor + 1e-14 * angle;
    EXPECT_NEAR(table(row, halves ? i : 2 * i), std::cos(angle) * factor, tolerance) << position << ", pair " << i;
    EXPECT_NEAR(table(row, halves ? pairs + i : 2 * i + 1), std::sin(angle) * factor, tolerance)
        << position << ", pair " << i;
  }
}

TEST(RotaryAngles, AgreeWithTheTwinInEveryKind) {
  Engine engine({.threads = 1});
  int number = 0;
  for (RotaryCase made : rotary_cases()) {
    SCOPED_TRACE(testing::Message() << "case " << number++);
    for (const RotaryPairing pairing : {RotaryPairing::halves, RotaryPairing::interleaved}) {
      made.spec.pairing = pairing;
      const std::vector<std::int64_t> positions = first_positions(made.length);
      const std::vector<std::int64_t> offsets = {0, made.length};
      const GuardedRows table(made.length, rotary_columns(made.spec, made.head_dim), 3, Against::back);
      rotary_angles(engine, made.spec, made.head_dim, positions, offsets, table.view());
      for (std::int64_t row = 0; row < made.length; ++row) expect_row(made, table.view(), row, row, made.length);
      EXPECT_TRUE(table.gaps_are_untouched());
    }
  }
}

// Several sequences, among them empty ones, ones of a few tokens of a long text, and one in any order.
TEST(RotaryAngles, DependOnARowsOwnSequence) {
  std::vector<std::int64_t> positions = first_positions(30);
  const auto append = [&](const std::vector<std::int64_t>& more) {
    positions.insert(positions.end(), more.begin(), more.end());
    return static_cast<std::int64_t>(positions.size());
  };
  const std::vector<std::int64_t> offsets = {0,
                                             0,
                                             30,
                                             append(first_positions(200)),
                                             append({500, 3, 77}),
                                             233,
                                             append(first_positions(64)),
                                             append({1000000})};
  const auto rows = static_cast<std::int64_t>(positions.size());
  for (const RotaryCase& made : rotary_cases()) {
    SCOPED_TRACE(static_cast<int>(made.spec.scaling.kind));
    Engine one({.threads = 1});
    Tensor<float, 2> table({rows, rotary_columns(made.spec, made.head_dim)});
    rotary_angles(one, made.spec, made.head_dim, positions, offsets, table);
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      std::int64_t length = 0;
      for (std::int64_t row = offsets[s]; row < offsets[s + 1]; ++row) {
        length = std::max(length, positions[static_cast<std::size_t>(row)] + 1);
      }
      for (std::int64_t row = offsets[s]; row < offsets[s + 1]; ++row) {
        expect_row(made, table, row, positions[static_cast<std::size_t>(row)], length);
      }
    }
    for (const int threads : {2, 3, 8}) {
      Engine engine({.threads = threads});
      Tensor<float, 2> again(table.shape());
      rotary_angles(engine, made.spec, made.head_dim, positions, offsets, again);
      EXPECT_TRUE(same_bits(again, table)) << threads << " threads";
    }
  }
}

TEST(RotaryAngles, OfNothingAreNothing) {
  Engine engine({.threads = 1});
  Tensor<float, 2> none({0, 16}), no_columns({2, 0});
  rotary_angles(engine, {.dims = 16}, 16, {}, std::vector<std::int64_t>{0}, none);
  rotary_angles(engine, {.dims = 0}, 16, std::vector<std::int64_t>{0, 1}, std::vector<std::int64_t>{0, 2}, no_columns);
}

class RotaryArguments : public testing::Test {
 protected:
  // Angles of three rows in that specification; a refusal without the name of the operation.
  std::string refused(const RotarySpec& spec, std::int64_t head_dim = 8) {
    Tensor<float, 2> table({3, 4});
    return refusal([&] { rotary_angles(engine_, spec, head_dim, positions_, offsets_, table); });
  }
  std::string refused(RotaryScaling scaling) {
    if (scaling.factor == 1) scaling.factor = 2;
    return refused(RotarySpec{.dims = 4, .scaling = scaling});
  }

  Engine engine_{{.threads = 1}};
  std::vector<std::int64_t> positions_ = {0, 1, 2};
  std::vector<std::int64_t> offsets_ = {0, 3};
};

TEST_F(RotaryArguments, OfASpecificationAreNamed) {
  using Kind = RotaryScalingKind;
  EXPECT_EQ(refused({.dims = 4}), "");
  EXPECT_EQ(refused({.dims = 3}), "rotary_angles: dims is 3, expected an even number from 0 to 8 (head_dim)");
  EXPECT_EQ(refused({.dims = 10}), "rotary_angles: dims is 10, expected an even number from 0 to 8 (head_dim)");
  EXPECT_EQ(refused({.dims = 2}),
            "rotary_angles: cosines_and_sines has shape [3, 4], expected [3, 2] ([N, the numbers "
            "of a head that are turned])");
  EXPECT_EQ(refused({.dims = 0}, -1), "rotary_angles: head_dim is -1, expected at least 0");
  EXPECT_NE(refused({.dims = 4, .base = 1}).find("base is "), std::string::npos);
  EXPECT_NE(refused({.dims = 4, .pairing = static_cast<RotaryPairing>(2)}).find("pairing is 2"), std::string::npos);
  const auto names = [&](const RotaryScaling& scaling, const std::string& field) {
    const std::string message = refused(scaling);
    EXPECT_EQ(message.find("rotary_angles: scaling." + field + " "), 0u) << message;
  };
  names({.kind = static_cast<Kind>(7)}, "kind");
  names({.kind = Kind::linear, .factor = 0}, "factor");
  names({.kind = Kind::dynamic, .factor = 0.5, .original_length = 4}, "factor");
  names({.kind = Kind::dynamic}, "original_length");
  names({.kind = Kind::llama3, .original_length = 4, .low_frequency_factor = 0}, "low_frequency_factor");
  names({.kind = Kind::llama3, .original_length = 4, .low_frequency_factor = 4}, "high_frequency_factor");
  names({.kind = Kind::yarn, .original_length = 4, .fast_turns = -1}, "fast_turns");
  names({.kind = Kind::yarn, .original_length = 4, .slow_turns = NAN}, "slow_turns");
  names({.kind = Kind::yarn, .original_length = 4, .attention_factor = -1}, "attention_factor");
  names({.kind = Kind::longrope, .original_length = 4}, "short_factors");
  names({.kind = Kind::longrope, .original_length = 4, .short_factors = {1, 1}, .long_factors = {1, 0}},
        "long_factors");
  names({.kind = Kind::longrope, .original_length = 1, .short_factors = {1, 1}, .long_factors = {1, 1}},
        "original_length");
}

TEST_F(RotaryArguments, OfRowsAreNamed) {
  positions_[1] = -1;
  EXPECT_EQ(refused({.dims = 4}), "rotary_angles: positions[1] is -1, expected 0 to 2^53 - 1");
  positions_[1] = std::int64_t{1} << 53;
  EXPECT_EQ(refused({.dims = 4}), "rotary_angles: positions[1] is 9007199254740992, expected 0 to 2^53 - 1");
  positions_[1] = 1;
  offsets_[1] = 2;
  EXPECT_EQ(refused({.dims = 4}), "rotary_angles: offsets ends with 2, expected N = 3");
}

}  // namespace headlight::test::rotary_angles_test
