// A published model whose products multiply in a narrower type, and files whose weights are of 16 bits.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "headlight/models/headlight_models.h"
#include "headlight/models/text_encoder.h"
#include "models/tiny_bert.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/isas.h"
#include "support/narrow_types.h"
#include "support/quick.h"
#include "support/workers.h"

namespace headlight::models::model_precision_test {

using test::kNarrow;
using test::same_bits;
using test::ScratchFolder;
using test::TinyBert;

const std::vector<std::string> kTexts{"A b", "", "é ? x y z a b c d e f g h", "q", "n m l k j"};

double cosine(const float* a, const float* b, std::int64_t count) {
  double product = 0, of_a = 0, of_b = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    const auto x = static_cast<double>(a[n]), y = static_cast<double>(b[n]);
    product += x * y;
    of_a += x * x;
    of_b += y * y;
  }
  return product / std::sqrt(of_a * of_b);
}

// The smallest cosine of two rows with the same number.
double least_cosine(const Tensor<float, 2>& a, const Tensor<float, 2>& b) {
  double least = 1;
  for (std::int64_t row = 0; row < a.shape()[0]; ++row) {
    const double found = cosine(&a(row, 0), &b(row, 0), a.shape()[1]);
    if (!(found >= least)) least = found;
  }
  return least;
}

// By how much rounding turns a row a of the widest product, K = 40 numbers: each off by 2⁻⁹ of itself at most in
// bfloat16, by 2⁻¹² in float16, where activations stay. In int8 by half a scale: of activations 1/255 of max a − min a
// ≤ √2 |a|, of weights 1/127 of max |a| ≤ |a|. In int4 half a scale is as much as a weight of middle size; but errors
// lie evenly within it, the square of one is scale²/12 on average, and the largest of 32 normal numbers is 2.07 times
// their deviation (of more groups than one; Harter 1961): (2.07 / 7)² / 12 of the row's square. Of activations alike.
struct Turned {
  double activations, weights;
};
Turned turned_by(NumberType type) {
  if (type == NumberType::bfloat16) return {0x1p-9, 0x1p-9};
  if (type == NumberType::float16) return {0, 0x1p-12};
  if (type == NumberType::int4) return {2.07 / 127 / std::sqrt(12.0), 2.07 / 7 / std::sqrt(12.0)};
  const double root = std::sqrt(static_cast<double>(TinyBert::kInner));
  return {root * std::sqrt(2.0) / (2 * 255), root / (2 * 127)};
}

// Between an id and its vector lie four products a layer. They, normalisations and attention keep an angle about as it
// is, so that the vector is turned by the sum of all at most, and the cosine of an angle is 1 − ½ angle² at least.
double tiny_floor(NumberType type) {
  const Turned turned = turned_by(type);
  const double angle = 4 * TinyBert::kLayers * (turned.activations + turned.weights);
  return 1 - angle * angle / 2;
}

TEST(ModelPrecision, IsChosenWhereAModelIsLoaded) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  const TextEncoder plain = load(path);
  EXPECT_EQ(plain.network().precision(), NumberType::float32);
  for (const NumberType type : kNarrow) {
    const TextEncoder narrow = load(path, {.precision = type});
    EXPECT_EQ(narrow.network().precision(), type);
    TextEncoder told = load(path);
    told.network().set_precision(type);
    for (const test::Instructions& instructions : test::available_instructions()) {
      SCOPED_TRACE(std::string(name(type)) + " on " + test::name(instructions));
      Engine engine(instructions.options(2));
      const auto expected = plain.embed(engine, kTexts), found = narrow.embed(engine, kTexts);
      EXPECT_FALSE(same_bits(found, expected));
      EXPECT_TRUE(same_bits(found, told.embed(engine, kTexts)));
      EXPECT_GE(least_cosine(found, expected), tiny_floor(type));
      for (std::int64_t row = 0; row < found.shape()[0]; ++row) {
        const auto alone = narrow.embed(engine, std::span(kTexts).subspan(static_cast<std::size_t>(row), 1));
        EXPECT_TRUE(same_bits(alone.view(), View<const float, 2>(&found(row, 0), alone.shape()))) << "in company";
      }
    }
  }
}

TEST(ModelPrecision, SavesTheNumbersThatWereLoaded) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  Engine engine({.threads = 1});
  for (const NumberType type : kNarrow) {
    const TextEncoder narrow = load(path, {.precision = type});
    (void)narrow.embed(engine, kTexts);
    narrow.save(folder.path("saved"));
    EXPECT_TRUE(same_bits(load(folder.path("saved")).embed(engine, kTexts), load(path).embed(engine, kTexts)));
  }
}

