// headlight attend: every option reaches the engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "baseline/attention_unfused.h"
#include "headlight/attention.h"
#include "headlight/models/npy.h"
#include "reference/attention.h"
#include "support/cached_rows.h"
#include "support/compare.h"
#include "support/stored.h"
#include "tools/attend_case.h"
#include "tools/expect_npy.h"
#include "tools/program.h"

namespace headlight::test::attend_test {

struct Outputs {
  explicit Outputs(const AttendCase& c)
      : out({c.query.shape()[0], c.query.shape()[1], kQueryHeads, kValueDim}),
        probabilities({c.query.shape()[0], kQueryHeads, c.query.shape()[1], c.key.shape()[1]}),
        log_sum_exp({c.query.shape()[0], kQueryHeads, c.query.shape()[1]}) {}
  Tensor<float, 4> out, probabilities;
  Tensor<float, 3> log_sum_exp;
};

using Method = decltype(&baseline::attention_unfused);
constexpr Method kFused = &attention;

Outputs computed(const AttendCase& c, Method method, AttentionOptions options) {
  Engine engine;
  Outputs outputs(c);
  options.log_sum_exp = outputs.log_sum_exp;
  options.probabilities.per_head = outputs.probabilities;
  method(engine, c.query, c.key, c.value, outputs.out, options);
  return outputs;
}

// Over operands that hold numbers of these types; out is rounded to `type`.
Outputs computed_in(const AttendCase& c, NumberType type, NumberType cache, AttentionOptions options) {
  Engine engine;
  Outputs outputs(c);
  options.log_sum_exp = outputs.log_sum_exp;
  Stored query(type, c.query), out(type, outputs.out);
  if (cache == NumberType::int8) {
    const test::CachedRows key(c.key), value(c.value);
    options.key_scales = key.scales();
    options.value_scales = value.scales();
    attention(engine, query.view(), key.numbers(), value.numbers(), out.view(), options);
  } else {
    Stored key(cache, c.key), value(cache, c.value);
    attention(engine, query.view(), key.view(), value.view(), out.view(), options);
  }
  outputs.out = out.floats();
  return outputs;
}

Outputs computed_by_reference(const AttendCase& c, const AttentionOptions& options) {
  Outputs outputs(c);
  Tensor<double, 4> out(outputs.out.shape());
  Tensor<double, 4> probabilities(outputs.probabilities.shape());
  Tensor<double, 3> log_sum_exp(outputs.log_sum_exp.shape());
  const Tensor<double, 4> query = converted<double>(c.query);
  const Tensor<double, 4> key = converted<double>(c.key);
  const Tensor<double, 4> value = converted<double>(c.value);
  reference::attention<double>(query.view(), key.view(), value.view(), out.view(), options,
                               {log_sum_exp.view(), probabilities.view()});
  outputs.out = converted<float>(out);
  outputs.log_sum_exp = converted<float>(log_sum_exp);
  outputs.probabilities = converted<float>(probabilities);
  return outputs;
}

// The program with `more`, by each method, against the library called with `options`.
void expect_agreement(const AttendCase& c, const std::vector<std::string>& more, const AttentionOptions& options) {
  for (const std::string method : {"fused", "unfused", "reference"}) {
    SCOPED_TRACE(method);
    std::vector<std::string> all = c.arguments(more);
    all.insert(all.end(),
               {"--method", method, "--log-sum-exp", c.folder / "l.npy", "--probabilities", c.folder / "p.npy"});
    const Finished finished = run_program(all);
    ASSERT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.error, "");
    const Outputs expected = method == "reference"
                                 ? computed_by_reference(c, options)
                                 : computed(c, method == "fused" ? kFused : &baseline::attention_unfused, options);
    expect_npy(c.folder / "o.npy", expected.out);
    expect_npy(c.folder / "l.npy", expected.log_sum_exp);
    expect_npy(c.folder / "p.npy", expected.probabilities);
    EXPECT_EQ(finished.out, line_of(c, "o.npy", expected.out) + line_of(c, "l.npy", expected.log_sum_exp) +
                                line_of(c, "p.npy", expected.probabilities));
  }
}

