// headlight-mpi attend writes the bytes of headlight attend, while each rank holds its rows of the arrays alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headlight/models/npy.h"
#include "headlight/storage_types.h"
#include "models/tensor_files/npy_header.h"
#include "support/random.h"
#include "support/sanitizer.h"
#include "tools/program.h"

namespace headlight::test::mpi_attend_test {

// Of headlight attend where there are no ranks.
Finished attend(int ranks, const std::vector<std::string>& arguments,
                std::vector<std::pair<std::string, std::string>> environment = {}) {
  std::vector<std::string> all{"attend"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  environment.emplace_back("RANKS", std::to_string(ranks));
  return run_program(all, {.environment = environment});
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return (std::ostringstream() << file.rdbuf()).str();
}

// "headlight: error: …" and warnings: what is not mpirun's.
std::vector<std::string> said(const Finished& finished) {
  std::vector<std::string> lines;
  std::istringstream stream(finished.error);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("headlight: ")) lines.push_back(line);
  }
  return lines;
}

using Shape = std::vector<std::int64_t>;
constexpr std::int64_t kBatch = 2, kQueryLength = 200, kKeyLength = 330, kQueryHeads = 4, kKeyValueHeads = 2;
const Shape kQuery = {kBatch, kQueryLength, kQueryHeads, 8}, kKey = {kBatch, kKeyLength, kKeyValueHeads, 8},
            kValue = {kBatch, kKeyLength, kKeyValueHeads, 5}, kOut = {kBatch, kQueryLength, kQueryHeads, 5};

// Inputs in a folder, and the arguments that name them.
class AttendOverRanks : public ::testing::Test {
 protected:
  AttendOverRanks() {
    write("q.npy", kQuery);
    write("k.npy", kKey);
    write("v.npy", kValue);
    write("do.npy", kOut);
    models::write_npy(folder_ / "sinks.npy", Shape{kQueryHeads}, std::vector<float>{1.0f, -0.5f, 0.25f, 0.0f});
  }

  void write(const std::string& name, const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = random_.normal();
    models::write_npy(folder_ / name, shape, values);
  }

  // `more` may name another file for one of the three.
  [[nodiscard]] std::vector<std::string> inputs(std::vector<std::string> more = {}) const {
    for (const auto& [option, file] : {std::pair{"--query", "q.npy"}, {"--key", "k.npy"}, {"--value", "v.npy"}}) {
      if (std::find(more.begin(), more.end(), option) == more.end()) more.insert(more.end(), {option, folder_ / file});
    }
    more.insert(more.end(), {"--threads", "1"});
    return more;
  }

  // The same files from one process and from each of these numbers of ranks.
  void expect_same(const std::vector<int>& numbers_of_ranks, const std::vector<std::string>& options,
                   const std::vector<std::pair<std::string, std::string>>& outputs,
                   const std::vector<std::string>& of_ranks = {}) const {
    const auto names = [&](const std::string& where, const std::vector<std::string>& more) {
      std::vector<std::string> all = inputs(options);
      all.insert(all.end(), more.begin(), more.end());
      for (const auto& [option, name] : outputs) all.insert(all.end(), {option, folder_ / (where + name)});
      return all;
    };
    const Finished one = attend(0, names("one_", {}));
    ASSERT_EQ(one.code, 0) << one.error;
    for (const int ranks : numbers_of_ranks) {
      SCOPED_TRACE(ranks);
      const Finished finished = attend(ranks, names("ranks_", of_ranks));
      ASSERT_EQ(finished.code, 0) << finished.error;
      EXPECT_EQ(std::count(finished.out.begin(), finished.out.end(), '\n'), static_cast<int>(outputs.size()));
      for (const auto& [option, name] : outputs) {
        EXPECT_EQ(bytes_of(folder_ / ("one_" + name)), bytes_of(folder_ / ("ranks_" + name))) << option;
      }
      for (const std::string& name : folder_.names()) EXPECT_FALSE(name.starts_with(".")) << name;
    }
  }

