// headlight attend: wrong usage, and every bad array, becomes one line and leaves no file.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "headlight/models/npy.h"
#include "support/sanitizer.h"
#include "tools/attend_case.h"
#include "tools/program.h"

namespace headlight::test::attend_errors_test {

TEST(Attend, WrongUsage) {
  const AttendCase c;
  expect_error(run_program({"attend"}), {"--query"}, 2);
  const auto usage = [&](const std::vector<std::string>& more, const std::string& word) {
    expect_error(run_program(c.arguments(more)), {word}, 2);
  };
  usage({"--mask", "m.npy"}, "--mask-means");
  usage({"--mask-means", "attend"}, "--mask");
  usage({"--mask-means", "yes", "--mask", "m.npy"}, "yes");
  usage({"--causal", "left"}, "left");
  usage({"--method", "magic"}, "magic");
  usage({"--chunk", "0"}, "--chunk");
  usage({"--scale", "wide"}, "--scale");
  usage({"--dropout", "1"}, "--dropout");
  usage({"--dropout", "nan"}, "--dropout is 'nan', expected a number from 0 to less than 1");
  usage({"--grad-query", "dq.npy"}, "--grad-out");
  usage({"--type", "int8"}, "float32, bfloat16 or float16");
  usage({"--cache-type", "half"}, "float32, bfloat16, float16 or int8");
  usage({"--grad-out", "do.npy"}, "--grad-query");
  usage({"--grad-out", "do.npy", "--grad-bias", "db.npy"}, "--bias");
  usage({"--grad-out", "do.npy", "--grad-query", "d.npy", "--grad-key", "d.npy"}, "two outputs");
  usage({"--grad-out", "do.npy", "--grad-sinks", "ds.npy"}, "--grad-sinks needs --sinks");
  usage({"--scores-at", "raw"}, "--scores-at goes with --scores");
  usage({"--seed", "1"}, "--seed goes with --dropout");
  usage({"--scores", "s.npy", "--scores-at", "cooked"}, "raw, capped or masked");
  usage({"--scores", c.folder / "o.npy"}, "two outputs");
  usage({"--softcap", "soft"}, "--softcap is 'soft', expected a finite number");
  usage({"--softcap", "-1"}, "--softcap is -1, expected 0 (none) or a normal number above 0");
  usage({"--softcap", "1e-40"}, "--softcap is 1e-40, expected 0 (none) or a normal number above 0");
  usage({"--key-start", "-1"}, "--key-start is -1, expected 0 to 2^60, or the name of a file");
  usage({"--query-start", "1152921504606846977"}, "--query-start is 1152921504606846977, expected 0 to 2^60");
  usage({"--log-sum-exp", c.folder / "o.npy"}, "two outputs");
  usage({"--log-sum-exp", c.folder / "./o.npy"}, "two outputs");
  usage({"--log-sum-exp", c.folder / "x/../l.npy", "--probabilities", c.folder / "l.npy"}, "two outputs");
  for (const char* option : {"--query", "--key", "--value", "-o", "--query-lengths", "--key-lengths", "--cu-seqlens",
                             "--mask", "--bias", "--log-sum-exp", "--probabilities", "--grad-out", "--grad-query",
                             "--query-start", "--key-start", "--alibi", "--sinks", "--scores", "--grad-sinks"}) {
    usage({option, ""}, "is empty, expected a name");
  }
  for (const char* option : {"-o", "--log-sum-exp", "--probabilities", "--grad-query", "--grad-key", "--grad-value",
                             "--grad-bias", "--grad-sinks", "--scores"}) {
    usage({option, "-"}, "expected the name of a file");
  }
  for (const char* window : {"3", "3,", ",3", "3,4,5", "-2,0", "a,b", "9223372036854775808,0", ""}) {
    usage({std::string("--window=") + window}, "--window");
  }
  usage({"--cu-seqlens", "c.npy", "--key-lengths", "k.npy"}, "--cu-seqlens");
}

TEST(Attend, BadInputsLeaveNoFile) {
  AttendCase c;
  const std::vector<std::string> before = c.folder.names();
  const auto fails = [&](const std::vector<std::string>& more, const std::vector<std::string>& words) {
    for (const char* method : {"fused", "unfused", "reference"}) {
      std::vector<std::string> all = c.arguments(more);
      all.insert(all.end(), {"--method", method});
      expect_error(run_program(all), words);
    }
    EXPECT_EQ(c.folder.names(), before);
  };
  const auto replaced = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                            const std::vector<std::string>& words) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    c.write<float>(name, shape, std::vector<float>(static_cast<std::size_t>(count)));
    fails({}, words);
    c.write("q.npy", c.query);
    c.write("k.npy", c.key);
    c.write("v.npy", c.value);
  };
  replaced("q.npy", {13, 4, 8}, {"q.npy", "[13, 4, 8]", "[B, Lq, Hq, D]"});
  replaced("k.npy", {2, 17, 2, 9}, {"error: --key has shape [2, 17, 2, 9]"});
  replaced("k.npy", {2, 17, 3, 8}, {"3"});
  replaced("v.npy", {2, 16, 2, 5}, {"value", "[2, 16, 2, 5]"});
  replaced("v.npy", {1, 17, 2, 5}, {"value", "[1, 17, 2, 5]"});

  c.write<std::int64_t>("q.npy", {1, 1, 1, 1}, {0});
  fails({}, {"q.npy", "'<i8'", "expected float32"});
  c.write("q.npy", c.query);
  std::filesystem::resize_file(c.folder / "k.npy", 200);
  fails({}, {"k.npy", "holds 72 bytes"});
  c.write("k.npy", c.key);
  fails({"--query", c.folder / "absent.npy"}, {"absent.npy"});
  fails({"--query", c.folder / "."}, {c.folder / "."});
}

