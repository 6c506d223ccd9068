// GGUF files: those of ggml's own package give its numbers, and what breaks the format is refused by name.
#include "headlight/models/gguf.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/layers/linear.h"
#include "models/scratch_folder.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/random.h"

namespace headlight::models::gguf_test {

using test::contains;
using test::file_error;
using test::ScratchFolder;

std::string golden_bytes() {
  std::ifstream stream(test::golden_path("gguf_tensors.gguf"), std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Gguf, GivesTheMetadataThatGgmlWrote) {
  const GgufFile file(test::golden_path("gguf_tensors.gguf"));
  const auto value = [&](std::string_view key) {
    const std::optional<GgufValue> found = file.find_value(key);
    if (!found) throw std::out_of_range(std::string(key));
    return *found;
  };
  EXPECT_EQ(value("general.architecture").string(), "headlight");
  EXPECT_EQ(value("a.uint8").integer(), 255);
  EXPECT_EQ(value("a.int8").integer(), -128);
  EXPECT_EQ(value("a.uint16").integer(), 65535);
  EXPECT_EQ(value("a.int16").integer(), -32768);
  EXPECT_EQ(value("a.uint32").integer(), 4294967295);
  EXPECT_EQ(value("a.int32").integer(), -2147483648LL);
  EXPECT_EQ(value("a.uint64").integer(), std::nullopt) << "beyond 63 bits";
  EXPECT_EQ(value("a.uint64").number(), 0x1p64);
  EXPECT_EQ(value("a.int64").integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(value("a.float32").number(), static_cast<double>(0.1f));
  EXPECT_EQ(value("a.float32").integer(), std::nullopt);
  EXPECT_EQ(value("a.float64").number(), 0.1);
  EXPECT_EQ(value("a.bool").boolean(), true);
  EXPECT_EQ(value("a.bool").number(), std::nullopt);
  EXPECT_EQ(value("a.string").string(), "größer");
  EXPECT_EQ(value("a.integers").size(), 3u);
  EXPECT_EQ(value("a.integers").integers(), (std::vector<std::int64_t>{-1, 2, 3}));
  EXPECT_EQ(value("a.integers").numbers(), (std::vector<double>{-1, 2, 3}));
  EXPECT_EQ(value("a.integers").strings(), std::nullopt);
  EXPECT_EQ(value("a.integers").integer(), std::nullopt);
  EXPECT_EQ(value("a.floats").numbers(), (std::vector<double>{0.5, -2.5}));
  EXPECT_EQ(value("a.floats").integers(), std::nullopt);
  EXPECT_EQ(value("a.booleans").element_type(), GgufType::boolean);
  EXPECT_EQ(value("a.strings").strings(), (std::vector<std::string_view>{"<s>", "", "é"}));
  EXPECT_EQ(value("a.string").strings(), std::nullopt);
  EXPECT_FALSE(file.find_value("a"));
  EXPECT_FALSE(file.find_value("zzz"));
  for (std::size_t n = 1; n < file.metadata().size(); ++n) {
    EXPECT_LT(file.metadata()[n - 1].key(), file.metadata()[n].key());
  }
}

TEST(Gguf, GivesTheNumbersThatGgmlReads) {
  GgufFile file(test::golden_path("gguf_tensors.gguf"));
  test::GoldenNumbers golden("gguf_tensors.npy");
  for (const char* type : {"F32", "BF16", "F16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q5_K", "Q6_K"}) {
    SCOPED_TRACE(type);
    const std::string name = std::string(type) + ".weight";
    const GgufTensor* const tensor = file.find(name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(info(*tensor->format).gguf_name, type);
    EXPECT_TRUE(test::holds(tensor->shape(), {2, 256}));
    const Tensor<double, 2> expected = golden.next<2>({2, 256});
    const WeightView found = file.float32(name), stored = file.stored(name);
    ASSERT_EQ(found.values.size(), 512u);
    for (std::size_t n = 0; n < 512; ++n) {
      EXPECT_EQ(found.values[n], static_cast<float>(expected.data()[n])) << n;
    }
    EXPECT_TRUE(test::holds(stored.shape, {2, 256}));
    if (*tensor->format == StorageFormat::float32) continue;
    EXPECT_EQ(stored.stored.data, tensor->bytes.data());
    EXPECT_EQ(stored.stored.count, 512);
    EXPECT_NE(stored.owner, nullptr);
  }
  const Tensor<double, 3> three = golden.next<3>({2, 3, 4});
  const WeightView found = file.float32("three");
  EXPECT_TRUE(test::holds(found.shape, {2, 3, 4})) << "the extents of the file the other way round";
  for (std::size_t n = 0; n < 24; ++n) EXPECT_EQ(found.values[n], static_cast<float>(three.data()[n]));
  EXPECT_TRUE(test::holds(file.float32("bias").shape, {4}));
  (void)golden.next<1>({4});
  EXPECT_TRUE(golden.at_end());

  EXPECT_TRUE(file.find("unknown") != nullptr && !file.find("unknown")->format);
  EXPECT_TRUE(contains(file_error([&] { (void)file.stored("unknown"); }), "gguf_tensors.gguf",
                       "tensor 'unknown' has the type 6, expected one of F32, BF16, F16, Q8_0"));
  EXPECT_TRUE(contains(file_error([&] { (void)file.float32("nobody"); }), "lacks the tensor 'nobody'"));
  EXPECT_EQ(file.weights().size(), file.tensors().size() - 1);
}

// Blocks of a file are read where they lie, as long as the layer lives.
TEST(Gguf, IsLentToLayers) {
  Engine engine({.threads = 1});
  const auto x = test::Random(2).normal_tensor<2>({3, 256});
  for (const char* type : {"F32", "BF16", "Q8_0", "Q4_K"}) {
    Linear lent(256, 2, false), copied(256, 2, false);
    {
      GgufFile file(test::golden_path("gguf_tensors.gguf"));
      const std::string name = std::string(type) + ".weight";
      lent.load({{"weight", file.stored(name)}});
      const WeightView view = file.float32(name);
      copied.load({{"weight", {view.shape, view.values}}});
    }
    Tensor<float, 2> found({3, 2}), expected({3, 2});
    lent.forward(engine, x, found);
    copied.forward(engine, x, expected);
    EXPECT_TRUE(test::same_bits(found, expected)) << type;
  }
}

// A file put together by hand.
struct Bytes {
  std::string text;

  template <class T>
  Bytes& add(T value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& string(std::string_view value) {
    add<std::uint64_t>(value.size());
    text.append(value);
    return *this;
  }
};

constexpr std::uint32_t kArray = 9, kString = 8, kUint32 = 4, kBool = 7;

struct Parts {
  std::uint32_t version = 3;
  std::vector<std::string> entries, tensors;
  std::uint64_t more_entries = 0, more_tensors = 0;
  std::size_t alignment = 32;
  std::string data = std::string(64, '\1');

  [[nodiscard]] std::string file() const {
    Bytes bytes{"GGUF"};
    bytes.add(version)
        .add<std::uint64_t>(tensors.size() + more_tensors)
        .add<std::uint64_t>(entries.size() + more_entries);
    for (const std::string& entry : entries) bytes.text += entry;
    for (const std::string& tensor : tensors) bytes.text += tensor;
    bytes.text.resize((bytes.text.size() + alignment - 1) / alignment * alignment, '\0');
    return bytes.text + data;
  }
};

std::string entry(std::string_view key, std::uint32_t type, const Bytes& value) {
  return Bytes().string(key).add(type).text + value.text;
}
std::string tensor(std::string_view name, const std::vector<std::uint64_t>& extents, std::uint32_t type = 0,
                   std::uint64_t offset = 0) {
  Bytes bytes;
  bytes.string(name).add(static_cast<std::uint32_t>(extents.size()));
  for (const std::uint64_t extent : extents) bytes.add(extent);
  return bytes.add(type).add(offset).text;
}

std::string refusal(const std::function<void(Parts&)>& change) {
  Parts parts;
  change(parts);
  const std::string file = parts.file();
  return file_error([&] { (void)GgufFile("f.gguf", bytes_of(file)); });
}

TEST(Gguf, OfAnyAlignmentIsRead) {
  for (const std::uint32_t alignment : {8u, 32u, 64u, 4096u}) {
    Parts parts;
    parts.alignment = alignment;
    parts.entries = {entry("general.alignment", kUint32, Bytes().add(alignment))};
    parts.tensors = {tensor("b", {2, 2}, 0, alignment), tensor("a", {}, 0)};
    parts.data = std::string(alignment + 16, '\0');
    const std::string file = parts.file();
    const GgufFile read("f.gguf", bytes_of(file));
    EXPECT_EQ(read.find("a")->bytes.size(), 4u) << "one number";
    EXPECT_EQ(read.find("b")->bytes.data() - bytes_of(file).data(), static_cast<std::ptrdiff_t>(file.size() - 16));
  }
  // Nothing but metadata, of which no end is aligned.
  Parts parts;
  parts.alignment = 1;
  parts.version = 2;
  parts.data = "";
  parts.entries = {entry("x", kBool, Bytes().add<std::uint8_t>(1))};
  const std::string file = parts.file();
  EXPECT_EQ(GgufFile("f.gguf", bytes_of(file)).metadata().size(), 1u);
}

// A product that is 0 from its first factor on, and too large from its last.
TEST(Gguf, WithoutNumbersMayHaveAnyExtents) {
  Parts parts;
  parts.tensors = {tensor("t", {0, std::uint64_t{1} << 62, std::uint64_t{1} << 62})};
  const std::string file = parts.file();
  GgufFile read("f.gguf", bytes_of(file));
  EXPECT_TRUE(test::holds(read.find("t")->shape(), {std::int64_t{1} << 62, std::int64_t{1} << 62, 0}));
  EXPECT_TRUE(read.float32("t").values.empty());
  EXPECT_EQ(read.weights().size(), 1u);
}

TEST(Gguf, InMemoryAtOddAddressesIsCopied) {
  Parts parts;
  parts.tensors = {tensor("a", {2, 2}), tensor("h", {2}, 1, 32)};
  for (std::size_t n = 0; n < 4; ++n) {
    const float value = static_cast<float>(n) + 0.5f;
    std::memcpy(parts.data.data() + 4 * n, &value, sizeof value);
  }
  const std::string file = "x" + parts.file();
  GgufFile read("f.gguf", bytes_of(file).subspan(1));
  EXPECT_TRUE(test::holds(read.stored("a").values, {0.5f, 1.5f, 2.5f, 3.5f}));
  EXPECT_EQ(read.stored("h").values.size(), 2u);
  EXPECT_FALSE(read.stored("h").stored);
}

TEST(Gguf, RefusalsNameTheKeyOrTheTensor) {
  const auto say = [](const std::string& text) { return "f.gguf: " + text; };
  const auto with_entry = [](const std::string& text) {
    return refusal([&](Parts& parts) { parts.entries = {text}; });
  };
  const auto with_tensors = [](const std::vector<std::string>& texts) {
    return refusal([&](Parts& parts) { parts.tensors = texts; });
  };
  for (const std::size_t size : {0u, 3u}) {
    EXPECT_EQ(file_error([&] { (void)GgufFile("f.gguf", std::as_bytes(std::span("GGU", size))); }),
              say("has " + std::to_string(size) + " bytes, expected a GGUF file, which begins with the letters GGUF"));
  }
  EXPECT_EQ(file_error([] { (void)GgufFile("f.gguf", std::as_bytes(std::span("GGUFxxxxxxxx", 12))); }).substr(0, 30),
            say("is of version 2021161080, expect").substr(0, 30));
  EXPECT_EQ(file_error([] { (void)GgufFile("f.gguf", std::as_bytes(std::span("GGML1234", 8))); }),
            say("does not begin with the letters GGUF"));
  EXPECT_EQ(refusal([](Parts& parts) { parts.version = 1; }), say("is of version 1, expected 2 or 3"));
  EXPECT_EQ(refusal([](Parts& parts) { parts.version = 0x03000000; }),
            say("is of version 50331648, expected 2 or 3 (the file is big-endian)"));
  EXPECT_EQ(refusal([](Parts& parts) { parts.more_entries = std::uint64_t{1} << 60; }),
            say("says that it has 1152921504606846976 metadata entries and 0 tensors, but only 72 bytes follow"));
  EXPECT_TRUE(contains(refusal([](Parts& parts) { parts.more_tensors = 50; }), "and 50 tensors, but only"));
  EXPECT_EQ(with_entry(Bytes().string("").add(kUint32).add(1u).text),
            say("the key of entry 0 has 0 bytes, expected 1 to 65535"));
  EXPECT_TRUE(contains(with_entry(Bytes().add<std::uint64_t>(UINT64_MAX).text), "the key of entry 0 has 1844674407"));
  EXPECT_TRUE(contains(with_entry(entry(std::string(65536, 'x'), kUint32, Bytes().add(1u))), "has 65536 bytes"));
  EXPECT_EQ(with_entry(entry("k\n", 13, Bytes())), say("the entry 'k\\n' has the type 13, expected 0 to 12"));
  EXPECT_EQ(with_entry(entry("k", kBool, Bytes().add<std::uint8_t>(2))),
            say("the entry 'k' is a boolean, expected 0 or 1"));
  EXPECT_TRUE(
      contains(with_entry(entry("k", kString, Bytes().add<std::uint64_t>(1000))), "the entry 'k' has 1000 bytes"));
  EXPECT_EQ(with_entry(entry("k", kArray, Bytes().add(kArray).add<std::uint64_t>(1))),
            say("the entry 'k' is an array of type 9, expected numbers, booleans or strings"));
  EXPECT_EQ(with_entry(entry("k", kArray, Bytes().add(77u).add<std::uint64_t>(1))),
            say("the entry 'k' is an array of type 77, expected numbers, booleans or strings"));
  EXPECT_TRUE(contains(with_entry(entry("k", kArray, Bytes().add(kUint32).add(UINT64_MAX / 2))),
                       "the entry 'k' has 9223372036854775807 elements, but only"));
  EXPECT_TRUE(contains(with_entry(entry("k", kArray, Bytes().add(kString).add(UINT64_MAX / 2))), "the entry 'k' has"));
  EXPECT_EQ(with_entry(entry("k", kArray, Bytes().add(kBool).add<std::uint64_t>(2).add<std::uint16_t>(0x201))),
            say("the entry 'k' has a boolean that is neither 0 nor 1"));
  const std::string one = entry("k", kUint32, Bytes().add(1u));
  EXPECT_EQ(refusal([&](Parts& parts) { parts.entries = {one, one}; }), say("has the entry 'k' twice"));
  for (const std::uint32_t alignment : {0u, 4u, 12u}) {
    EXPECT_TRUE(contains(
        refusal([&](Parts& parts) { parts.entries = {entry("general.alignment", kUint32, Bytes().add(alignment))}; }),
        "the entry 'general.alignment' is " + std::to_string(alignment) + ", expected a positive"));
  }
  EXPECT_TRUE(contains(with_entry(entry("general.alignment", kString, Bytes().string("x"))), "is no integer"));
  EXPECT_TRUE(contains(refusal([&](Parts& parts) {
                         parts.entries = {entry("general.alignment", 11, Bytes().add(INT64_MAX - 7))};
                         parts.tensors = {tensor("t", {2})};
                       }),
                       "what lies between the header and the tensors has"));

  EXPECT_EQ(with_tensors({tensor("", {2})}), say("the name of tensor 0 has 0 bytes, expected 1 to 65535"));
  EXPECT_EQ(with_tensors({tensor("t", {1, 1, 1, 1, 1})}), say("tensor 't' has 5 axes, expected at most 4"));
  for (const std::vector<std::uint64_t>& extents :
       {std::vector<std::uint64_t>{UINT64_MAX}, {std::uint64_t{1} << 32, std::uint64_t{1} << 32}}) {
    EXPECT_EQ(with_tensors({tensor("t", extents)}), say("tensor 't' has extents whose product is beyond 63 bits"));
  }
  EXPECT_EQ(with_tensors({tensor("t", {2}, 0, 8)}), say("tensor 't' has the offset 8, expected a multiple of 32"));
  EXPECT_EQ(with_tensors({tensor("t", {2}, 0, 96)}), say("tensor 't' has the offset 96, but only 64 bytes follow"));
  EXPECT_EQ(with_tensors({tensor("t", {17})}), say("tensor 't' has 17 times 4 bytes, but only 64 follow"));
  EXPECT_EQ(with_tensors({tensor("t", {9}, 0, 32)}), say("tensor 't' has 9 times 4 bytes, but only 32 follow"));
  EXPECT_EQ(with_tensors({tensor("t", {std::uint64_t{1} << 62})}),
            say("tensor 't' has 4611686018427387904 times 4 bytes, but only 64 follow"));
  EXPECT_EQ(with_tensors({tensor("t", {33}, 8)}),
            say("tensor 't' is Q8_0 in rows of 33 numbers, expected a multiple of 32"));
  EXPECT_EQ(with_tensors({tensor("t", {2}), tensor("t", {2}, 0, 32)}), say("holds the tensor 't' twice"));
  EXPECT_EQ(with_tensors({tensor("b", {2}, 0, 32), tensor("a", {9})}), say("tensor 'b' has bytes of tensor 'a'"));
  EXPECT_TRUE(contains(file_error([] { (void)GgufFile("/nobody/here.gguf"); }), "/nobody/here.gguf", "cannot open"));
}

// As another process may change a mapped file: every value ends where it ended when the file was opened.
TEST(Gguf, OfValuesThatChangeNothingBehindTheirEndsIsRead) {
  const auto changed = [](std::uint32_t type, const Bytes& value, std::size_t at, const Bytes& by, const auto& check) {
    Parts parts;
    parts.data = "";
    parts.alignment = 1;
    parts.entries = {entry("k", type, value)};
    std::string file = parts.file();
    const GgufFile read("f.gguf", bytes_of(file));
    file.replace(file.size() - value.text.size() - sizeof type + at, by.text.size(), by.text);
    check(*read.find_value("k"));
  };
  constexpr std::size_t kType = 0, kElements = 4, kCount = 8, kFirst = 16;
  const Bytes strings = Bytes().add(kString).add<std::uint64_t>(2).string("ab").string("c");
  using Strings = std::vector<std::string_view>;
  const auto gives = [](const Strings& expected) {
    return [expected](const GgufValue& value) { EXPECT_EQ(value.strings(), expected); };
  };
  changed(kArray, strings, kFirst, Bytes().add(UINT64_MAX), gives({{"ab\1\0\0\0\0\0\0\0c", 11}, ""}));
  changed(kArray, strings, kFirst, Bytes().add<std::uint64_t>(9), gives({{"ab\1\0\0\0\0\0\0", 9}, ""}));
  changed(kArray, strings, kFirst + 10, Bytes().add<std::uint64_t>(2), gives({"ab", "c"}));
  changed(kArray, strings, kCount, Bytes().add<std::uint64_t>(1), gives({"ab"}));
  changed(kArray, strings, kCount, Bytes().add(UINT64_MAX), [&](const GgufValue& value) {
    EXPECT_EQ(value.size(), 2u) << "of the fewest bytes, so many have room";
    EXPECT_EQ(value.strings(), (Strings{"ab", "c"}));
  });
  changed(kArray, strings, kType, Bytes().add(kString),
          [](const GgufValue& value) { EXPECT_EQ(value.string()->size(), 23u) << "all that was the array"; });
  changed(kArray, strings, kElements, Bytes().add(10u),
          [](const GgufValue& value) { EXPECT_EQ(value.integers()->size(), 2u) << "of eight bytes each, of 19"; });
  const Bytes numbers = Bytes().add(kUint32).add<std::uint64_t>(2).add(5u).add(6u);
  changed(kArray, numbers, kCount, Bytes().add(UINT64_MAX), [](const GgufValue& value) {
    EXPECT_EQ(value.integers(), (std::vector<std::int64_t>{5, 6}));
  });
  const Bytes flag = Bytes().add<std::uint8_t>(1);
  changed(kBool, flag, kType, Bytes().add(kArray), [](const GgufValue& value) {
    EXPECT_EQ(value.size(), 0u);
    EXPECT_EQ(value.element_type(), GgufType::uint8);
    EXPECT_TRUE(value.strings()->empty());
  });
  changed(kBool, flag, kType, Bytes().add(kString), [](const GgufValue& value) { EXPECT_EQ(value.string(), ""); });
  changed(kBool, flag, kType, Bytes().add(12u),
          [](const GgufValue& value) { EXPECT_EQ(value.number(), std::nullopt); });
}

// Every truncation of the file, and every byte of it changed in several ways, works or says so.
TEST(Gguf, MutationsAreReadOrRefused) {
  const std::string whole = golden_bytes();
  const auto attempt = [](const std::string& text) {
    try {
      GgufFile file("mutated", bytes_of(text));
      std::size_t numbers = 0;
      for (const GgufEntry& one : file.metadata()) {
        numbers += one.value().integers().value_or(std::vector<std::int64_t>()).size();
        numbers += one.value().strings().value_or(std::vector<std::string_view>()).size();
        (void)one.value().number();
        (void)one.value().string();
      }
      for (const auto& [name, weight] : file.weights()) numbers += file.float32(name).values.size();
      return numbers > 0;
    } catch (const FileError&) {
      return false;
    }
  };
  ASSERT_TRUE(attempt(whole));
  // The last tensor is followed by zeros up to the alignment, which may be missing.
  std::size_t read = 0;
  for (std::size_t length = 0; length < whole.size(); length += length < 1500 ? 1 : 13) {
    read += attempt(whole.substr(0, length)) ? 1 : 0;
  }
  EXPECT_LE(read, 32u);
  for (std::size_t at = 0; at < whole.size(); at += at < 1500 ? 1 : 31) {
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      std::string mutated = whole;
      mutated[at] = static_cast<char>(mutated[at] ^ flip);
      (void)attempt(mutated);
    }
  }
}

}  // namespace headlight::models::gguf_test
