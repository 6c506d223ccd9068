#include "headlight/models/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "models/scratch_folder.h"
#include "models/tensor_files/npy_reader.h"
#include "support/refusal.h"

namespace headlight::models::npy_test {

using test::file_error;
using test::ScratchFolder;

// A version 1.0 file of that dict and those bytes of data.
std::string npy(const std::string& dict, const std::string& data, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  const auto length = static_cast<std::uint32_t>(dict.size());
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes + dict + data;
}

std::string dict(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }  \n";
}

template <class Number>
std::string raw(const std::vector<Number>& numbers, bool big_endian = false) {
  std::string bytes;
  for (const Number number : numbers) {
    char element[sizeof(Number)];
    std::memcpy(element, &number, sizeof number);
    if (big_endian) std::reverse(element, element + sizeof number);
    bytes.append(element, sizeof number);
  }
  return bytes;
}
template <class Number>
std::string raw(std::initializer_list<Number> numbers, bool big_endian = false) {
  return raw(std::vector<Number>(numbers), big_endian);
}

TEST(Npy, WhatIsWrittenIsReadBack) {
  const ScratchFolder folder;
  const std::vector<float> values{1.5f, -0.0f, std::numeric_limits<float>::infinity(), 1e-45f, 3.0f, -7.25f};
  write_npy(folder.path("a.npy"), std::vector<std::int64_t>{2, 3}, std::span<const float>(values));
  const auto array = read_npy<float>(folder.path("a.npy"));
  EXPECT_TRUE(test::holds(array.shape, {2, 3}));
  EXPECT_EQ(0, std::memcmp(array.values.data(), values.data(), 6 * sizeof(float)));
  EXPECT_EQ(array.view<2>()(1, 2), -7.25f);
  EXPECT_THROW((void)array.view<3>(), std::invalid_argument);
  const std::string bytes = folder.read("a.npy");
  EXPECT_EQ((bytes.size() - 24) % 64, 0u);
  EXPECT_TRUE(test::contains(bytes.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));

  write_npy(folder.path("i.npy"), std::vector<std::int64_t>{3},
            std::span<const std::int64_t>(std::vector<std::int64_t>{1, -2, INT64_MAX}));
  EXPECT_TRUE(test::holds(read_npy<std::int64_t>(folder.path("i.npy")).values, {1, -2, INT64_MAX}));
  EXPECT_TRUE(test::contains(folder.read("i.npy"), "'shape': (3,), }"));
  write_npy(folder.path("u.npy"), std::vector<std::int64_t>{},
            std::span<const std::uint8_t>(std::vector<std::uint8_t>{200}));
  EXPECT_TRUE(test::holds(read_npy<std::uint8_t>(folder.path("u.npy")).values, {200}));
  EXPECT_TRUE(read_npy<std::uint8_t>(folder.path("u.npy")).shape.empty());
  EXPECT_EQ(folder.count(), 3);
}

TEST(Npy, ArraysWithoutElements) {
  const ScratchFolder folder;
  write_npy(folder.path("e.npy"), std::vector<std::int64_t>{2, 0, 5}, std::span<const float>());
  const auto array = read_npy<float>(folder.path("e.npy"));
  EXPECT_TRUE(test::holds(array.shape, {2, 0, 5}));
  EXPECT_TRUE(array.values.empty());
}

TEST(Npy, EveryVersionByteOrderAndAxisOrder) {
  const ScratchFolder folder;
  for (const char version : {'\1', '\2', '\3'}) {
    const auto path =
        folder.write("v", npy(dict(">f4", "(2, 3)", "True"), raw({1.f, 4.f, 2.f, 5.f, 3.f, 6.f}, true), version));
    const auto array = read_npy<float>(path);
    EXPECT_TRUE(test::holds(array.shape, {2, 3}));
    EXPECT_TRUE(test::holds(array.values, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}));
  }
  // Three axes of Fortran order: element (i, j, k) is stored at i + 2j + 6k.
  std::string stored;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) stored += raw({static_cast<float>(100 * i + 10 * j + k)});
  const auto array = read_npy<float>(folder.write("f", npy(dict("<f4", "(2, 3, 4)", "True"), stored)));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) EXPECT_EQ(array.view<3>()(i, j, k), static_cast<float>(100 * i + 10 * j + k));
}

