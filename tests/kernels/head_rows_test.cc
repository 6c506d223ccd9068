// The kernels that lib/analysis goes over rows with, against their twins, on ragged rows between guard pages.
#include "reference/head_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernels.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::head_rows_test {

using HeadRowsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(HeadRowsTest);

// A lane adds 64 terms, and four folds add sixteen lanes; what comes behind is float64.
constexpr double kOfSum = 70 * kUnitRoundoff;

// Beyond kRowLengths: more than 64 terms for each of sixteen lanes.
std::vector<std::int64_t> lengths() {
  std::vector<std::int64_t> all(kRowLengths.begin() + 1, kRowLengths.end());
  all.push_back(1030);
  return all;
}

View<const double, 1> row_of(const Tensor<double, 2>& rows, std::int64_t r) { return {&rows(r, 0), {rows.shape()[1]}}; }

void check_weight_rows(Isa isa, const GuardedRows& rows, const std::vector<std::int64_t>& tokens) {
  const View<const float, 2> p = rows.const_view();
  const Tensor<double, 2> wide = rows.to<double>();
  std::vector<kernels::WeightRow> found(static_cast<std::size_t>(p.extent(0)));
  const std::int64_t* const given = tokens.empty() ? nullptr : tokens.data();
  kernels::row_kernels(isa).weight_rows({p.data, p.stride(0), p.extent(0), p.extent(1), given, 1}, found.data());
  for (std::int64_t r = 0; r < p.extent(0); ++r) {
    SCOPED_TRACE(testing::Message() << "row " << r << " of " << p.extent(1) << " weights");
    const auto at = static_cast<std::size_t>(r);
    const reference::WeightRow truth = reference::weight_row(row_of(wide, r), tokens.empty() ? 1 + r : tokens[at]);
    EXPECT_NEAR(found[at].sum, truth.sum, kOfSum * truth.sum);
    EXPECT_NEAR(found[at].distance, truth.distance, kOfSum * truth.distance);
    EXPECT_EQ(static_cast<double>(found[at].least), truth.least);
    EXPECT_EQ(static_cast<double>(found[at].largest), truth.largest);
    EXPECT_EQ(found[at].peak, truth.peak);
  }
}

TEST_P(HeadRowsTest, WeightsAgreeWithTheTwinOnRaggedRows) {
  Random random(1);
  for (const std::int64_t columns : lengths()) {
    for (const Against side : kBothSides) {
      GuardedRows rows(4, columns, random.integer(0, 5), side);
      for (std::int64_t r = 0; r < 4; ++r) {
        for (std::int64_t j = 0; j < columns; ++j) rows.view()(r, j) = std::max(0.0f, random.uniform());
      }
      check_weight_rows(GetParam(), rows, {});
      check_weight_rows(GetParam(), rows, {columns - 1, 0, columns / 2, (std::int64_t{1} << 24) - 1});
    }
  }
}

TEST_P(HeadRowsTest, APeakIsFoundWhereverItIsAndOnlyIfItIsAlone) {
  for (const std::int64_t columns : {2, 5, 17, 33, 70}) {
    for (std::int64_t peak = 0; peak < columns; ++peak) {
      const std::int64_t other = (peak + columns / 2) % columns;
      const GuardedRows rows(5, columns, 1, Against::back);
      for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t r = 0; r < 5; ++r) rows.view()(r, j) = r == 4 ? 0.0f : 0.25f;
      }
      for (std::int64_t r = 0; r < 4; ++r) rows.view()(r, peak) = 0.5f;
      rows.view()(1, other) = 0.5f;
      rows.view()(2, other) = std::nextafter(0.5f, 0.0f);
      rows.view()(3, other) = 0.5f * (1 - 0x1p-18f);
      check_weight_rows(GetParam(), rows, {});
    }
  }
}

// Numbers that are no weights are told by what comes out.
TEST_P(HeadRowsTest, WhatIsNoWeightShows) {
  for (const std::int64_t columns : {1, 3, 16, 21}) {
    for (std::int64_t at = 0; at < columns; ++at) {
      const auto found = [&](float value) {
        std::vector<float> p(static_cast<std::size_t>(columns), 0.5f);
        p[static_cast<std::size_t>(at)] = value;
        kernels::WeightRow row{};
        kernels::row_kernels(GetParam()).weight_rows({p.data(), columns, 1, columns, nullptr, 0}, &row);
        return row;
      };
      EXPECT_TRUE(std::isnan(found(std::nanf("")).sum));
      EXPECT_EQ(found(INFINITY).sum, INFINITY);
      EXPECT_EQ(found(-0.25f).least, -0.25f);
    }
  }
}