TEST(Attend, PlainAndScaled) {
  AttendCase c;
  expect_agreement(c, {}, {});
  expect_agreement(c, {"--scale", "-0.25", "--threads", "2"}, {.scale = -0.25f});
}

TEST(Attend, StructuralMasks) {
  AttendCase c;
  expect_agreement(c, {"--causal", "top-left"}, {.causal = Causal::top_left});
  expect_agreement(c, {"--causal", "bottom-right"}, {.causal = Causal::bottom_right});
  expect_agreement(c, {"--window", "3,-1"}, {.window = {3, -1}});
  expect_agreement(c, {"--window", "-1,0", "--align", "bottom-right"},
                   {.align = Align::bottom_right, .window = {-1, 0}});
  expect_agreement(c, {"--chunk", "4", "--align", "top-left", "--causal", "bottom-right"},
                   {.causal = Causal::bottom_right, .align = Align::top_left, .chunk = 4});
}

TEST(Attend, Lengths) {
  AttendCase c;
  const std::vector<std::int64_t> query_lengths{13, 4};
  const std::vector<std::int64_t> key_lengths{0, 11};
  c.write<std::int64_t>("ql.npy", {2}, query_lengths);
  c.write<std::int64_t>("kl.npy", {2}, key_lengths);
  expect_agreement(
      c, {"--query-lengths", c.folder / "ql.npy", "--key-lengths", c.folder / "kl.npy", "--causal", "bottom-right"},
      {.causal = Causal::bottom_right, .query_lengths = query_lengths, .key_lengths = key_lengths});
}

TEST(Attend, PackedSequences) {
  AttendCase c(1, 12, 12);
  const std::vector<std::int64_t> offsets{0, 3, 3, 12};
  c.write<std::int64_t>("c.npy", {4}, offsets);
  expect_agreement(c, {"--cu-seqlens", c.folder / "c.npy", "--causal", "top-left"},
                   {.causal = Causal::top_left, .query_offsets = offsets});
}

TEST(Attend, MasksAndBiasBroadcast) {
  AttendCase c;
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(kQueryLength * kKeyLength));
  for (std::uint8_t& entry : mask) entry = c.random.once_in(3) ? 1 : 0;
  c.write<std::uint8_t>("m.npy", {kQueryLength, kKeyLength}, mask);
  const Tensor<float, 4> bias = c.random.normal_tensor<4>({1, kQueryHeads, 1, kKeyLength});
  c.write("b.npy", {kQueryHeads, 1, kKeyLength}, std::vector<float>(bias.begin(), bias.end()));
  const View<const std::uint8_t, 4> entries(mask.data(), {1, 1, kQueryLength, kKeyLength});
  for (const MaskMeans means : {MaskMeans::attend, MaskMeans::ignore}) {
    expect_agreement(c,
                     {"--mask", c.folder / "m.npy", "--mask-means", means == MaskMeans::attend ? "attend" : "ignore",
                      "--bias", c.folder / "b.npy"},
                     {.mask = BooleanMask{entries, means}, .bias = bias});
  }
}