  // Said once, and nothing is left.
  void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& words,
                      int code = 1) const {
    const std::vector<std::string> before = folder_.names();
    const Finished finished = attend(3, arguments);
    EXPECT_EQ(finished.code, code) << finished.error;
    const std::vector<std::string> lines = said(finished);
    ASSERT_EQ(lines.size(), 1u) << finished.error;
    EXPECT_TRUE(lines[0].starts_with("headlight: error: ")) << lines[0];
    for (const std::string& word : words) EXPECT_NE(lines[0].find(word), std::string::npos) << lines[0];
    EXPECT_EQ(folder_.names(), before);
  }

  ScratchFolder folder_;
  Random random_{5};
};

TEST_F(AttendOverRanks, WriteTheBytesOfOneProcess) {
  const std::vector<std::pair<std::string, std::string>> outputs = {
      {"-o", "o.npy"},          {"--log-sum-exp", "l.npy"}, {"--grad-query", "dq.npy"},
      {"--grad-key", "dk.npy"}, {"--grad-value", "dv.npy"}, {"--grad-sinks", "ds.npy"}};
  const std::vector<std::string> options = {
      "--sinks", folder_ / "sinks.npy", "--causal",        "bottom-right", "--dropout", "0.25", "--seed",
      "3",       "--grad-out",          folder_ / "do.npy"};
  expect_same({1, 2, 3, 4}, options, outputs);
  expect_same({4}, options, outputs, {"--head-ranks", "2"});
  expect_same({2}, options, outputs, {"--head-ranks", "1", "--block", "64"});
}

// Packed sequences, and rows that are fewer than the ranks' blocks.
TEST_F(AttendOverRanks, WriteThemWhereSomeHaveNoRows) {
  write("q.npy", {1, 40, 4, 8});
  write("k.npy", {1, 40, 2, 8});
  write("v.npy", {1, 40, 2, 5});
  models::write_npy(folder_ / "n.npy", Shape{4}, std::vector<std::int64_t>{0, 7, 7, 40});
  expect_same({3}, {"--cu-seqlens", folder_ / "n.npy"}, {{"-o", "o.npy"}});
}

// In C order or in Fortran's, as numbers of another width or byte order: the same rows are read.
TEST_F(AttendOverRanks, ReadEveryKindOfFile) {
  const models::Array<float> query = models::read_npy<float>(folder_ / "q.npy");
  const View<const float, 4> view = query.view<4>();
  std::string in_fortran, big_endian, wide, narrow;
  const auto add = [](std::string& bytes, auto number, bool reversed = false) {
    char element[sizeof number];
    std::memcpy(element, &number, sizeof number);
    if (reversed) std::reverse(element, element + sizeof number);
    bytes.append(element, sizeof number);
  };
  for (const float number : query.values) {
    add(big_endian, number, true);
    add(wide, static_cast<double>(number) * (1 + 0x1p-40));
    add(narrow, Float16(number));
  }
  for (std::int64_t d = 0; d < view.extent(3); ++d)
    for (std::int64_t h = 0; h < view.extent(2); ++h)
      for (std::int64_t i = 0; i < view.extent(1); ++i)
        for (std::int64_t b = 0; b < view.extent(0); ++b) add(in_fortran, view(b, i, h, d));
  const auto write_as = [&](const char* type, const std::string& numbers, const char* order = "False") {
    std::string start = models::npy_start(type, kQuery);
    if (order == std::string_view("True")) start.replace(start.find("False"), 5, "True ");
    std::ofstream(folder_ / "q.npy", std::ios::binary) << start << numbers;
  };
  write_as("<f4", in_fortran, "True");
  expect_same({3}, {}, {{"-o", "o.npy"}});
  write_as(">f4", big_endian);
  expect_same({3}, {}, {{"-o", "o.npy"}});
  write_as("<f2", narrow);
  expect_same({3}, {}, {{"-o", "o.npy"}});
  write_as("<f8", wide);
  expect_same({3}, {}, {{"-o", "o.npy"}});
  // Each has rounded other rows; one tells of the worst.
  EXPECT_EQ(said(attend(3, inputs({"-o", folder_ / "o.npy"}))), said(attend(0, inputs({"-o", folder_ / "o.npy"}))));
}

// Where others cannot write into the file, rows come to the rank that can.
TEST_F(AttendOverRanks, WriteIntoWhatIsNoFile) {
  ASSERT_EQ(attend(0, inputs({"-o", folder_ / "one.npy"})).code, 0);
  const Finished finished = attend(3, inputs({"--head-ranks", "1", "-o", "/dev/stdout"}));
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_EQ(finished.out, bytes_of(folder_ / "one.npy"));
  expect_refused(inputs({"-o", "/dev/full"}), {"rank 0: ", "/dev/full", "No space left"});
}