// As numpy wrote it under Python 2, where extents could be long integers.
TEST(Npy, LongIntegersOfPython2) {
  const ScratchFolder folder;
  const std::string one = raw({1.f});
  EXPECT_TRUE(test::holds(read_npy<float>(folder.write("l", npy(dict("<f4", "(1L,)"), one))).shape, {1}));
  EXPECT_TRUE(test::holds(read_npy<float>(folder.write("l", npy(dict("<f4", "(0L, 12L)"), ""))).shape, {0, 12}));
}

// Rows of an axis are those of the whole array, in whatever type, byte order and axis order the file has it.
TEST(Npy, SomeRows) {
  const ScratchFolder folder;
  constexpr std::int64_t kBatch = 2, kRows = 7, kColumns = 3;
  const auto number = [](std::int64_t b, std::int64_t i, std::int64_t d) {
    return static_cast<float>(100 * b + 10 * i + d);
  };
  std::vector<float> in_c, in_fortran;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t i = 0; i < kRows; ++i)
      for (std::int64_t d = 0; d < kColumns; ++d) in_c.push_back(number(b, i, d));
  for (std::int64_t d = 0; d < kColumns; ++d)
    for (std::int64_t i = 0; i < kRows; ++i)
      for (std::int64_t b = 0; b < kBatch; ++b) in_fortran.push_back(number(b, i, d));
  const std::vector<RowRun> runs[] = {{{0, kRows}}, {{1, 2}, {5, 2}}, {{0, 3}, {3, 1}}, {{6, 1}}, {{2, 0}}, {}};
  for (const bool fortran : {false, true}) {
    const std::vector<float>& order = fortran ? in_fortran : in_c;
    const std::vector<double> wide(order.begin(), order.end());
    const char* const axes = fortran ? "True" : "False";
    const std::string files[] = {npy(dict("<f4", "(2, 7, 3)", axes), raw(order)),
                                 npy(dict(">f4", "(2, 7, 3)", axes), raw(order, true)),
                                 npy(dict("<f8", "(2, 7, 3)", axes), raw(wide))};
    for (const std::string& bytes : files) {
      const NpyReader file(folder.write("r.npy", bytes));
      EXPECT_TRUE(test::holds(file.shape(), {kBatch, kRows, kColumns}));
      EXPECT_EQ(file.read<float>().values, in_c);
      for (const std::vector<RowRun>& rows : runs) {
        std::vector<float> expected;
        std::int64_t count = 0;
        for (const RowRun& run : rows) count += run.count;
        for (std::int64_t b = 0; b < kBatch; ++b)
          for (const RowRun& run : rows)
            for (std::int64_t i = run.first; i < run.first + run.count; ++i)
              for (std::int64_t d = 0; d < kColumns; ++d) expected.push_back(number(b, i, d));
        const Array<float> some = file.read_rows<float>(1, rows);
        EXPECT_TRUE(test::holds(some.shape, {kBatch, count, kColumns}));
        EXPECT_EQ(some.values, expected);
      }
    }
  }
  const Array<float> last_axis =
      NpyReader(folder.write("r.npy", npy(dict("<f4", "(2, 3)"), raw({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}))))
          .read_rows<float>(1, std::vector<RowRun>{{1, 1}});
  EXPECT_TRUE(test::holds(last_axis.values, {2.f, 5.f}));
}