// Arrays in 16 bits: read rounded, computed on and written widened, by each method as its own twin has it.
TEST(Attend, TypesOfArraysAndOfTheCache) {
  const AttendCase c;
  struct Given {
    std::vector<std::string> options;
    NumberType type, cache;
  };
  const std::vector<Given> all = {
      {{"--type", "bfloat16"}, NumberType::bfloat16, NumberType::bfloat16},
      {{"--type", "float16", "--cache-type", "bfloat16"}, NumberType::float16, NumberType::bfloat16},
      {{"--cache-type", "float16"}, NumberType::float32, NumberType::float16},
      {{"--type", "fp16", "--cache-type", "bf16"}, NumberType::float16, NumberType::bfloat16},
      {{"--type", "bfloat16", "--cache-type", "float32"}, NumberType::bfloat16, NumberType::float32},
      {{"--cache-type", "int8"}, NumberType::float32, NumberType::int8},
      {{"--type", "bfloat16", "--cache-type", "int8"}, NumberType::bfloat16, NumberType::int8},
      {{"--type", "float32"}, NumberType::float32, NumberType::float32}};
  for (const Given& given : all) {
    AttendCase rounded;
    rounded.query = rounded_to(given.type, c.query);
    const bool is_int8 = given.cache == NumberType::int8;
    rounded.key = is_int8 ? test::CachedRows(c.key).floats() : rounded_to(given.cache, c.key);
    rounded.value = is_int8 ? test::CachedRows(c.value).floats() : rounded_to(given.cache, c.value);
    for (const std::string method : {"fused", "unfused", "reference"}) {
      SCOPED_TRACE(given.options.back() + " " + method);
      std::vector<std::string> more = given.options;
      more.insert(more.end(), {"--method", method, "--causal", "bottom-right", "--log-sum-exp", c.folder / "l.npy"});
      const Finished finished = run_program(c.arguments(more));
      ASSERT_EQ(finished.code, 0) << finished.error;
      EXPECT_EQ(finished.error, "");
      const AttentionOptions options{.causal = Causal::bottom_right};
      const Outputs expected = method == "reference" ? computed_by_reference(rounded, options)
                               : method == "fused"
                                   ? computed_in(is_int8 ? c : rounded, given.type, given.cache, options)
                                   : computed(rounded, &baseline::attention_unfused, options);
      expect_npy(c.folder / "l.npy", expected.log_sum_exp);
      // The twin's result is rounded once, from float64: by two roundings another number may be nearest.
      if (method == "reference") {
        const models::Array<float> found = models::read_npy<float>(c.folder / "o.npy");
        for (std::size_t n = 0; n < found.values.size(); ++n) {
          EXPECT_EQ(found.values[n], test::widened(test::stored_bits(found.values[n], given.type), given.type));
          const float near = expected.out.data()[n];
          EXPECT_NEAR(found.values[n], near, std::abs(near) * 0x1.01p-8f);
        }
      } else {
        expect_npy(c.folder / "o.npy", rounded_to(given.type, expected.out));
      }
    }
  }
}

TEST(Attend, Dropout) {
  AttendCase c;
  expect_agreement(c, {"--dropout", "0.25", "--seed", "77"}, {.dropout = {0.25f, 77}});
}

TEST(Attend, ScoreStepsAndPositions) {
  AttendCase c;
  const std::vector<float> slopes{0.5f, 0.25f, 0.125f, 0.0625f}, sinks{1.0f, -0.5f, 0.25f, 0.0f};
  c.write<float>("slopes.npy", {kQueryHeads}, slopes);
  c.write<float>("sinks.npy", {kQueryHeads}, sinks);
  expect_agreement(c, {"--softcap", "1.5"}, {.softcap = 1.5f});
  expect_agreement(c, {"--alibi", c.folder / "slopes.npy", "--align", "bottom-right"},
                   {.align = Align::bottom_right, .alibi = slopes});
  expect_agreement(c, {"--sinks", c.folder / "sinks.npy"}, {.sinks = sinks});
  expect_agreement(c, {"--query-start", "6", "--key-start", "2", "--causal", "top-left"},
                   {.causal = Causal::top_left, .key_start = 2, .query_start = 6});
  const std::vector<std::int64_t> starts{9, 0};
  c.write<std::int64_t>("starts.npy", {kBatch}, starts);
  expect_agreement(c, {"--query-start", c.folder / "starts.npy", "--window", "3,0"},
                   {.query_start = starts, .window = {3, 0}});
}