// As on machines without a file system that they share: two ranks, of which each has a folder of its own.
TEST_F(AttendOverRanks, WriteWhereOneRankHasItsFolder) {
  ASSERT_EQ(attend(0, inputs({"-o", folder_ / "one.npy"})).code, 0);
  const ScratchFolder elsewhere;
  const Finished finished =
      attend(2, inputs({"-o", "o.npy"}), {{"FOLDER_OF_0", folder_ / "."}, {"FOLDER_OF_1", elsewhere / "."}});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_EQ(bytes_of(folder_ / "o.npy"), bytes_of(folder_ / "one.npy"));
  EXPECT_TRUE(elsewhere.names().empty());
}

TEST_F(AttendOverRanks, RefuseWithOneSentence) {
  const std::vector<std::string> o = {"-o", folder_ / "o.npy"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = inputs(more);
    all.insert(all.end(), o.begin(), o.end());
    return all;
  };
  for (const char* option : {"--bias", "--probabilities", "--scores"}) {
    expect_refused(with({option, folder_ / "x.npy"}), {option, "an axis of keys"}, 2);
  }
  expect_refused(with({"--mask", folder_ / "x.npy", "--mask-means", "attend"}), {"--mask", "an axis of keys"}, 2);
  expect_refused(with({"--key", folder_ / "none.npy"}), {"rank 0: ", "none.npy", "No such file"});
  expect_refused(with({"--head-ranks", "2"}), {"spread.head_ranks is 2"});
  expect_refused(inputs({"-o", folder_ / "no/such/folder.npy"}), {"rank 0: ", "folder.npy", "no folder"});
  expect_refused(inputs({"-o", folder_ / "."}), {"directory"});
  write("short.npy", {kBatch, kKeyLength - 1, kKeyValueHeads, 5});
  expect_refused(with({"--value", folder_ / "short.npy"}),
                 {"value has shape [2, 329, 2, 5], expected [2, 330, 2, any]"});
  write("short.npy", {kBatch, kKeyLength, kKeyValueHeads, 7});
  expect_refused(with({"--key", folder_ / "short.npy"}), {"key has shape [2, 330, 2, 7]"});
  write("short.npy", {kBatch, kQueryLength - 1, kQueryHeads, 5});
  expect_refused(with({"--grad-out", folder_ / "short.npy", "--grad-key", folder_ / "dk.npy"}),
                 {"short.npy", "has shape [2, 199, 4, 5], expected 200 rows on axis 1"});
  std::filesystem::resize_file(folder_ / "k.npy", 300);
  expect_refused(with({}), {"k.npy", "bytes"});
}

// The tensors of the whole take 128 MiB, and those of a rank of four a quarter; the state of its rows is the rest.
TEST_F(AttendOverRanks, HoldTheirRowsAlone) {
  if (under_sanitizer()) GTEST_SKIP() << "shadows of what is resident";
  const auto peak = [&](int ranks, std::int64_t length) {
    const Shape shape = {1, length, 2, 64};
    const std::string start = models::npy_start("<f4", shape);
    for (const char* name : {"q.npy", "k.npy", "v.npy"}) {  // zeros, without a place on the disk
      std::ofstream(folder_ / name, std::ios::binary) << start;
      std::filesystem::resize_file(folder_ / name, start.size() + static_cast<std::size_t>(length) * 512);
    }
    std::vector<std::string> all = inputs({"--window", "64,0", "-o", folder_ / "o.npy"});
    if (ranks > 0) all.insert(all.end(), {"--head-ranks", "1"});
    const Finished finished = attend(ranks, all);
    EXPECT_EQ(finished.code, 0) << finished.error;
    return static_cast<double>(finished.peak_bytes);
  };
  constexpr std::int64_t kShort = 1024, kLong = 65536;
  const double of_one = peak(0, kLong) - peak(0, kShort);
  const double of_rank = peak(4, kLong) - peak(4, kShort);
  EXPECT_GT(of_one, 120e6);
  EXPECT_LT(of_rank, 0.33 * of_one);
}

}  // namespace headlight::test::mpi_attend_test
