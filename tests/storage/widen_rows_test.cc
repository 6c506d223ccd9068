// Rows of every storage format as floats: those of the float64 twin, rounded once.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "headlight/storage_format.h"
#include "headlight/storage_types.h"
#include "reference/stored_numbers.h"
#include "storage/formats.h"
#include "support/random.h"
#include "support/stored_rows.h"

namespace headlight::test::widen_rows_test {

// Numbers of a row that the format can have.
std::vector<std::int64_t> columns_of(const StorageFormatInfo& of) {
  if (of.has_whole_blocks) return {of.numbers, 2 * of.numbers, 5 * of.numbers};
  return {1, 2, 5, 31, 32, 33, 64, 100};
}

bool is_same(float found, double exact) {
  const auto expected = static_cast<float>(exact);
  if (std::isnan(expected)) return std::isnan(found);
  return std::bit_cast<std::uint32_t>(found) == std::bit_cast<std::uint32_t>(expected);
}

// Rows of it from number `first` on, in memory that has nothing behind them.
void expect_twin(const StoredNumbers& stored, std::int64_t columns, std::int64_t first, std::int64_t count) {
  std::vector<float> found(static_cast<std::size_t>(count * columns));
  widen_rows(stored, columns, first, count, found.data());
  const auto* const blocks = static_cast<const std::byte*>(stored.data);
  const auto* const scales = static_cast<const std::byte*>(stored.scales);
  for (std::int64_t row = first; row < first + count; ++row) {
    const std::byte* const from = blocks + row * row_bytes(stored.format, columns);
    const std::byte* const beside =
        scales == nullptr ? nullptr : scales + row * row_scale_bytes(stored.format, columns);
    for (std::int64_t k = 0; k < columns; ++k) {
      const float number = found[static_cast<std::size_t>((row - first) * columns + k)];
      const double expected = reference::stored_number(stored.format, from, beside, k);
      ASSERT_TRUE(is_same(number, expected)) << info(stored.format).name << " row " << row << ", number " << k << ": "
                                             << number << ", expected " << expected;
    }
  }
}

TEST(WidenRows, AreThoseOfTheTwin) {
  Random random(1);
  for (const StorageFormatInfo& of : storage_formats()) {
    for (const std::int64_t columns : columns_of(of)) {
      const StoredRows rows(random, of.format, 7, columns);
      expect_twin(rows.view(), columns, 0, 7);
      expect_twin(rows.view(), columns, 3, 2);
    }
  }
}

// Whatever bits there are: infinite and subnormal scales, and such as are no number.
TEST(WidenRows, OfAnyBytesAreThoseOfTheTwin) {
  Random random(2);
  for (const StorageFormatInfo& of : storage_formats()) {
    for (int round = 0; round < 40; ++round) {
      const std::int64_t columns = of.has_whole_blocks ? 2 * of.numbers : 37;
      StoredRows rows(random, of.format, 3, columns);
      for (std::byte& byte : rows.blocks()) byte = static_cast<std::byte>(random.next() & 255);
      for (std::byte& byte : rows.scales()) byte = static_cast<std::byte>(random.next() & 255);
      expect_twin(rows.view(), columns, 0, 3);
    }
  }
}

// The largest and smallest of all fields, where a field of a wrong width shows.
TEST(WidenRows, OfAllOnesAndOfSingleBits) {
  Random random(3);
  for (const StorageFormatInfo& of : storage_formats()) {
    if (!of.has_whole_blocks) continue;
    StoredRows rows(random, of.format, 1, of.numbers);
    const auto set_halves = [&] {
      for (const std::int64_t half : StoredRows::halves_of(of.format)) {
        const Float16 one(half == 2 ? 0.5f : 1.0f);
        std::memcpy(rows.blocks().data() + half, &one, sizeof one);
      }
    };
    for (std::size_t bit = 0; bit <= 8 * rows.blocks().size(); ++bit) {  // the last time none
      for (std::byte& byte : rows.blocks()) byte = std::byte{255};
      if (bit < 8 * rows.blocks().size()) rows.blocks()[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      set_halves();
      expect_twin(rows.view(), of.numbers, 0, 1);
      for (std::byte& byte : rows.blocks()) byte ^= std::byte{255};
      set_halves();
      expect_twin(rows.view(), of.numbers, 0, 1);
    }
  }
}

// Number k of a group is its integer times the scale, where there are integers and scales.
TEST(WidenRows, OfIntegersAreTheirProductsWithScales) {
  Random random(4);
  for (const StorageFormatInfo& of : storage_formats()) {
    if (!of.panels) continue;
    for (const std::int64_t columns : columns_of(of)) {
      const StoredRows rows(random, of.format, 3, columns);
      std::vector<float> widened(static_cast<std::size_t>(columns)), integers = widened, scales = widened;
      for (std::int64_t row = 0; row < 3; ++row) {
        widen_rows(rows.view(), columns, row, 1, widened.data());
        storage::table_entry(of.format).integers(storage::row_of(rows.view(), columns, row), columns, integers.data(),
                                                 scales.data());
        for (std::size_t k = 0; k < widened.size(); ++k) {
          const float scale = scales[of.numbers_of_scale == 0 ? 0 : k / static_cast<std::size_t>(of.numbers_of_scale)];
          EXPECT_EQ(integers[k], std::nearbyint(integers[k]));
          EXPECT_LE(std::abs(integers[k]), *of.panels == NumberType::int4 ? 8 : 128);
          EXPECT_TRUE(is_same(widened[k], static_cast<double>(integers[k]) * static_cast<double>(scale)))
              << of.name << " " << k;
        }
      }
    }
  }
}

TEST(WidenRows, OfNothingAreNothing) {
  for (const StorageFormatInfo& of : storage_formats()) {
    float untouched = 7;
    widen_rows({of.format, &untouched, 0, &untouched}, 0, 0, 0, &untouched);
    EXPECT_EQ(untouched, 7);
  }
}

}  // namespace headlight::test::widen_rows_test