TEST(Attend, BadGradientsLeaveNoFile) {
  const AttendCase c;
  const auto fails = [&](const std::vector<std::string>& words) {
    const std::vector<std::string> before = c.folder.names();
    for (const char* method : {"fused", "unfused", "reference"}) {
      SCOPED_TRACE(method);
      expect_error(run_program(c.arguments(
                       {"--grad-out", c.folder / "do.npy", "--grad-query", c.folder / "dq.npy", "--method", method})),
                   words);
    }
    EXPECT_EQ(c.folder.names(), before);
  };
  fails({"do.npy"});  // it is not there
  const auto given = [&](const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    c.write<float>("do.npy", shape, std::vector<float>(static_cast<std::size_t>(count)));
  };
  given({13, 4, 5});
  fails({"do.npy", "[13, 4, 5]", "[B, Lq, Hq, Dv]"});
  given({2, 13, 4, 6});
  fails({"error: --grad-out has shape [2, 13, 4, 6], expected [2, 13, 4, 5]"});
  c.write<std::int64_t>("do.npy", {1, 1, 1, 1}, {0});
  fails({"do.npy", "expected float32"});
  given({2, 13, 4, 5});
  std::filesystem::resize_file(c.folder / "do.npy", 200);
  fails({"do.npy", "bytes"});
}

TEST(Attend, BadSideArrays) {
  const AttendCase c;
  const auto fails = [&](const std::vector<std::string>& more, const std::vector<std::string>& words) {
    expect_error(run_program(c.arguments(more)), words);
  };
  c.write<std::int64_t>("n.npy", {2}, {14, 3});
  fails({"--query-lengths", c.folder / "n.npy"}, {"error: --query-lengths[0] is 14, expected 0 to 13"});
  c.write<std::int64_t>("n.npy", {3}, {1, 2, 3});
  fails({"--key-lengths", c.folder / "n.npy"}, {"error: --key-lengths has 3 entries, expected B = 2"});
  c.write<float>("n.npy", {2}, {1, 2});
  fails({"--key-lengths", c.folder / "n.npy"}, {"n.npy"});
  c.write<std::int64_t>("n.npy", {0}, {});
  for (const char* option : {"--query-lengths", "--key-lengths", "--cu-seqlens"}) {
    fails({option, c.folder / "n.npy"}, {"n.npy", "[0]"});
  }
  for (const char* option : {"--query-start", "--key-start"}) fails({option, c.folder / "n.npy"}, {"n.npy", "[0]"});
  c.write<std::int64_t>("n.npy", {3}, {1, 2, 3});
  fails({"--query-start", c.folder / "n.npy"}, {"error: --query-start has 3 entries, expected 2"});
  c.write<float>("n.npy", {3}, {1, 2, 3});
  fails({"--alibi", c.folder / "n.npy"}, {"error: --alibi has 3 entries, expected Hq = 4"});
  fails({"--sinks", c.folder / "n.npy"}, {"error: --sinks has 3 entries, expected Hq = 4"});
  c.write<float>("n.npy", {0}, {});
  for (const char* option : {"--alibi", "--sinks"}) fails({option, c.folder / "n.npy"}, {"n.npy", "[0]"});
  c.write<std::int64_t>("n.npy", {3}, {0, 5, 13});
  fails({"--cu-seqlens", c.folder / "n.npy"}, {"error: --cu-seqlens given with B = 2, expected B = 1"});
  c.write<std::uint8_t>("m.npy", {5, 17}, std::vector<std::uint8_t>(85));
  fails({"--mask", c.folder / "m.npy", "--mask-means", "attend"}, {"error: --mask has shape [1, 1, 5, 17]"});
  c.write<float>("b.npy", {1, 1, 1, 1, 1}, {0});
  fails({"--bias", c.folder / "b.npy"}, {"b.npy", "[1, 1, 1, 1, 1]"});
}