// Rows 7, 4, 1 … of a matrix by number, or every other one from the second on.
struct Chosen {
  Chosen(Random& random, std::int64_t count, std::int64_t columns, bool by_number, Against side)
      : matrix(2 * count + 1, columns, random.integer(0, 3), side), wide({count, columns}) {
    matrix.fill(random);
    for (std::int64_t i = 0; i < 2 * count + 1; ++i) numbers.push_back((5 * i + 7) % (2 * count + 1));
    const View<const float, 2> x = matrix.const_view();
    rows = {x.data, x.stride(0), by_number ? numbers.data() : nullptr, 1, 2, count, columns};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = by_number ? numbers[static_cast<std::size_t>(1 + 2 * i)] : 1 + 2 * i;
      for (std::int64_t d = 0; d < columns; ++d) wide(i, d) = static_cast<double>(x(at, d));
    }
  }
  GuardedRows matrix;
  std::vector<std::int64_t> numbers;
  kernels::ChosenRows rows{};
  Tensor<double, 2> wide;
};

void check_shift(Isa isa, Random& random, std::int64_t count, std::int64_t columns, bool by_number, Against side) {
  SCOPED_TRACE(testing::Message() << count << " rows of " << columns << (by_number ? " by number" : ""));
  const Chosen chosen(random, count, columns, by_number, side);
  const kernels::RowKernels& kernels = kernels::row_kernels(isa);
  const Guarded<float> mean(columns, side);
  kernels.near_mean(chosen.rows, mean.data());
  const Tensor<double, 1> truth = reference::mean_row(chosen.wide);
  const GuardedRows y(count, columns, 2, side);
  const Guarded<double> sums(columns, side);
  const float largest = kernels.shift_rows(chosen.rows, mean.data(), 1, y.view().data, y.view().stride(0), sums.data());
  float largest_truth = 0;
  for (std::int64_t d = 0; d < columns; ++d) {
    // Terms are differences from the first row: their sum errs by theirs, and the first row is added in two parts.
    double farthest = 0, sum = 0, size = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      farthest = std::max(farthest, std::abs(chosen.wide(i, d) - chosen.wide(0, d)));
      const auto expected = static_cast<float>(chosen.wide(i, d) - static_cast<double>(mean.data()[d]));
      EXPECT_EQ(y.view()(i, d), expected);
      sum += static_cast<double>(expected);
      size += static_cast<double>(std::abs(expected));
      largest_truth = std::max(largest_truth, std::abs(expected));
    }
    EXPECT_NEAR(mean.data()[d], truth(d), kOfSum * farthest + 2 * kUnitRoundoff * std::abs(truth(d)));
    EXPECT_NEAR(sums.data()[d], sum, kOfSum * size);
  }
  EXPECT_EQ(largest, largest_truth);
  EXPECT_TRUE(y.gaps_are_untouched());
  const GuardedRows again(count, columns, 2, side);
  EXPECT_EQ(kernels.shift_rows(chosen.rows, mean.data(), 1, again.view().data, again.view().stride(0), nullptr),
            largest);
  EXPECT_TRUE(same_bits(again.view(), y.view()));
}

TEST_P(HeadRowsTest, MeansAndShiftedRowsAgreeWithTheTwins) {
  Random random(2);
  for (const std::int64_t columns : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65, 100}) {
    for (const std::int64_t count : {1, 2, 5, 48, 64, 65, 131}) {
      if (count > 5 && columns > 33 && quick()) continue;
      check_shift(GetParam(), random, count, columns, count % 2 == 0, count % 3 == 0 ? Against::front : Against::back);
    }
  }
}

// Of rows that are all the same nothing is left, however many there are; of huge ones the sum is not needed; NaN does
// not hide what is large.
TEST_P(HeadRowsTest, NothingIsLeftOfEqualRows) {
  constexpr std::int64_t kRows = 100, kColumns = 21;
  const kernels::RowKernels& kernels = kernels::row_kernels(GetParam());
  std::vector<float> x, mean(kColumns), y(kRows * kColumns);
  for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
    x.push_back(std::ldexp(0.1f + static_cast<float>(i % kColumns), i % 2 == 0 ? 123 : -3));
  }
  const auto shift = [&] {
    const kernels::ChosenRows rows = {x.data(), 2 * kColumns, nullptr, 0, 1, kRows / 2, kColumns};
    kernels.near_mean(rows, mean.data());
    return kernels.shift_rows(rows, mean.data(), 1, y.data(), kColumns, nullptr);
  };
  EXPECT_EQ(shift(), 0.0f);
  x[2 * kColumns * 7 + 3] = std::nanf("");
  x[2 * kColumns * 9 + 5] += 25;
  EXPECT_NEAR(shift(), 25 * 49.0 / 50, 25 * kOfSum);
}

