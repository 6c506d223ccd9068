// Weights in files in narrower types: rounded by the documented rule, and read back.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "headlight/gemm.h"
#include "headlight/layers/linear.h"
#include "headlight/models/safetensors.h"
#include "headlight/storage_types.h"
#include "models/scratch_folder.h"
#include "support/compare.h"
#include "support/random.h"

namespace headlight::models::stored_weight_test {

using test::file_error;
using test::Random;
using test::ScratchFolder;

std::string refusal(const Weights& weights, NumberType type) {
  const ScratchFolder folder;
  try {
    write_safetensors(folder.path("w"), weights, {}, type);
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(folder.count(), 0);
    return error.what();
  }
  return "";
}

std::string bytes_of_file(const std::string& path) {
  return (std::ostringstream() << std::ifstream(path, std::ios::binary).rdbuf()).str();
}

WeightView view_of(const Tensor<float, 2>& tensor) {
  return {{tensor.shape()[0], tensor.shape()[1]}, {tensor.data(), static_cast<std::size_t>(tensor.size())}, {}};
}

template <class Stored>
void expect_rounded(NumberType type, const char* dtype) {
  const ScratchFolder folder;
  Tensor<float, 2> matrix = Random(1).normal_tensor<2>({70, 131});  // more numbers than are written at a time
  matrix(0, 0) = std::numeric_limits<float>::quiet_NaN();
  matrix(0, 1) = -std::numeric_limits<float>::infinity();
  matrix(0, 2) = 1e-6f;
  matrix(0, 3) = 70000.0f;
  const std::vector<float> vector{1.0f + 0x1p-20f, -3};
  write_safetensors(folder.path("w"), {{"matrix", view_of(matrix)}, {"vector", {{2}, vector, {}}}}, {}, type);
  SafetensorsFile file(folder.path("w"));
  EXPECT_EQ(file.find("matrix")->dtype, dtype);
  EXPECT_EQ(file.find("matrix")->bytes.size(), 2u * 70 * 131);
  EXPECT_EQ(file.find("vector")->dtype, "F32");
  EXPECT_TRUE(test::holds(file.float32("vector").values, {vector[0], vector[1]}));
  const std::span<const float> got = file.float32("matrix").values;
  for (std::int64_t n = 0; n < matrix.size(); ++n) {
    const auto expected = static_cast<float>(Stored(matrix.data()[n]));
    EXPECT_EQ(std::memcmp(&got[static_cast<std::size_t>(n)], &expected, sizeof expected), 0) << n;
  }
}

TEST(StoredWeight, HalvesAreTheNearestNumbers) {
  expect_rounded<BFloat16>(NumberType::bfloat16, "BF16");
  expect_rounded<Float16>(NumberType::float16, "F16");
}

Tensor<float, 2> rows_of_all_kinds() {
  Tensor<float, 2> matrix = Random(2).normal_tensor<2>({300, 37});
  for (std::int64_t k = 0; k < 37; ++k) {
    matrix(0, k) = 0;
    matrix(1, k) *= 0x1p-140f;                                                 // below the least scale
    matrix(2, k) = k == 5 ? std::numeric_limits<float>::max() : matrix(2, k);  // all others become 0
    matrix(3, k) *= 1e30f;
  }
  return matrix;
}

// q = round(w · (1 / t)) with t = max |w| / 127, and what is read is q · ((127 t) / 127).
TEST(StoredWeight, IntegersFollowTheDocumentedRule) {
  const ScratchFolder folder;
  const Tensor<float, 2> matrix = rows_of_all_kinds();
  write_safetensors(folder.path("w"), {{"m", view_of(matrix)}}, {}, NumberType::int8);
  SafetensorsFile file(folder.path("w"));
  const SafetensorsEntry& integers = *file.find("m");
  const SafetensorsEntry& scales = *file.find("m_scale");
  EXPECT_EQ(integers.dtype, "I8");
  EXPECT_TRUE(test::holds(integers.shape, {300, 37}));
  EXPECT_EQ(scales.dtype, "F32");
  EXPECT_TRUE(test::holds(scales.shape, {300, 1}));
  EXPECT_EQ(file.weights().size(), 1u) << "scales are no weight";
  const std::span<const float> got = file.float32("m").values;
  for (std::int64_t row = 0; row < 300; ++row) {
    float most = 0, scale = 0;
    for (std::int64_t k = 0; k < 37; ++k) most = std::max(most, std::abs(matrix(row, k)));
    const float once = std::max(most / 127.0f, 0x1p-126f);
    std::memcpy(&scale, scales.bytes.data() + static_cast<std::size_t>(row) * sizeof scale, sizeof scale);
    if (row != 2) {
      EXPECT_EQ(scale, once * 127.0f / 127.0f) << row;
    }
    EXPECT_TRUE(scale == once || scale == std::nextafter(once, 0.0f) || scale == std::nextafter(once, INFINITY)) << row;
    for (std::int64_t k = 0; k < 37; ++k) {
      const auto at = static_cast<std::size_t>(row * 37 + k);
      const float integer = std::nearbyint(matrix(row, k) * (1 / once));
      EXPECT_EQ(static_cast<float>(static_cast<std::int8_t>(integers.bytes[at])), integer) << row << ", " << k;
      EXPECT_EQ(got[at], integer * scale) << row << ", " << k;
      EXPECT_TRUE(std::isfinite(got[at]));
    }
  }
}

// Written again, and packed, they are the same integers with the same scales.
TEST(StoredWeight, IntegersAreThoseOfThePanelsAndStay) {
  const ScratchFolder folder;
  Engine engine({.threads = 1});
  const Tensor<float, 2> matrix = Random(3).normal_tensor<2>({600, 40});
  write_safetensors(folder.path("w"), {{"m", view_of(matrix)}}, {}, NumberType::int8);
  SafetensorsFile file(folder.path("w"));
  write_safetensors(folder.path("again"), file.weights(), {}, NumberType::int8);
  EXPECT_EQ(bytes_of_file(folder.path("again")), bytes_of_file(folder.path("w")));

  const Tensor<float, 2> a = Random(4).normal_tensor<2>({3, 40});
  Tensor<float, 2> of_matrix({3, 600}), of_file({3, 600}), of_copy({3, 600});
  const auto product = [&](const float* weights, Tensor<float, 2>& c) {
    gemm(engine, a, PackedMatrix(engine, {weights, {600, 40}}, Transpose::yes, NumberType::int8), c);
  };
  product(matrix.data(), of_matrix);
  product(file.float32("m").values.data(), of_file);
  SafetensorsFile again(folder.path("again"));
  product(again.float32("m").values.data(), of_copy);
  EXPECT_TRUE(test::same_bits(of_copy, of_file));
  std::int64_t other_scales = 0;
  for (std::int64_t n = 0; n < of_file.size(); ++n) {
    const float x = of_matrix.data()[n], y = of_file.data()[n];
    other_scales += x != y ? 1 : 0;
    EXPECT_LE(std::abs(x - y), 0x1p-22f * std::abs(x)) << n;  // a unit of the scale, and one of the rounding after it
  }
  EXPECT_LE(other_scales, 3 * 600 / 20);
}

// Of int4: integers two to a byte, a scale for each 32 numbers, and the shape. What is read again is the same file,
// and packs as the weights themselves do.
TEST(StoredWeight, FourBitsFollowTheDocumentedRule) {
  const ScratchFolder folder;
  Engine engine({.threads = 1});
  for (const std::int64_t columns : {1, 31, 32, 37, 64, 70}) {
    SCOPED_TRACE(columns);
    Tensor<float, 2> matrix = Random(5).normal_tensor<2>({9, columns});
    for (std::int64_t k = 0; k < columns; ++k) {
      matrix(0, k) = 0;
      matrix(1, k) *= 0x1p-140f;  // below the least scale
      matrix(2, k) *= 1e37f;
    }
    matrix(3, 0) = std::numeric_limits<float>::max();
    write_safetensors(folder.path("w"), {{"m", view_of(matrix)}}, {}, NumberType::int4);
    SafetensorsFile file(folder.path("w"));
    const std::int64_t row_bytes = (columns + 1) / 2, groups = (columns + 31) / 32;
    const SafetensorsEntry &integers = *file.find("m"), &scales = *file.find("m_scale");
    EXPECT_EQ(integers.dtype, "U8");
    EXPECT_TRUE(test::holds(integers.shape, {9, row_bytes}));
    EXPECT_EQ(scales.dtype, "BF16");
    EXPECT_TRUE(test::holds(scales.shape, {9, groups}));
    EXPECT_EQ(file.find("m_shape")->dtype, "I64");
    ASSERT_EQ(file.weights().size(), 1u) << "scales and shapes are no weights";
    const WeightView got = file.float32("m");
    ASSERT_TRUE(test::holds(got.shape, {9, columns}));
    for (std::int64_t row = 0; row < 9; ++row) {
      for (std::int64_t k = 0; k < columns; ++k) {
        const std::int64_t group = k / 32;
        float most = 0;
        for (std::int64_t n = group * 32; n < std::min(columns, group * 32 + 32); ++n) {
          most = std::max(most, std::abs(matrix(row, n)));
        }
        const auto scale = static_cast<float>(BFloat16(std::max(most / 7.0f, 0x1p-126f)));
        BFloat16 stored;
        std::memcpy(&stored, scales.bytes.data() + (row * groups + group) * 2, sizeof stored);
        EXPECT_EQ(static_cast<float>(stored), scale) << row << ", " << group;
        const int byte = std::to_integer<int>(integers.bytes[static_cast<std::size_t>(row * row_bytes + k / 2)]);
        const float integer = std::clamp(std::nearbyint(matrix(row, k) * (1 / scale)), -7.0f, 7.0f);
        EXPECT_EQ(static_cast<float>((k % 2 == 0 ? byte & 15 : byte >> 4) - 8), integer) << row << ", " << k;
        EXPECT_EQ(got.values[static_cast<std::size_t>(row * columns + k)], integer * scale) << row << ", " << k;
        if (k + 1 == columns && k % 2 == 0) {
          EXPECT_EQ(byte >> 4, 8) << "behind the end";
        }
      }
    }
    write_safetensors(folder.path("again"), file.weights(), {}, NumberType::int4);
    EXPECT_EQ(bytes_of_file(folder.path("again")), bytes_of_file(folder.path("w")));
    const Tensor<float, 2> a = Random(6).normal_tensor<2>({3, columns});
    Tensor<float, 2> of_matrix({3, 9}), of_file({3, 9});
    gemm(engine, a, PackedMatrix(engine, matrix, Transpose::yes, NumberType::int4), of_matrix);
    const View<const float, 2> read(got.values.data(), {9, columns});
    gemm(engine, a, PackedMatrix(engine, read, Transpose::yes, NumberType::int4), of_file);
    EXPECT_TRUE(test::same_bits(of_file, of_matrix));
  }
}

// A layer reads the integers where they lie in the file, and its panels are those of the floats that were written.
TEST(StoredWeight, IntegersGoFromTheFileToPanelsAsTheyAre) {
  const ScratchFolder folder;
  Engine engine({.threads = 1});
  const Tensor<float, 2> matrix = Random(7).normal_tensor<2>({70, 100});
  for (const NumberType type : {NumberType::int8, NumberType::int4}) {
    SCOPED_TRACE(name(type));
    write_safetensors(folder.path("w"), {{"weight", view_of(matrix)}}, {}, type);
    SafetensorsFile file(folder.path("w"));
    const WeightView view = file.stored("weight");
    EXPECT_EQ(view.stored.format, format_of(type));
    EXPECT_EQ(view.stored.data, file.find("weight")->bytes.data());
    EXPECT_EQ(view.stored.scales, file.find("weight_scale")->bytes.data());
    EXPECT_EQ(view.stored.count, 7000);
    EXPECT_TRUE(test::holds(view.shape, {70, 100}));
    EXPECT_TRUE(view.values.empty());
    Linear stored(100, 70, false), floats(100, 70, false);
    stored.load({{"weight", view}});
    floats.load({{"weight", file.float32("weight")}});
    const Tensor<float, 2> a = Random(8).normal_tensor<2>({3, 100});
    Tensor<float, 2> of_stored({3, 70}), of_floats({3, 70});
    for (const NumberType precision : kNumberTypes) {
      stored.set_precision(precision);
      floats.set_precision(precision);
      stored.forward(engine, a, of_stored);
      floats.forward(engine, a, of_floats);
      EXPECT_TRUE(test::same_bits(of_stored, of_floats)) << name(precision);
    }
  }
}

TEST(StoredWeight, WhatHasNoRowsOrNoNumbers) {
  const ScratchFolder folder;
  write_safetensors(folder.path("w"), {{"a", {{0, 4}, {}, {}}}, {"b", {{3, 0}, {}, {}}}}, {}, NumberType::int8);
  SafetensorsFile file(folder.path("w"));
  EXPECT_TRUE(test::holds(file.find("a_scale")->shape, {0, 1}));
  EXPECT_TRUE(test::holds(file.find("b_scale")->shape, {3, 1}));
  EXPECT_TRUE(file.float32("a").values.empty());
  EXPECT_TRUE(file.float32("b").values.empty());
  write_safetensors(folder.path("w"), {{"a", {{0, 5}, {}, {}}}, {"b", {{3, 0}, {}, {}}}}, {}, NumberType::int4);
  SafetensorsFile halves(folder.path("w"));
  EXPECT_TRUE(test::holds(halves.float32("a").shape, {0, 5}));
  EXPECT_TRUE(test::holds(halves.float32("b").shape, {3, 0}));
}

// What is stored is written byte for byte, or, where that is no format of safetensors or another type is asked for, as
// its numbers.
TEST(StoredWeight, WritesWhatIsStored) {
  const ScratchFolder folder;
  const Tensor<float, 2> matrix = Random(5).normal_tensor<2>({7, 96});
  const auto bytes = [&](const char* name) { return bytes_of_file(folder.path(name)); };
  write_safetensors(folder.path("float32"), {{"m", view_of(matrix)}});
  for (const NumberType type : {NumberType::bfloat16, NumberType::float16, NumberType::int8, NumberType::int4}) {
    SCOPED_TRACE(name(type));
    write_safetensors(folder.path("narrow"), {{"m", view_of(matrix)}}, {}, type);
    SafetensorsFile narrow(folder.path("narrow"));
    const Weights stored{{"m", narrow.stored("m")}}, floats{{"m", narrow.float32("m")}};
    write_safetensors_as_stored(folder.path("again"), stored);
    EXPECT_EQ(bytes("again"), bytes("narrow"));
    for (const NumberType other : {NumberType::float32, NumberType::bfloat16, NumberType::int8, NumberType::int4}) {
      write_safetensors(folder.path("one"), stored, {}, other);
      write_safetensors(folder.path("other"), floats, {}, other);
      EXPECT_EQ(bytes("one"), bytes("other")) << name(other);
    }
  }
  // A block of q8_0: a scale of 1 and the integers 0 … 31.
  std::array<std::int8_t, 34> block{};
  const Float16 one(1.0f);
  std::memcpy(block.data(), &one.bits, 2);
  std::iota(block.begin() + 2, block.end(), std::int8_t{0});
  write_safetensors_as_stored(folder.path("block"),
                              {{"m", {.shape = {1, 32}, .stored = {StorageFormat::q8_0, block.data(), 32}}}});
  SafetensorsFile file(folder.path("block"));
  EXPECT_EQ(file.find("m")->dtype, "F32");
  for (std::size_t n = 0; n < 32; ++n) EXPECT_EQ(file.float32("m").values[n], static_cast<float>(n));
}

TEST(StoredWeight, RefusalsNameTheTensor) {
  Tensor<float, 2> matrix({2, 3});
  const std::vector<float> one{1};
  matrix(1, 2) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal({{"m", view_of(matrix)}}, NumberType::int8),
            "write_safetensors: tensor 'm' holds a NaN or an infinity in row 1, which int8 has not");
  EXPECT_EQ(refusal({{"m", view_of(matrix)}}, NumberType::int4),
            "write_safetensors: tensor 'm' holds a NaN or an infinity in row 1, which int4 has not");
  matrix(1, 2) = 0;
  EXPECT_EQ(refusal({{"m", view_of(matrix)}, {"m_scale", {{1}, one, {}}}}, NumberType::int8),
            "write_safetensors: tensor 'm_scale' has the name of the scales or the shape of another");
  EXPECT_EQ(refusal({{"m", view_of(matrix)}, {"m_shape", {{1}, one, {}}}}, NumberType::int4),
            "write_safetensors: tensor 'm_shape' has the name of the scales or the shape of another");
  const std::vector<BFloat16> halves(4);
  EXPECT_EQ(
      refusal({{"m", {.shape = {2, 3}, .stored = {StorageFormat::bfloat16, halves.data(), 4}}}}, NumberType::bfloat16),
      "write_safetensors: tensor 'm' has 4 values, which its shape does not say, or a reserved name");
  // One number that lies in int8 or int4 and has no axis that scales could stand for.
  const ScratchFolder folder;
  const std::uint8_t number = 1;
  const float scale = 1;
  for (const auto& [format, type] : {std::pair{StorageFormat::int8, "int8"}, {StorageFormat::int4, "int4"}}) {
    const Weights weights{{"m", {.shape = {}, .stored = {format, &number, 1, &scale}}}};
    std::string said;
    try {
      write_safetensors_as_stored(folder.path("w"), weights);
    } catch (const std::invalid_argument& error) {
      said = error.what();
    }
    EXPECT_EQ(said, "write_safetensors: tensor 'm' has no axis, expected one or more for " + std::string(type));
  }
  EXPECT_EQ(refusal({{"m", view_of(matrix)}}, static_cast<NumberType>(99)),
            "write_safetensors: weights are of type , expected float32, bfloat16, float16, int8 or int4");
}

