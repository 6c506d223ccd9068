#include "headlight/models/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "models/scratch_folder.h"

namespace headlight::models::safetensors_test {

using test::file_error;
using test::ScratchFolder;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + rest;
}

std::string file_of(const std::string& header, const std::string& data = "") {
  return with_length(header.size(), header + data);
}

template <class Number>
std::string raw(std::initializer_list<Number> numbers) {
  std::string bytes;
  for (const Number number : numbers) {
    char element[sizeof(Number)];
    std::memcpy(element, &number, sizeof number);
    bytes.append(element, sizeof number);
  }
  return bytes;
}

TEST(Safetensors, NoMetadataMayBeNull) {
  const std::string bytes =
      file_of(R"({"__metadata__":null,"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x");
  const SafetensorsFile file("f", std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_EQ(file.tensors().size(), 1u);
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const ScratchFolder folder;
  const std::vector<float> a{1, 2, 3, 4, 5, 6};
  const std::vector<float> one{-0.5f};
  const Weights weights{{"layer.a", {{2, 3}, a}}, {"scalar", {{}, one}}, {"none", {{2, 0}, {}}}, {"\"ü\n", {{1}, one}}};
  write_safetensors(folder.path("w"), weights, {{"format", "pt"}});
  SafetensorsFile file(folder.path("w"));
  EXPECT_TRUE(file.metadata() == (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_EQ(file.tensors().size(), 4u);
  const auto view = file.float32("layer.a");
  EXPECT_TRUE(test::holds(view.shape, {2, 3}));
  EXPECT_TRUE(test::holds(view.values, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(file.float32("scalar").shape.empty());
  EXPECT_TRUE(test::holds(file.float32("scalar").values, {-0.5f}));
  EXPECT_TRUE(test::holds(file.float32("none").shape, {2, 0}));
  EXPECT_EQ(file.weights().size(), 4u);
  EXPECT_NE(file.find("\"ü\n"), nullptr);
  // The mapped bytes themselves.
  EXPECT_EQ(static_cast<const void*>(view.values.data()), static_cast<const void*>(file.find("layer.a")->bytes.data()));
  EXPECT_EQ(folder.count(), 1);

  SafetensorsFile moved = std::move(file);
  EXPECT_TRUE(test::holds(moved.float32("scalar").values, {-0.5f}));
}

TEST(Safetensors, HalvesAreWidenedAndOthersListed) {
  const ScratchFolder folder;
  const std::string header =
      R"({"f16":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"bf16":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},)"
      R"("odd":{"dtype":"U8","shape":[1],"data_offsets":[12,13]},"f32":{"dtype":"F32","shape":[1],"data_offsets":[13,17]},)"
      R"("ids":{"dtype":"I64","shape":[1,1],"data_offsets":[17,25]}}   )";
  const std::string data = raw<std::uint16_t>({0x3555, 0x8000, 0xFC00, 0x0200}) + raw<std::uint16_t>({0x3FC0, 0xC2F7}) +
                           "\x07" + raw({2.5f}) + raw<std::int64_t>({3});
  SafetensorsFile file(folder.write("w", file_of(header, data)));
  EXPECT_TRUE(test::holds(file.float32("f16").values,
                          {0.333251953125f, -0.0f, -std::numeric_limits<float>::infinity(), 0x1p-15f}));
  EXPECT_TRUE(test::holds(file.float32("bf16").values, {1.5f, -123.5f}));
  EXPECT_TRUE(test::holds(file.float32("f32").values, {2.5f}));  // not aligned in the file
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.float32("f32").values.data()) % alignof(float), 0u);
  EXPECT_EQ(file.find("ids")->dtype, "I64");
  EXPECT_EQ(file.find("odd")->bytes.size(), 1u);
  EXPECT_EQ(file.weights().size(), 3u);
  EXPECT_TRUE(
      test::contains(file_error([&] { (void)file.float32("ids"); }),
                     "tensor 'ids' has dtype I64, expected F32, F16, BF16, or I8 or U8 with what write_safetensors() "
                     "puts beside it, 'ids_scale' (and of U8 'ids_shape')"));
  EXPECT_TRUE(test::contains(file_error([&] { (void)file.float32("nobody"); }), "lacks the tensor 'nobody'"));
}

TEST(Safetensors, HalvesAreReadWhereTheyLie) {
  const ScratchFolder folder;
  std::string header =
      R"({"f16":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"bf16":{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]},)"
      R"("f32":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})";
  const std::string data =
      raw<std::uint16_t>({0x3C00, 0x8000, 0xFC00, 0x0200}) + raw<std::uint16_t>({0x3FC0, 0xC2F7}) + raw({2.5f});
  header.resize((header.size() + 3) / 4 * 4, ' ');
  SafetensorsFile file(folder.write("w", file_of(header, data)));
  for (const auto& [name, format] : {std::pair{"f16", StorageFormat::float16}, {"bf16", StorageFormat::bfloat16}}) {
    const WeightView view = file.stored(name);
    EXPECT_EQ(view.stored.data, file.find(name)->bytes.data()) << name;
    EXPECT_EQ(view.stored.format, format);
    EXPECT_EQ(view.stored.count * 2, static_cast<std::int64_t>(file.find(name)->bytes.size()));
    EXPECT_EQ(view.shape, file.find(name)->shape);
    EXPECT_TRUE(view.values.empty());
    EXPECT_NE(view.owner, nullptr);
  }
  EXPECT_FALSE(file.stored("f32").stored);
  EXPECT_TRUE(test::holds(file.stored("f32").values, {2.5f}));
  EXPECT_TRUE(test::contains(file_error([&] { (void)file.stored("nobody"); }), "lacks the tensor 'nobody'"));

  // At odd addresses they cannot be.
  SafetensorsFile odd(folder.write("odd", file_of(header + " ", data)));
  EXPECT_FALSE(odd.stored("f16").stored);
  EXPECT_TRUE(test::holds(odd.stored("f16").values, {1.0f, -0.0f, -std::numeric_limits<float>::infinity(), 0x1p-15f}));
}

TEST(Safetensors, LegalCorners) {
  const ScratchFolder folder;
  const auto read = [&](const std::string& header, const std::string& data = "") {
    return SafetensorsFile(folder.write("w", file_of(header, data)));
  };
  EXPECT_TRUE(read("{}").tensors().empty());
  EXPECT_TRUE(read(R"({"__metadata__":{}})").tensors().empty());
  // Header order need not be data order.
  EXPECT_EQ(
      read(
          R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"data_offsets":[0,1],"shape":[1,1,1],"dtype":"U8"}})",
          "xy")
          .tensors()[0]
          .name,
      "a");
  EXPECT_EQ(
      read(
          R"({"z":{"dtype":"F32","shape":[2,0],"data_offsets":[1,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
          R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          "xy")
          .tensors()
          .size(),
      3u);
}

struct Hostile {
  std::string bytes;
  std::string says;
};

std::string tensor(const std::string& shape, const std::string& offsets, const std::string& dtype = "\"F32\"") {
  return "{\"t\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}

std::vector<Hostile> hostile_files() {
  const std::string four(4, 'x');
  const std::string deep(100'000, '[');
  return {
      {"", "has 0 bytes, expected at least the 8"},
      {"1234567", "has 7 bytes"},
      {with_length(100'000'001, "{}"), "the header length is 100000001, expected at most 100000000"},
      {with_length(UINT64_MAX, "{}"), "the header length is 18446744073709551615"},
      {with_length(3, "{}"), "the header length is 3, but only 2 bytes follow"},
      {with_length(0, ""), "does not begin with '{'"},
      {file_of("[]"), "does not begin with '{'"},
      {file_of(" {}"), "does not begin with '{'"},
      {file_of("{"), "not valid JSON at its byte"},
      {file_of("{}}"), "not valid JSON"},
      {file_of("{\"\xFF\":1}"), "not valid JSON"},
      {file_of(std::string("{}\0{", 4)), "holds a zero byte"},
      {file_of("{}", "x"), "holds 1 bytes after the last tensor"},
      {file_of(R"({"t":1})"), "tensor 't' is a number, expected an object"},
      {file_of(R"({"t":[]})"), "tensor 't' is an array, expected an object"},
      {file_of(R"({"t":null})"), "tensor 't' is null, expected an object"},
      {file_of("{\"t\":{\"shape\":" + deep), "tensor 't' shape holds an array"},
      {file_of("{\"t\":" + deep), "tensor 't' is an array"},
      {file_of(R"({"t":{"a":{"a":{)"), "unknown member 'a'"},
      {file_of(R"({"__metadata__":{"a":{}}})"), "__metadata__ holds an object for 'a', expected a string"},
      {file_of(R"({"__metadata__":{"a":"1","a":"2"}})"), "__metadata__ holds the key 'a' twice"},
      {file_of(R"({"__metadata__":"text"})"), "__metadata__ is a string, expected an object"},
      {file_of(R"({"t":{}})"), "tensor 't' lacks dtype"},
      {file_of(R"({"t":{"dtype":"F32","shape":[]}})"), "tensor 't' lacks data_offsets"},
      {file_of(R"({"t":{"dtype":"F32","dtype":"F32"}})"), "holds dtype twice"},
      {file_of(tensor("[1]", "[0,4]").substr(0, tensor("[1]", "[0,4]").size() - 1) +
                   R"(,"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
               four),
       "names 't' twice"},
      {file_of(tensor("[1]", "[0,4]", "4"), four), "dtype is a number, expected a string"},
      {file_of(tensor("[1]", "[0,4]", "\"F33\""), four), "unknown dtype 'F33'"},
      {file_of(tensor("[1]", "[0,4]", "\"\\u001b[31m\\n\""), four), "unknown dtype '\\x1b[31m\\n'"},
      {file_of(tensor("1", "[0,4]"), four), "shape is a number, expected an array"},
      {file_of(tensor("[-1]", "[0,4]"), four), "shape holds a negative number"},
      {file_of(tensor("[1.0]", "[0,4]"), four), "shape holds a number that is no 64-bit integer"},
      {file_of(tensor("[1e0]", "[0,4]"), four), "shape holds a number that is no 64-bit integer"},
      {file_of(tensor("[\"1\"]", "[0,4]"), four), "shape holds a string"},
      {file_of(tensor("[true]", "[0,4]"), four), "shape holds true or false"},
      {file_of(tensor("[18446744073709551616]", "[0,4]"), four), "no 64-bit integer"},
      {file_of(tensor("[9223372036854775808]", "[0,4]"), four), "expected less than 2^63"},
      {file_of(tensor("[4611686018427387904,4]", "[0,4]"), four), "does not fit 63 bits"},
      {file_of(tensor("[4294967296,4294967296,4294967296,0]", "[0,0]")), "does not fit 63 bits"},
      {file_of(tensor("[2]", "[0,4]"), four), "takes 8 bytes, but data_offsets [0, 4] hold 4"},
      {file_of(tensor("[1]", "[0,8]"), four), "but the data has 4 bytes"},
      {file_of(tensor("[1]", "[4,0]"), four), "expected the first not above the second"},
      {file_of(tensor("[1]", "[0]"), four), "data_offsets has 1 entries"},
      {file_of(tensor("[1]", "[0,4,4]"), four), "data_offsets has 3 entries"},
      {file_of(tensor("[1]", "[1,5]"), four + "x"), "expected to begin at 0"},
      {file_of(tensor("[1]", "[0,4]"), four + "x"), "holds 1 bytes after the last tensor"},
      {file_of(tensor("[" + std::string(70, '1').replace(0, 0, "") + "]", "[0,4]"), four), "no 64-bit integer"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           four),
       "tensor 'b' has data_offsets [2, 4], expected to begin at 3"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           four),
       "tensor 'b' has data_offsets [2, 4], expected to begin at 1"},
  };
}

TEST(Safetensors, HostileFilesSayWhatIsWrong) {
  const ScratchFolder folder;
  for (const auto& [bytes, says] : hostile_files()) {
    const auto path = folder.write("h.safetensors", bytes);
    EXPECT_TRUE(test::contains(file_error([&] { SafetensorsFile file(path); }), "h.safetensors: ", says));
  }
}

TEST(Safetensors, ManyAxesAndLongNamesStayBounded) {
  const ScratchFolder folder;
  std::string ones = "[1";
  for (int i = 0; i < 100'000; ++i) ones += ",1";
  EXPECT_TRUE(test::contains(
      file_error([&] { SafetensorsFile file(folder.write("h", file_of(tensor(ones + "]", "[0,4]"), "xxxx"))); }),
      "shape has more than 64 entries"));
  EXPECT_TRUE(test::contains(file_error([&] {
                               SafetensorsFile file(
                                   folder.write("h", file_of("{\"" + std::string(1'000'000, 'n') + "\":1}")));
                             }),
                             "nnn…' is a number"));
}

TEST(Safetensors, WhatIsNoFile) {
  const ScratchFolder folder;
  EXPECT_TRUE(
      test::contains(file_error([&] { SafetensorsFile file(folder.path("none")); }), "cannot open: No such file"));
  EXPECT_TRUE(test::contains(file_error([&] { SafetensorsFile file(folder.path()); }), "is a folder, expected a file"));
  EXPECT_TRUE(test::contains(file_error([&] { SafetensorsFile file("/dev/zero"); }), "is no regular file"));
}

TEST(Safetensors, EveryMutationIsReadOrRefused) {
  const ScratchFolder folder;
  const std::string bytes = file_of(
      R"({"__metadata__":{"a":"b"},"x":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},"y":{"dtype":"F32","shape":[],"data_offsets":[4,8]}})",
      "01234567");
  test::expect_no_crash_on_mutations(folder, bytes,
                                     [](const std::string& path) { (void)SafetensorsFile(path).weights(); });
}

TEST(Safetensors, RefusesToWriteWhatNobodyCouldRead) {
  const ScratchFolder folder;
  const std::vector<float> values{1, 2};
  const auto write = [&](const std::string& name, std::vector<std::int64_t> shape) {
    write_safetensors(folder.path("w"), {{name, {std::move(shape), values}}});
  };
  EXPECT_THROW(write("a", {3}), std::invalid_argument);
  EXPECT_THROW(write("a", {-1, -2}), std::invalid_argument);
  EXPECT_THROW(write("a", {INT64_MAX, INT64_MAX}), std::invalid_argument);
  EXPECT_THROW(write("__metadata__", {2}), std::invalid_argument);
  EXPECT_THROW(write("\xFF", {2}), std::invalid_argument);
  EXPECT_EQ(folder.count(), 0);
  EXPECT_TRUE(test::contains(file_error([&] {
                               write_safetensors("/dev/full", {{"a", {{2}, values}}});
                             }),
                             "/dev/full: cannot write: No space left"));
}

}  // namespace headlight::models::safetensors_test
