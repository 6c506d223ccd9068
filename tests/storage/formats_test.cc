// The table of storage formats agrees with itself and with the types of numbers.
#include "storage/formats.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "headlight/number_type.h"
#include "headlight/storage_format.h"

namespace headlight::test::formats_test {

TEST(StorageFormats, AreListedInTheirOrder) {
  std::set<std::string_view> names;
  std::size_t number = 0;
  for (const StorageFormatInfo& of : storage_formats()) {
    SCOPED_TRACE(of.name);
    EXPECT_EQ(static_cast<std::size_t>(of.format), number++);
    EXPECT_EQ(&info(of.format), &of);
    EXPECT_TRUE(names.insert(of.name).second) << "a name of its own";
    EXPECT_NE(storage::table_entry(of.format).widen, nullptr);
    EXPECT_EQ(storage::table_entry(of.format).integers != nullptr, of.panels.has_value());
  }
  EXPECT_EQ(number, static_cast<std::size_t>(StorageFormat::q6_k) + 1);
}

// Whatever a type of numbers is called, so is the format that has it.
TEST(StorageFormats, OfNumberTypesHaveTheirNamesAndSizes) {
  for (const NumberType type : kNumberTypes) {
    const StorageFormatInfo& of = storage_formats()[static_cast<std::size_t>(type)];
    EXPECT_EQ(of.name, name(type));
    if (!of.plain) continue;
    EXPECT_EQ(*of.plain, type);
    EXPECT_EQ(of.bytes, static_cast<std::int64_t>(bytes_of(type)));
    EXPECT_EQ(of.alignment, bytes_of(type));
  }
}

TEST(StorageFormats, HaveNoNameOfAFileTwice) {
  std::set<std::string_view> safetensors, gguf;
  std::set<int> numbers;
  for (const StorageFormatInfo& of : storage_formats()) {
    EXPECT_TRUE(!of.safetensors.empty() || of.gguf >= 0) << of.name << " is in no file";
    if (!of.safetensors.empty()) {
      EXPECT_TRUE(safetensors.insert(of.safetensors).second) << of.safetensors;
    }
    EXPECT_EQ(of.gguf >= 0, !of.gguf_name.empty());
    if (of.gguf < 0) continue;
    EXPECT_TRUE(gguf.insert(of.gguf_name).second) << of.gguf_name;
    EXPECT_TRUE(numbers.insert(of.gguf).second) << of.gguf;
  }
}

TEST(StorageFormats, RowsAreWholeBlocks) {
  EXPECT_EQ(row_bytes(StorageFormat::float32, 5), 20);
  EXPECT_EQ(row_bytes(StorageFormat::float16, 5), 10);
  EXPECT_EQ(row_bytes(StorageFormat::int8, 5), 5);
  EXPECT_EQ(row_bytes(StorageFormat::int4, 5), 3);
  EXPECT_EQ(row_bytes(StorageFormat::q8_0, 64), 68);
  EXPECT_EQ(row_bytes(StorageFormat::q6_k, 512), 420);
  EXPECT_EQ(row_scale_bytes(StorageFormat::int8, 5), 4);
  EXPECT_EQ(row_scale_bytes(StorageFormat::int8, 0), 4);
  EXPECT_EQ(row_scale_bytes(StorageFormat::int4, 33), 4);
  EXPECT_EQ(row_scale_bytes(StorageFormat::int4, 0), 0);
  EXPECT_EQ(row_scale_bytes(StorageFormat::q4_k, 256), 0);
}

// Bits of a number, scales and minima included, by what is published of each format.
TEST(StorageFormats, TakeTheBitsThatTheyAreKnownFor) {
  const auto bits = [](StorageFormat format) {
    const StorageFormatInfo& of = info(format);
    return 8.0 * static_cast<double>(of.bytes) / static_cast<double>(of.numbers);
  };
  EXPECT_EQ(bits(StorageFormat::q8_0), 8.5);
  EXPECT_EQ(bits(StorageFormat::q4_0), 4.5);
  EXPECT_EQ(bits(StorageFormat::q4_1), 5.0);
  EXPECT_EQ(bits(StorageFormat::q4_k), 4.5);
  EXPECT_EQ(bits(StorageFormat::q5_k), 5.5);
  EXPECT_EQ(bits(StorageFormat::q6_k), 6.5625);
}

}  // namespace headlight::test::formats_test