TEST(Attend, OutputsThatCannotBeWritten) {
  const AttendCase c;
  const std::vector<std::string> before = c.folder.names();
  expect_error(run_program(c.arguments({"-o", "/dev/full"})), {"/dev/full", "No space left"});
  expect_error(run_program(c.arguments({"-o", c.folder / "no/such/folder.npy"})), {"folder.npy"});
  expect_error(run_program(c.arguments({"-o", c.folder / "."})), {});
  expect_error(run_program(c.arguments(), {.file_size = 300}), {"o.npy", "File too large"});
  const ScratchFolder elsewhere;
  const Tensor<float, 4> out_gradient({kBatch, kQueryLength, kQueryHeads, kValueDim});
  models::write_npy(elsewhere / "do.npy", out_gradient.shape(),
                    std::span<const float>(out_gradient.begin(), out_gradient.end()));
  for (const char* option : {"--grad-query", "--grad-key", "--grad-value"}) {
    const auto unwritable = [&](const std::string& path, const std::vector<std::string>& words) {
      expect_error(run_program(c.arguments({"--grad-out", elsewhere / "do.npy", option, path})), words);
    };
    unwritable("/dev/full", {"/dev/full", "No space left"});
    unwritable(c.folder / "no/such/folder.npy", {"folder.npy"});
  }
  EXPECT_EQ(c.folder.names(), before);
}

// Axes may count 2^30 of nothing, which nobody should walk along; 2^50 are refused.
TEST(Attend, HugeArraysWithoutElements) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 30;
  const AttendCase c;
  using Shape = std::vector<std::int64_t>;
  const std::vector<std::array<Shape, 3>> cases{{{{kHuge, 0, 1, 8}, {kHuge, 0, 1, 8}, {kHuge, 0, 1, 8}}},
                                                {{{1, 0, kHuge, 8}, {1, 0, kHuge, 8}, {1, 0, kHuge, 8}}},
                                                {{{kHuge, 2, 0, 8}, {kHuge, 2, 0, 8}, {kHuge, 2, 0, 8}}},
                                                {{{1, kHuge, 1, 0}, {1, 0, 1, 0}, {1, 0, 1, 0}}},
                                                {{{1, 1, 1, 0}, {1, kHuge, 1, 0}, {1, kHuge, 1, 0}}}};
  for (const auto& [query, key, value] : cases) {
    c.write<float>("q.npy", query, {});
    c.write<float>("k.npy", key, {});
    c.write<float>("v.npy", value, {});
    for (const char* method : {"fused", "unfused", "reference"}) {
      const Finished finished = run_program(c.arguments({"--method", method}));
      EXPECT_EQ(finished.code, 0) << finished.error;
      EXPECT_EQ(models::read_npy<float>(c.folder / "o.npy").values.size(), 0u);
    }
  }
  c.write<float>("q.npy", {kHuge << 20, 0, 1, 8}, {});
  c.write<float>("k.npy", {kHuge << 20, 0, 1, 8}, {});
  c.write<float>("v.npy", {kHuge << 20, 0, 1, 8}, {});
  expect_error(run_program(c.arguments()), {"1125899906842624", "64 bits"});
  // Each array has no bytes, the result 2^63.
  c.write<float>("q.npy", {1, kHuge, 1, 0}, {});
  c.write<float>("k.npy", {1, 0, 1, 0}, {});
  c.write<float>("v.npy", {1, 0, 1, kHuge << 1}, {});
  std::filesystem::remove(c.folder / "o.npy");
  const std::vector<std::string> before = c.folder.names();
  for (const char* method : {"fused", "unfused", "reference"}) {
    expect_error(run_program(c.arguments({"--method", method})), {});
  }
  EXPECT_EQ(c.folder.names(), before);
}

TEST(Attend, TheInstructionSetIsCheckedForEveryMethod) {
  const AttendCase c;
  for (const char* method : {"fused", "unfused", "reference"}) {
    expect_error(run_program(c.arguments({"--method", method}), {.environment = {{"HEADLIGHT_ISA", "mmx"}}}),
                 {"HEADLIGHT_ISA", "mmx"});
  }
}

TEST(Attend, MemoryThatRunsOutIsAnError) {
  if (under_sanitizer()) GTEST_SKIP() << "the sanitizers' own shadow memory does not fit under a limit";
  const AttendCase c(1, 60000, 60000);
  // The scores alone would take 57 GB.
  const Finished finished =
      run_program(c.arguments({"-t", "1", "--probabilities", c.folder / "p.npy"}), {.memory = std::size_t{1} << 30});
  expect_error(finished, {"out of memory"});
}

// A file that is larger than memory, though it takes no room on the disk.
TEST(Attend, AnArrayLargerThanMemoryIsNamed) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's own memory is address space too";
  const ScratchFolder folder;
  const std::string path = folder / "large.npy";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1048576, 1, 64), }";
  header.resize(117, ' ');
  std::ofstream(path, std::ios::binary) << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << '\n';
  std::filesystem::resize_file(path, (std::uintmax_t{256} << 20) + 128);
  expect_error(
      run_program({"attend", "-t", "1", "--query", path, "--key", path, "--value", path, "-o", folder / "o.npy"},
                  {.memory = std::size_t{128} << 20}),
      {"large.npy: memory for this array cannot be had"});
}

}  // namespace headlight::test::attend_errors_test