// Differences of the largest numbers pass what a float32 holds, and so do sums of 64 that are smaller.
TEST_P(HeadRowsTest, RowsMayBeAsFarApartAsFloatsAre) {
  constexpr std::int64_t kRows = 150, kColumns = 21;
  constexpr float kMost = std::numeric_limits<float>::max();
  const kernels::RowKernels& kernels = kernels::row_kernels(GetParam());
  for (const std::int64_t first_of_other : {1, 75, 149}) {
    std::vector<float> x, mean(kColumns), y(kRows * kColumns);
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      const float size = kMost / static_cast<float>(1 + i % kColumns);
      x.push_back(i / kColumns < first_of_other ? -size : size);
    }
    const kernels::ChosenRows rows = {x.data(), kColumns, nullptr, 0, 1, kRows, kColumns};
    kernels.near_mean(rows, mean.data());
    std::vector<double> sums(kColumns);
    const float largest = kernels.shift_rows(rows, mean.data(), 0x1p-8f, y.data(), kColumns, sums.data());
    float largest_truth = 0;
    for (std::int64_t d = 0; d < kColumns; ++d) {
      const auto at = static_cast<std::size_t>(d);
      const auto others = static_cast<double>(kRows - first_of_other);
      const double size = static_cast<double>(x.back()) * kColumns / static_cast<double>(d + 1);
      EXPECT_NEAR(mean[at], size * (others - static_cast<double>(first_of_other)) / kRows, 2 * kOfSum * size);
      double sum = 0, all = 0;
      for (std::int64_t i = 0; i < kRows; ++i) {
        const float found = y[static_cast<std::size_t>(i * kColumns + d)];
        const double whole =
            static_cast<double>(x[static_cast<std::size_t>(i * kColumns + d)]) - static_cast<double>(mean[at]);
        EXPECT_EQ(found, static_cast<float>(whole * 0x1p-8));
        sum += static_cast<double>(found);
        all += static_cast<double>(std::abs(found));
        largest_truth = std::max(largest_truth, std::abs(found));
      }
      EXPECT_NEAR(sums[at], sum, kOfSum * all);
    }
    EXPECT_EQ(largest, largest_truth);
  }
}

void check_kernel(Isa isa, Random& random, std::int64_t n, Against side) {
  SCOPED_TRACE(testing::Message() << n << " rows");
  const Tensor<float, 2> x = random.normal_tensor<2>({n, 3});
  GuardedRows kernel(n, n, 0, side);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      kernel.view()(i, j) = x(i, 0) * x(j, 0) + x(i, 1) * x(j, 1) + x(i, 2) * x(j, 2);
    }
  }
  const Tensor<double, 2> wide = kernel.to<double>();
  const Tensor<double, 2> truth = reference::u_centred(wide);
  double trace = 0, most = 0, largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double size = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      size += std::abs(wide(i, j));
      largest = std::max({largest, std::abs(wide(i, j)), std::abs(truth(i, j))});
    }
    most = std::max(most, size);
    trace += wide(i, i);
  }
  // Four terms, each rounded and added; two of them are shares of sums over a row.
  const double tolerance = 8 * kUnitRoundoff * largest + 2 * kOfSum * most / static_cast<double>(n - 2);
  const Guarded<float> shifts(n, side);
  EXPECT_NEAR(kernels::row_kernels(isa).centre_kernel(kernel.view().data, n, shifts.data()), trace, 1e-12 * trace);
  const float* found = kernel.view().data;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i + 1; j < n; ++j) EXPECT_NEAR(*found++, truth(i, j), tolerance) << i << ", " << j;
  }
}

TEST_P(HeadRowsTest, CentredKernelsAgreeWithTheTwin) {
  Random random(3);
  for (std::int64_t n = 3; n <= 70; n += n < 36 ? 1 : 5) {
    for (const Against side : kBothSides) check_kernel(GetParam(), random, n, side);
  }
  if (!quick()) check_kernel(GetParam(), random, 1030, Against::back);
}

}  // namespace headlight::test::head_rows_test