// A folder in a narrower type is a model of its own, near the one that was saved, and saved again the same file.
TEST(ModelPrecision, SavesNarrowWeights) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  Engine engine({.threads = 1});
  const TextEncoder plain = load(path);
  const auto expected = plain.embed(engine, kTexts);
  const auto bytes = [&](const std::string& model) {
    std::ifstream file(folder.path(model) + "/model.safetensors", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  plain.save(folder.path("float32"));
  for (const NumberType type : kNarrow) {
    SCOPED_TRACE(name(type));
    plain.save(folder.path("once"), type);
    const TextEncoder narrow = load(folder.path("once"));
    EXPECT_EQ(narrow.network().precision(), NumberType::float32);
    const auto found = narrow.embed(engine, kTexts);
    EXPECT_FALSE(same_bits(found, expected));
    EXPECT_GE(least_cosine(found, expected), tiny_floor(type));
    narrow.save(folder.path("twice"), type);
    EXPECT_EQ(bytes("twice"), bytes("once"));
    narrow.save(folder.path("as it is"));
    EXPECT_EQ(bytes("as it is"), bytes("once"));
    // Also when panels of that type or rows of floats were made of it meanwhile.
    const TextEncoder packed = load(folder.path("once"), {.precision = type});
    (void)packed.embed(engine, kTexts);
    (void)packed.network().weights();
    packed.save(folder.path("as it is"));
    EXPECT_EQ(bytes("as it is"), bytes("once"));
    narrow.save(folder.path("widened"), NumberType::float32);
    EXPECT_EQ(bytes("widened").size(), bytes("float32").size());
    EXPECT_TRUE(same_bits(load(folder.path("widened")).embed(engine, kTexts), found));
    EXPECT_LT(bytes("once").size(), bytes("float32").size());
  }
  // Weights that are of 16 bits become the same panels, and tables stay as they are.
  plain.save(folder.path("once"), NumberType::bfloat16);
  const TextEncoder halves = load(folder.path("once"));
  halves.save(folder.path("widened"));
  EXPECT_TRUE(same_bits(load(folder.path("widened"), {.precision = NumberType::bfloat16}).embed(engine, kTexts),
                        load(folder.path("once"), {.precision = NumberType::bfloat16}).embed(engine, kTexts)));
}

TEST(ModelPrecision, AllocatesNothingAfterReserve) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  for (const NumberType type : kNarrow) {
    // Tables of 16 bits are read where the file is mapped.
    load(path).save(folder.path("halves"), NumberType::bfloat16);
    const std::string stored = folder.path("halves");
    for (const auto& [model, threads] : {std::pair{path, 1}, {path, 3}, {stored, 1}, {stored, 3}}) {
      const TextEncoder narrow = load(model, {.precision = type});
      Engine engine({.threads = threads});
      test::wait_for_workers(engine);
      narrow.reserve(engine, 400 * 12);
      // However few of the tokens come, and however their rows are cut.
      for (const std::int64_t rows : {400, 150, 61, 40, 25, 13, 12, 8, 1}) {
        const Tensor<std::int64_t, 2> ids({rows, 12});
        Tensor<float, 2> out({rows, TinyBert::kWidth});
        const test::AllocationCounter counter;
        narrow.embed(engine, ids, {}, out);
        const std::int64_t allocations = counter.count();
        EXPECT_EQ(allocations, 0) << name(type) << ", " << threads << " threads, " << rows << " rows";
      }
    }
  }
}

TEST(ModelPrecision, SameBitsFromC) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  Engine own({.threads = 1});
  const auto expected = load(path, {.precision = NumberType::bfloat16}).embed(own, kTexts);

  headlight_error error{};
  headlight_engine_options engine_options = HEADLIGHT_OPTIONS(headlight_engine_options);
  engine_options.threads = 1;
  headlight_engine* engine = nullptr;
  ASSERT_EQ(headlight_engine_create(&engine_options, &engine, &error), HEADLIGHT_OK) << error.message;
  headlight_load_model_options options = HEADLIGHT_OPTIONS(headlight_load_model_options);
  options.precision = HEADLIGHT_BFLOAT16;
  headlight_encoder* encoder = nullptr;
  ASSERT_EQ(headlight_encoder_load_with(path.c_str(), &options, &encoder, &error), HEADLIGHT_OK) << error.message;
  EXPECT_EQ(headlight_layer_precision(headlight_encoder_network(encoder)), HEADLIGHT_BFLOAT16);

  std::vector<const char*> texts;
  for (const std::string& text : kTexts) texts.push_back(text.c_str());
  Tensor<float, 2> found(expected.shape());
  const headlight_tensor out = {found.data(), HEADLIGHT_FLOAT32, 2, found.shape().data(), nullptr};
  ASSERT_EQ(headlight_encoder_embed_texts(encoder, engine, texts.data(), nullptr, texts.size(), &out, &error),
            HEADLIGHT_OK)
      << error.message;
  EXPECT_TRUE(same_bits(found, expected));
  headlight_encoder_destroy(encoder);
  headlight_engine_destroy(engine);
}