TEST(Npy, FloatsOfOtherWidths) {
  const ScratchFolder folder;
  // 1, −2, smallest subnormal 2⁻²⁴, largest 65504, +inf
  const auto halves = raw<std::uint16_t>({0x3C00, 0xC000, 0x0001, 0x7BFF, 0x7C00});
  EXPECT_TRUE(test::holds(read_npy<float>(folder.write("h", npy(dict("<f2", "(5,)"), halves))).values,
                          {1.f, -2.f, 0x1p-24f, 65504.f, std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(test::holds(
      read_npy<float>(folder.write("d", npy(dict(">f8", "(2,)"), raw<double>({0.1, -INFINITY}, true)))).values,
      {0.1f, -std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(test::contains(file_error([&] {
                               (void)read_npy<float>(folder.write("o", npy(dict("<f8", "(2,)"), raw({1.0, 1e39}))));
                             }),
                             "/o: element 1 is 1e+39, beyond float32"));
}

TEST(Npy, RoundingOfFloat64IsKnown) {
  const ScratchFolder folder;
  const auto rounded = [&](std::initializer_list<double> values, bool big_endian) {
    const std::string descr = big_endian ? ">f8" : "<f8";
    return read_npy<float>(folder.write("d", npy(dict(descr, "(" + std::to_string(values.size()) + ",)"),
                                                 raw<double>(values, big_endian))))
        .rounded;
  };
  for (const bool big_endian : {false, true}) {
    EXPECT_EQ(rounded({}, big_endian), 0);
    EXPECT_EQ(rounded({1.5, 0, -0x1p-149, INFINITY, NAN, 65504}, big_endian), 0);
    EXPECT_EQ(rounded({1, -(1 + 0x1p-30), 2, 1 + 0x1p-40}, big_endian), 0x1p-30 / (1 + 0x1p-30));
    EXPECT_EQ(rounded({1e-60}, big_endian), 1) << "nothing is left of it";
  }
  EXPECT_EQ(read_npy<float>(folder.write("f", npy(dict("<f4", "(1,)"), raw({0.1f})))).rounded, 0);
}

TEST(Npy, IntegersOfEveryWidth) {
  const ScratchFolder folder;
  const auto read = [&](const std::string& descr, const std::string& data) {
    return read_npy<std::int64_t>(folder.write("i", npy(dict(descr, "(2,)"), data))).values;
  };
  EXPECT_TRUE(test::holds(read("|i1", raw<std::int8_t>({-1, 7})), {-1, 7}));
  EXPECT_TRUE(test::holds(read(">i2", raw<std::int16_t>({-300, 7}, true)), {-300, 7}));
  EXPECT_TRUE(test::holds(read("<i4", raw<std::int32_t>({-70000, 7})), {-70000, 7}));
  EXPECT_TRUE(test::holds(read("|u1", raw<std::uint8_t>({255, 7})), {255, 7}));
  EXPECT_TRUE(test::holds(read("<u4", raw<std::uint32_t>({4000000000u, 7})), {4000000000, 7}));
  EXPECT_TRUE(test::holds(read("|b1", raw<std::uint8_t>({1, 0})), {1, 0}));
  EXPECT_TRUE(test::contains(file_error([&] {
                               read("<u8", raw<std::uint64_t>({1, UINT64_MAX}));
                             }),
                             "element 1 is 18446744073709551615"));

  EXPECT_TRUE(test::holds(
      read_npy<std::uint8_t>(folder.write("b", npy(dict("|b1", "(3,)"), raw<std::uint8_t>({1, 0, 2})))).values,
      {1, 0, 1}));
  EXPECT_TRUE(test::holds(
      read_npy<std::uint8_t>(folder.write("l", npy(dict("<i8", "(2,)"), raw<std::int64_t>({0, 255})))).values,
      {0, 255}));
  EXPECT_TRUE(test::contains(file_error([&] {
                               (void)read_npy<std::uint8_t>(
                                   folder.write("n", npy(dict("<i8", "(1,)"), raw<std::int64_t>({-1}))));
                             }),
                             "element 0 is -1, expected 0 to 255"));
}

TEST(Npy, AnotherTypeIsNamed) {
  const ScratchFolder folder;
  const auto path = folder.write("t.npy", npy(dict("<i8", "(1,)"), raw<std::int64_t>({1})));
  EXPECT_TRUE(
      test::contains(file_error([&] { (void)read_npy<float>(path); }), "t.npy: has the type '<i8', expected float32"));
  const auto floats = folder.write("f.npy", npy(dict("<f4", "(1,)"), raw({1.f})));
  EXPECT_TRUE(test::contains(file_error([&] { (void)read_npy<std::int64_t>(floats); }),
                             "f.npy: has the type '<f4', expected int64"));
}

// Nothing is in them, but no array of wider numbers could have their strides.
TEST(Npy, EmptyArraysThatAreTooLargeForTheTypeReadAreRefused) {
  const ScratchFolder folder;
  const auto path = folder.write("e.npy", npy(dict("|u1", "(0, " + std::to_string(std::int64_t{1} << 61) + ")"), ""));
  EXPECT_EQ(read_npy<std::uint8_t>(path).shape.size(), 2u);
  EXPECT_TRUE(
      test::contains(file_error([&] { (void)read_npy<std::int64_t>(path); }),
                     "e.npy: has the shape (0, 2305843009213693952), expected less than 2⁶³ bytes of 8 for each"));
}

struct Hostile {
  std::string bytes;
  std::string says;
};

TEST(Npy, HostileFilesSayWhatIsWrong) {
  const ScratchFolder folder;
  const std::string one = raw({1.f});
  const Hostile cases[] = {
      {"", "is no .npy file"},
      {"\x93NUMPY", "is no .npy file"},
      {"PK\x03\x04 is a zip archive", "is no .npy file"},
      {npy(dict("<f4", "(1,)"), one, 9), "format version 9.0"},
      {npy(dict("<f4", "(1,)"), one).substr(0, 40), "ends inside its header"},
      {npy("", "", 2).substr(0, 8) + "\xFF\xFF\xFF\xFF", "ends inside its header"},
      {npy(std::string(70000, ' '), "", 2), "has a header of 70000 bytes"},
      {npy(dict("<f4", "(2,)"), one), "holds 4 bytes of data, but its shape and type say 8"},
      {npy(dict("<f4", "(1,)"), one + one), "holds 8 bytes of data, but its shape and type say 4"},
      {npy(dict("<f4", "(4611686018427387904, 4)"), one), "does not fit 63 bits"},
      {npy(dict("<f4", "(4611686018427387904, 4, 0)"), ""), "does not fit 63 bits"},
      {npy(dict("<f4", "(99999999999999999999,)"), one), "2^63 or more on axis 0"},
      {npy(dict("<f4", "(1000000000000,)"), one), "holds 4 bytes of data, but its shape and type say 4000000000000"},
      {npy(dict("<f4", "(-1,)"), one), "no integer from 0 on, on axis 0"},
      {npy(dict("<f4", "(2, 1.0,)"), one), "expected ')'"},
      {npy(dict("<f4", "(2, 1l)"), one), "expected ')'"},
      {npy(dict("<f4", "(2, 1LL)"), one), "expected ')'"},
      {npy(dict("<f4", "(L,)"), one), "no integer from 0 on, on axis 0"},
      {npy(dict("<f4", "(1L)"), one), "a number for the shape"},
      {npy(dict("<f4", "(1)"), one), "a number for the shape"},
      {npy(dict("<f4", "1"), one), "expected '('"},
      {npy(dict("<f4", "(1,"), one), "axis 1"},
      {npy(dict("<f4", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), one),
       "more than 32 axes"},
      {npy(dict("|O", "(1,)"), one), "Python objects"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", one), "structured"},
      {npy(dict("<c8", "(1,)"), one + one), "gives the type '<c8'"},
      {npy(dict("<U1", "(1,)"), one), "gives the type '<U1'"},
      {npy(dict("<f3", "(1,)"), one), "gives the type '<f3'"},
      {npy(dict("|f4", "(1,)"), one), "gives the type '|f4'"},
      {npy(dict("<f4\x1b[31m", "(1,)"), one), "gives the type '<f4\\x1b[31m'"},
      {npy(dict("\x1b[31m", "(1,)"), one), "gives the type '\\x1b[31m'"},
      {npy(dict("<f4", "(1,)", "Maybe"), one), "neither True nor False"},
      {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", one), "names 'descr' twice"},
      {npy("{'descr': '<f4', 'fortran_order': False, }", one), "lacks 'shape'"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", one), "unknown key 'more'"},
      {npy(dict("<f4", "(1,)") + "__import__('os')", one), "goes on after the dict"},
      {npy("[]", one), "expected '{'"},
      {npy("", one), "expected '{'"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': ((((((", one), "axis 0"},
  };
  for (const auto& [bytes, says] : cases) {
    const auto path = folder.write("h.npy", bytes);
    EXPECT_TRUE(test::contains(file_error([&] { (void)read_npy<float>(path); }), "h.npy: ", says));
  }
}

TEST(Npy, WhatIsNoFile) {
  const ScratchFolder folder;
  EXPECT_TRUE(test::contains(file_error([&] { (void)read_npy<float>(folder.path("none.npy")); }),
                             "none.npy: cannot open: No such file"));
  EXPECT_TRUE(test::contains(file_error([&] { (void)read_npy<float>(folder.path()); }), "is a folder"));
  EXPECT_TRUE(test::contains(file_error([&] { (void)read_npy<float>("/dev/zero"); }), "/dev/zero: is no regular file"));
}

TEST(Npy, EveryMutationIsReadOrRefused) {
  const ScratchFolder folder;
  test::expect_no_crash_on_mutations(folder, npy(dict("<f4", "(2, 2)", "True"), raw({1.f, 2.f, 3.f, 4.f})),
                                     [](const std::string& path) { (void)read_npy<float>(path); });
  test::expect_no_crash_on_mutations(folder, npy(dict(">i8", "(3,)"), raw<std::int64_t>({1, 2, 3}), 2),
                                     [](const std::string& path) { (void)read_npy<std::int64_t>(path); });
}

TEST(Npy, PiecesMakeTheSameFile) {
  const ScratchFolder folder;
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> shape{2, 3};
  write_npy(folder.path("whole.npy"), shape, std::span<const float>(values));
  NpyWriter writer(folder.path("pieces.npy"), shape);
  writer.write(std::span(values).first(4));
  writer.write({});
  EXPECT_THROW(writer.commit(), std::invalid_argument);
  EXPECT_THROW(writer.write(std::span(values).first(3)), std::invalid_argument);
  writer.write(std::span(values).last(2));
  writer.commit();
  try {
    writer.commit();
    ADD_FAILURE() << "a second commit()";
  } catch (const std::logic_error& error) {
    EXPECT_TRUE(test::contains(error.what(), "pieces.npy: is committed a second time, expected once"));
  }
  EXPECT_EQ(folder.read("pieces.npy"), folder.read("whole.npy"));
  {
    NpyWriter left_alone(folder.path("never.npy"), shape);
    left_alone.write(values);
  }
  EXPECT_THROW(NpyWriter(folder.path("never.npy"), std::vector<std::int64_t>{-1}), std::invalid_argument);
  EXPECT_EQ(folder.count(), 2);
}

TEST(Npy, TheShapeMustSayAsManyValues) {
  const ScratchFolder folder;
  const std::vector<float> two{1, 2};
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{3}, {-1, -2}, {INT64_MAX, INT64_MAX, 2}}) {
    EXPECT_THROW(write_npy(folder.path("w.npy"), shape, std::span<const float>(two)), std::invalid_argument);
  }
  EXPECT_EQ(folder.count(), 0);
}

// Before a file is made, and by the name that the caller knows.
TEST(Npy, NothingIsWrittenThatWouldBeRefused) {
  const ScratchFolder folder;
  const std::vector<float> one{1};
  const auto refused = [&](const std::vector<std::int64_t>& shape, std::size_t count) {
    return test::refusal([&] { write_npy(folder.path("w.npy"), shape, std::span(one).first(count)); });
  };
  const auto writer_refused = [](const std::string& path, const std::vector<std::int64_t>& shape) {
    return test::refusal([&] { NpyWriter(path, shape); });
  };
  EXPECT_EQ(refused(std::vector<std::int64_t>(33, 1), 1), "write_npy: the shape has 33 axes, expected at most 32");
  EXPECT_EQ(refused(std::vector<std::int64_t>(30000, 1), 1),
            "write_npy: the shape has 30000 axes, expected at most 32");
  EXPECT_EQ(writer_refused(folder.path("w.npy"), std::vector<std::int64_t>(33, 1)),
            "NpyWriter: the shape has 33 axes, expected at most 32");
  // In whatever order the axes come.
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{kHuge, 4, 0}, {0, kHuge, 4}, {0, -1}}) {
    EXPECT_NE(refused(shape, 0), "") << shape[0];
    EXPECT_NE(writer_refused(folder.path("w.npy"), shape), "") << shape[0];
  }
  EXPECT_NE(writer_refused(folder.path("w.npy"), {kHuge}), "");  // more bytes than a reader counts
  // Not even the folder is looked for.
  EXPECT_EQ(writer_refused(folder.path("missing/w.npy"), {-1, 2}),
            "NpyWriter: the shape (-1, 2) does not say how many values there are, expected extents ≥ 0 and less than "
            "2⁶³ bytes");
  EXPECT_EQ(folder.count(), 0);
  const std::vector<std::int64_t> most(32, 1);
  write_npy(folder.path("most.npy"), most, std::span<const float>(one));
  EXPECT_EQ(read_npy<float>(folder.path("most.npy")).shape, most);
}

}  // namespace headlight::models::npy_test