TEST(Attend, ScoresAtEachStage) {
  AttendCase c;
  AttentionOptions options{.causal = Causal::bottom_right, .softcap = 1.5f};
  Tensor<float, 4> scores({kBatch, kQueryHeads, kQueryLength, kKeyLength});
  Tensor<float, 4> out({kBatch, kQueryLength, kQueryHeads, kValueDim});
  options.scores = scores;
  const std::pair<const char*, ScoreStage> stages[] = {{"raw", ScoreStage::raw},
                                                       {"capped", ScoreStage::capped},
                                                       {"masked", ScoreStage::masked},
                                                       {"", ScoreStage::masked}};
  for (const auto& [name, stage] : stages) {
    options.scores_at = stage;
    for (const std::string method : {"fused", "unfused", "reference"}) {
      SCOPED_TRACE(name + (" " + method));
      std::vector<std::string> all = c.arguments(
          {"--causal", "bottom-right", "--softcap", "1.5", "--scores", c.folder / "s.npy", "--method", method});
      if (*name != '\0') all.insert(all.end(), {"--scores-at", name});
      const Finished finished = run_program(all);
      ASSERT_EQ(finished.code, 0) << finished.error;
      if (method == "reference") {
        Tensor<double, 4> wide(scores.shape()), wide_out(out.shape());
        const Tensor<double, 4> query = converted<double>(c.query), key = converted<double>(c.key);
        const Tensor<double, 4> value = converted<double>(c.value);
        reference::attention<double>(query.view(), key.view(), value.view(), wide_out.view(), options,
                                     {.scores = wide.view()});
        scores = converted<float>(wide);
        options.scores = scores;
      } else {
        Engine engine;
        (method == "fused" ? kFused : &baseline::attention_unfused)(engine, c.query, c.key, c.value, out, options);
      }
      expect_npy(c.folder / "s.npy", scores);
    }
  }
}

// Rounding is said where it changed something, in the file that it changed, by how much.
TEST(Attend, Float64ThatFloat32DoesNotHoldIsSaid) {
  AttendCase c;
  const auto write_wide = [&](const std::string& name, const Tensor<float, 4>& values, double added) {
    const std::vector<double> wide = [&] {
      std::vector<double> all(values.begin(), values.end());
      all.back() = 1 + added;
      return all;
    }();
    std::ofstream file(c.folder / name, std::ios::binary);
    std::string shape;
    for (const std::int64_t extent : values.shape()) shape += std::to_string(extent) + ", ";
    const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }\n";
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0' << header;
    file.write(reinterpret_cast<const char*>(wide.data()), static_cast<std::streamsize>(wide.size() * sizeof(double)));
  };
  write_wide("k.npy", c.key, 0);
  const Finished exact = run_program(c.arguments());
  EXPECT_EQ(exact.code, 0);
  EXPECT_EQ(exact.error, "") << "all values are floats";
  write_wide("k.npy", c.key, 0x1p-25);
  const Finished rounded = run_program(c.arguments());
  EXPECT_EQ(rounded.code, 0);
  EXPECT_EQ(rounded.error, "headlight: warning: " + (c.folder / "k.npy") +
                               ": float64 is rounded to float32, which changes a value by up to 3e-08 of itself\n");
  write_wide("do.npy", Tensor<float, 4>({kBatch, kQueryLength, kQueryHeads, kValueDim}), 0x1p-25);
  c.write("k.npy", c.key);
  const Finished gradient =
      run_program(c.arguments({"--grad-out", c.folder / "do.npy", "--grad-key", c.folder / "dk.npy"}));
  EXPECT_EQ(gradient.code, 0);
  EXPECT_NE(gradient.error.find("do.npy: float64 is rounded"), std::string::npos) << gradient.error;
}

// Straight into what standard output is, after what is there, and with no word beside it.
TEST(Attend, TheResultMayBeStandardOutput) {
  const AttendCase c;
  ASSERT_EQ(run_program(c.arguments()).code, 0);
  const std::string expected = (std::ostringstream() << std::ifstream(c.folder / "o.npy").rdbuf()).str();
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    const std::vector<std::string> before = c.folder.names();
    const Finished finished = run_program(c.arguments({"-o", name}));
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.out, expected) << name;
    EXPECT_EQ(c.folder.names(), before);
  }
}

TEST(Attend, NothingToAttendTo) {
  AttendCase c(2, 3, 0);
  expect_agreement(c, {}, {});
}

}  // namespace headlight::test::attend_test