// A file in the format of safetensors, of 16-bit numbers: those of the tiny model, cut to bfloat16, or halved in
// float16 where that holds them.
// Numbers lie at even addresses, or at odd ones, where nothing can read them as they are.
std::string file_of_halves(const TinyBert& bert, const std::string& dtype, std::uint16_t (*half)(float), bool is_even) {
  std::string header = "{", data;
  for (const auto& [name, tensor] : bert.tensors) {
    const nlohmann::json entry = {{"dtype", dtype},
                                  {"shape", tensor.shape},
                                  {"data_offsets", {data.size(), data.size() + 2 * tensor.values.size()}}};
    header += (header.size() > 1 ? ",\"" : "\"") + name + "\":" + entry.dump();
    for (const float value : tensor.values) {
      const std::uint16_t bits = half(value);
      data += static_cast<char>(bits & 0xff);
      data += static_cast<char>(bits >> 8);
    }
  }
  header += "}";
  if ((header.size() % 2 == 0) != is_even) header += " ";
  std::string length(8, '\0');
  for (std::size_t byte = 0; byte < 8; ++byte) length[byte] = static_cast<char>(header.size() >> (8 * byte) & 0xff);
  return length + header + data;
}

std::uint16_t upper_half(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); }

// Of normal numbers of float16, cut to its 10 fraction bits; of smaller ones 0.
std::uint16_t as_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 0xff;
  if (exponent < 113) return static_cast<std::uint16_t>(sign);
  return static_cast<std::uint16_t>(sign | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

// Weights that are bfloat16 numbers already are rounded to themselves.
TEST(ModelPrecision, FilesOf16BitsAreWidened) {
  Engine engine({.threads = 1});
  const ScratchFolder folder;
  for (const auto& [dtype, half, kept] :
       {std::tuple{"BF16", &upper_half, 0xffff0000u}, std::tuple{"F16", &as_float16, 0xffffe000u}}) {
    TinyBert bert;
    const std::string file = file_of_halves(bert, dtype, half, true), odd = file_of_halves(bert, dtype, half, false);
    for (auto& [name, tensor] : bert.tensors) {
      for (float& value : tensor.values) {
        const bool is_zero = std::string(dtype) == "F16" && half(value) % 0x8000 == 0;
        value = is_zero ? std::copysign(0.0f, value) : std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & kept);
      }
    }
    const std::string path = bert.write(folder);
    const TextEncoder widened = load(path);
    const TextEncoder narrow = load(path, {.precision = NumberType::bfloat16});
    const auto expected = widened.embed(engine, kTexts), expected_narrow = narrow.embed(engine, kTexts);
    folder.write("bert/model.safetensors", file);
    EXPECT_TRUE(same_bits(load(path).embed(engine, kTexts), expected)) << dtype;
    const TextEncoder found = load(path, {.precision = NumberType::bfloat16});
    EXPECT_TRUE(same_bits(found.embed(engine, kTexts), expected_narrow)) << dtype;
    // Where panels hold them to the bit they are read back from there.
    found.save(folder.path("saved"));
    EXPECT_TRUE(same_bits(load(folder.path("saved")).embed(engine, kTexts), expected)) << dtype;
    folder.write("bert/model.safetensors", odd);
    EXPECT_TRUE(same_bits(load(path).embed(engine, kTexts), expected)) << dtype;
  }
}

// The published model, where it is: all-MiniLM-L6-v2 unpacked under downloads/, or where HEADLIGHT_TEST_MODEL says.
// What is promised of its vectors in each type.
TEST(ModelPrecision, FULL_MiniLmKeepsItsVectors) {
  const char* given = std::getenv("HEADLIGHT_TEST_MODEL");
  const std::string folder = given != nullptr ? given : HEADLIGHT_SOURCE_DIR "/downloads/all-MiniLM-L6-v2";
  if (!std::ifstream(folder + "/model.safetensors")) GTEST_SKIP() << "no all-MiniLM-L6-v2 in " << folder;
  std::vector<std::string> texts;
  std::ifstream stream(test::golden_path("tokenizer_cases.jsonl"));
  const std::size_t wanted = test::quick() ? 10 : 62;
  for (std::string line; texts.size() < wanted && std::getline(stream, line);) {
    texts.push_back(nlohmann::json::parse(line)[0].get<std::string>());
  }
  ASSERT_EQ(texts.size(), wanted);
  Engine engine;
  const Tensor<float, 2> expected = load(folder).embed(engine, texts);
  for (const auto& [type, floor] :
       {std::pair{NumberType::bfloat16, 0.9999}, {NumberType::float16, 0.9999}, {NumberType::int8, 0.985}}) {
    const double least = least_cosine(load(folder, {.precision = type}).embed(engine, texts), expected);
    EXPECT_GE(least, floor) << name(type);
    RecordProperty(std::string(name(type)), std::to_string(least));
  }
}

}  // namespace headlight::models::model_precision_test