// I8 without scales, or with ones of another shape or type.
TEST(StoredWeight, IntegersWithoutScalesAreRefused) {
  const ScratchFolder folder;
  for (const char* scales : {R"("m_scales":{"dtype":"F32","shape":[2,1],"data_offsets":[6,14]})",
                             R"("m_scale":{"dtype":"F32","shape":[2],"data_offsets":[6,14]})",
                             R"("m_scale":{"dtype":"F32","shape":[1,2],"data_offsets":[6,14]})",
                             R"("m_scale":{"dtype":"I32","shape":[2,1],"data_offsets":[6,14]})"}) {
    const std::string header = std::string(R"({"m":{"dtype":"I8","shape":[2,3],"data_offsets":[0,6]},)") + scales + "}";
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    bytes += header + std::string(14, '\1');
    SafetensorsFile file("memory", std::as_bytes(std::span(bytes)));
    EXPECT_EQ(
        file_error([&] { (void)file.float32("m"); }),
        "memory: tensor 'm' has dtype I8, expected F32, F16, BF16, or I8 or U8 with what write_safetensors() puts "
        "beside it, 'm_scale' (and of U8 'm_shape')");
    EXPECT_EQ(file.weights().size(), std::string(scales).find("F32") != std::string::npos ? 1u : 0u);
  }
}

// The same of two rows of 5 numbers of four bits: 6 bytes, 4 of scales, 16 of the shape that is said.
TEST(StoredWeight, FourBitsWithoutScalesOrShapeAreRefused) {
  const std::string m = R"("m":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]},)";
  const std::string scale = R"("m_scale":{"dtype":"BF16","shape":[2,1],"data_offsets":[6,10]},)";
  const std::string shape = R"("m_shape":{"dtype":"I64","shape":[2],"data_offsets":[10,26]})";
  const auto is_read = [](const std::string& entries, std::int64_t rows, std::int64_t columns) {
    const std::string header = "{" + entries + "}";
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    bytes += header + std::string(10, '\1') + std::string(16, '\0');
    std::memcpy(bytes.data() + bytes.size() - 16, &rows, 8);
    std::memcpy(bytes.data() + bytes.size() - 8, &columns, 8);
    SafetensorsFile file("memory", std::as_bytes(std::span(bytes)));
    const bool read = file.weights().contains("m");
    if (read) {
      EXPECT_TRUE(test::holds(file.float32("m").shape, {rows, columns}));
    } else {
      EXPECT_NE(file_error([&] { (void)file.float32("m"); }).find("'m' has dtype U8, expected"), std::string::npos);
    }
    return read;
  };
  EXPECT_TRUE(is_read(m + scale + shape, 2, 5));
  EXPECT_TRUE(is_read(m + scale + shape, 2, 6));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t columns :
       {std::int64_t{4}, std::int64_t{7}, std::int64_t{-5}, std::int64_t{0}, most, -most}) {
    EXPECT_FALSE(is_read(m + scale + shape, 2, columns)) << columns;
  }
  for (const std::int64_t rows : {1, -2, 0, 3}) EXPECT_FALSE(is_read(m + scale + shape, rows, 5)) << rows;
  const auto with = [](std::string text, const std::string& old, const std::string& now) {
    return text.replace(text.find(old), old.size(), now);
  };
  for (const std::string& other :
       {with(scale, "BF16", "F16"), with(scale, "[2,1]", "[1,2]"), with(scale, "m_scale", "n")}) {
    EXPECT_FALSE(is_read(m + other + shape, 2, 5)) << other;
  }
  for (const std::string& other :
       {with(shape, "I64", "U64"), with(shape, "[2]", "[1,2]"), with(shape, "m_shape", "n")}) {
    EXPECT_FALSE(is_read(m + scale + other, 2, 5)) << other;
  }
}

}  // namespace headlight::models::stored_weight_test
