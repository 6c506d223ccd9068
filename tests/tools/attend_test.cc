// headlight attend: every option reaches the engine, and every bad array becomes one line.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "headlight/attention_backward.h"
#include "headlight/models/npy.h"
#include "reference/attention.h"
#include "reference/attention_backward.h"
#include "support/compare.h"
#include "support/random.h"
#include "tools/expect_npy.h"
#include "tools/program.h"

namespace headlight::test {
namespace {

constexpr std::int64_t kBatch = 2, kQueryLength = 13, kKeyLength = 17, kQueryHeads = 4, kKeyValueHeads = 2,
                       kHeadDim = 8, kValueDim = 5;

// Inputs of one shape, in memory and as files of a scratch folder.
struct Case {
  explicit Case(std::int64_t batch = kBatch, std::int64_t query_length = kQueryLength,
                std::int64_t key_length = kKeyLength) {
    query = random.normal_tensor<4>({batch, query_length, kQueryHeads, kHeadDim});
    key = random.normal_tensor<4>({batch, key_length, kKeyValueHeads, kHeadDim});
    value = random.normal_tensor<4>({batch, key_length, kKeyValueHeads, kValueDim});
    write("q.npy", query);
    write("k.npy", key);
    write("v.npy", value);
  }

  template <int Rank>
  void write(const std::string& name, const Tensor<float, Rank>& tensor) const {
    models::write_npy(folder / name, tensor.shape(), std::span<const float>(tensor.begin(), tensor.end()));
  }
  template <class T>
  void write(const std::string& name, const std::vector<std::int64_t>& shape, const std::vector<T>& values) const {
    models::write_npy(folder / name, shape, std::span<const T>(values));
  }

  // `more` may name one of the first four again: its file then takes the place of the usual one.
  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"attend"};
    for (const auto& [option, file] :
         {std::pair{"--query", "q.npy"}, {"--key", "k.npy"}, {"--value", "v.npy"}, {"-o", "o.npy"}}) {
      if (std::find(more.begin(), more.end(), option) == more.end()) all.insert(all.end(), {option, folder / file});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  ScratchFolder folder;
  Random random{7};
  Tensor<float, 4> query, key, value;
};

struct Outputs {
  explicit Outputs(const Case& c)
      : out({c.query.shape()[0], c.query.shape()[1], kQueryHeads, kValueDim}),
        probabilities({c.query.shape()[0], kQueryHeads, c.query.shape()[1], c.key.shape()[1]}),
        log_sum_exp({c.query.shape()[0], kQueryHeads, c.query.shape()[1]}) {}
  Tensor<float, 4> out, probabilities;
  Tensor<float, 3> log_sum_exp;
};

Outputs computed(const Case& c, decltype(&attention) method, AttentionOptions options) {
  Engine engine;
  Outputs outputs(c);
  options.log_sum_exp = outputs.log_sum_exp;
  options.probabilities.per_head = outputs.probabilities;
  method(engine, c.query, c.key, c.value, outputs.out, options);
  return outputs;
}

Outputs computed_by_reference(const Case& c, const AttentionOptions& options) {
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
void expect_agreement(const Case& c, const std::vector<std::string>& more, const AttentionOptions& options) {
  for (const std::string method : {"fused", "unfused", "reference"}) {
    SCOPED_TRACE(method);
    std::vector<std::string> all = c.arguments(more);
    all.insert(all.end(),
               {"--method", method, "--log-sum-exp", c.folder / "l.npy", "--probabilities", c.folder / "p.npy"});
    const Finished finished = run_program(all);
    ASSERT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.out + finished.error, "");
    const Outputs expected = method == "reference"
                                 ? computed_by_reference(c, options)
                                 : computed(c, method == "fused" ? &attention : &attention_unfused, options);
    expect_npy(c.folder / "o.npy", expected.out);
    expect_npy(c.folder / "l.npy", expected.log_sum_exp);
    expect_npy(c.folder / "p.npy", expected.probabilities);
  }
}

TEST(Attend, PlainAndScaled) {
  Case c;
  expect_agreement(c, {}, {});
  expect_agreement(c, {"--scale", "-0.25", "--threads", "2"}, {.scale = -0.25f});
}

TEST(Attend, StructuralMasks) {
  Case c;
  expect_agreement(c, {"--causal", "top-left"}, {.causal = Causal::top_left});
  expect_agreement(c, {"--causal", "bottom-right"}, {.causal = Causal::bottom_right});
  expect_agreement(c, {"--window", "3,-1"}, {.window = {3, -1}});
  expect_agreement(c, {"--window", "-1,0", "--align", "bottom-right"},
                   {.align = Align::bottom_right, .window = {-1, 0}});
  expect_agreement(c, {"--chunk", "4", "--align", "top-left", "--causal", "bottom-right"},
                   {.causal = Causal::bottom_right, .align = Align::top_left, .chunk = 4});
}

TEST(Attend, Lengths) {
  Case c;
  const std::vector<std::int64_t> query_lengths{13, 4};
  const std::vector<std::int64_t> key_lengths{0, 11};
  c.write<std::int64_t>("ql.npy", {2}, query_lengths);
  c.write<std::int64_t>("kl.npy", {2}, key_lengths);
  expect_agreement(
      c, {"--query-lengths", c.folder / "ql.npy", "--key-lengths", c.folder / "kl.npy", "--causal", "bottom-right"},
      {.causal = Causal::bottom_right, .query_lengths = query_lengths, .key_lengths = key_lengths});
}

TEST(Attend, PackedSequences) {
  Case c(1, 12, 12);
  const std::vector<std::int64_t> offsets{0, 3, 3, 12};
  c.write<std::int64_t>("c.npy", {4}, offsets);
  expect_agreement(c, {"--cu-seqlens", c.folder / "c.npy", "--causal", "top-left"},
                   {.causal = Causal::top_left, .query_offsets = offsets});
}

TEST(Attend, MasksAndBiasBroadcast) {
  Case c;
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

// The gradients of the program, by each method, against the library's.
void expect_gradients(const Case& c, const std::vector<std::string>& more, const AttentionOptions& options,
                      const std::vector<std::int64_t>& bias_shape = {}) {
  Random random(11);
  Tensor<float, 4> out({c.query.shape()[0], c.query.shape()[1], kQueryHeads, kValueDim});
  const auto out_gradient = random.normal_tensor<4>(out.shape());
  c.write("do.npy", out_gradient);
  Tensor<float, 3> log_sum_exp({c.query.shape()[0], kQueryHeads, c.query.shape()[1]});
  for (const std::string method : {"fused", "unfused", "reference"}) {
    SCOPED_TRACE(method);
    std::vector<std::string> all = c.arguments(more);
    all.insert(all.end(), {"--method", method, "--grad-out", c.folder / "do.npy", "--grad-query", c.folder / "dq.npy",
                           "--grad-key", c.folder / "dk.npy", "--grad-value", c.folder / "dv.npy"});
    if (!bias_shape.empty()) all.insert(all.end(), {"--grad-bias", c.folder / "db.npy"});
    const Finished finished = run_program(all);
    ASSERT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.out + finished.error, "");

    Tensor<float, 4> query(c.query.shape()), key(c.key.shape()), value(c.value.shape()), bias;
    AttentionGradients gradients{query, key, value};
    if (!bias_shape.empty()) bias = Tensor<float, 4>({bias_shape[0], bias_shape[1], bias_shape[2], bias_shape[3]});
    if (!bias_shape.empty()) gradients.bias = bias;
    Engine engine;
    AttentionOptions forward = options;
    forward.log_sum_exp = log_sum_exp;
    attention(engine, c.query, c.key, c.value, out, forward);
    if (method == "unfused") {
      attention_unfused_backward(engine, c.query, c.key, c.value, out_gradient, gradients, options);
    } else if (method == "fused") {
      attention_backward(engine, c.query, c.key, c.value, out, log_sum_exp, out_gradient, gradients, options);
    } else {
      Tensor<double, 4> wide_query(query.shape()), wide_key(key.shape()), wide_value(value.shape()),
          wide_bias(bias.shape());
      reference::AttentionGradients<double> wide{wide_query, wide_key, wide_value};
      if (!bias_shape.empty()) wide.bias = wide_bias;
      reference::attention_backward<double>(converted<double>(c.query), converted<double>(c.key),
                                            converted<double>(c.value), converted<double>(out_gradient), wide, options);
      query = converted<float>(wide_query);
      key = converted<float>(wide_key);
      value = converted<float>(wide_value);
      bias = converted<float>(wide_bias);
    }
    expect_npy(c.folder / "dq.npy", query);
    expect_npy(c.folder / "dk.npy", key);
    expect_npy(c.folder / "dv.npy", value);
    if (!bias_shape.empty()) expect_npy(c.folder / "db.npy", bias);
  }
}

TEST(Attend, Dropout) {
  Case c;
  expect_agreement(c, {"--dropout", "0.25", "--seed", "77"}, {.dropout = {0.25f, 77}});
}

TEST(Attend, Gradients) {
  Case c;
  expect_gradients(c, {"--causal", "bottom-right", "--dropout", "0.25", "--seed", "18446744073709551615"},
                   {.causal = Causal::bottom_right, .dropout = {0.25f, ~std::uint64_t{0}}});
  const Tensor<float, 4> bias = c.random.normal_tensor<4>({1, kQueryHeads, 1, kKeyLength});
  c.write("b.npy", {kQueryHeads, 1, kKeyLength}, std::vector<float>(bias.begin(), bias.end()));
  expect_gradients(c, {"--bias", c.folder / "b.npy"}, {.bias = bias}, {1, kQueryHeads, 1, kKeyLength});
}

TEST(Attend, NothingToAttendTo) {
  Case c(2, 3, 0);
  expect_agreement(c, {}, {});
}

TEST(Attend, WrongUsage) {
  const Case c;
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
  usage({"--dropout", "nan"}, "--dropout");
  usage({"--grad-query", "dq.npy"}, "--grad-out");
  usage({"--grad-out", "do.npy"}, "--grad-query");
  usage({"--grad-out", "do.npy", "--grad-bias", "db.npy"}, "--bias");
  usage({"--grad-out", "do.npy", "--grad-query", "d.npy", "--grad-key", "d.npy"}, "two outputs");
  usage({"--log-sum-exp", c.folder / "o.npy"}, "two outputs");
  usage({"--log-sum-exp", c.folder / "./o.npy"}, "two outputs");
  usage({"--log-sum-exp", c.folder / "x/../l.npy", "--probabilities", c.folder / "l.npy"}, "two outputs");
  for (const char* option : {"--query", "--key", "--value", "-o", "--query-lengths", "--key-lengths", "--cu-seqlens",
                             "--mask", "--bias", "--log-sum-exp", "--probabilities", "--grad-out", "--grad-query"}) {
    usage({option, ""}, "is empty, expected a name");
  }
  for (const char* option :
       {"-o", "--log-sum-exp", "--probabilities", "--grad-query", "--grad-key", "--grad-value", "--grad-bias"}) {
    usage({option, "-"}, "expected the name of a file");
  }
  for (const char* window : {"3", "3,", ",3", "3,4,5", "-2,0", "a,b", "9223372036854775808,0", ""}) {
    usage({std::string("--window=") + window}, "--window");
  }
  usage({"--cu-seqlens", "c.npy", "--key-lengths", "k.npy"}, "--cu-seqlens");
}

TEST(Attend, BadInputsLeaveNoFile) {
  Case c;
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
  replaced("k.npy", {2, 17, 2, 9}, {"key", "[2, 17, 2, 9]"});
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
  const Case c;
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
  fails({"has shape [2, 13, 4, 6], expected [2, 13, 4, 5]"});
  c.write<std::int64_t>("do.npy", {1, 1, 1, 1}, {0});
  fails({"do.npy", "expected float32"});
  given({2, 13, 4, 5});
  std::filesystem::resize_file(c.folder / "do.npy", 200);
  fails({"do.npy", "bytes"});
}

TEST(Attend, BadSideArrays) {
  const Case c;
  const auto fails = [&](const std::vector<std::string>& more, const std::vector<std::string>& words) {
    expect_error(run_program(c.arguments(more)), words);
  };
  c.write<std::int64_t>("n.npy", {2}, {14, 3});
  fails({"--query-lengths", c.folder / "n.npy"}, {"query_lengths", "14"});
  c.write<std::int64_t>("n.npy", {3}, {1, 2, 3});
  fails({"--key-lengths", c.folder / "n.npy"}, {"key_lengths"});
  c.write<float>("n.npy", {2}, {1, 2});
  fails({"--key-lengths", c.folder / "n.npy"}, {"n.npy"});
  c.write<std::int64_t>("n.npy", {0}, {});
  for (const char* option : {"--query-lengths", "--key-lengths", "--cu-seqlens"}) {
    fails({option, c.folder / "n.npy"}, {"n.npy", "[0]"});
  }
  c.write<std::int64_t>("n.npy", {3}, {0, 5, 13});
  fails({"--cu-seqlens", c.folder / "n.npy"}, {"query_offsets"});
  c.write<std::uint8_t>("m.npy", {5, 17}, std::vector<std::uint8_t>(85));
  fails({"--mask", c.folder / "m.npy", "--mask-means", "attend"}, {"mask", "[1, 1, 5, 17]"});
  c.write<float>("b.npy", {1, 1, 1, 1, 1}, {0});
  fails({"--bias", c.folder / "b.npy"}, {"b.npy", "[1, 1, 1, 1, 1]"});
}

TEST(Attend, OutputsThatCannotBeWritten) {
  const Case c;
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
  const Case c;
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
  const Case c;
  for (const char* method : {"fused", "unfused", "reference"}) {
    expect_error(run_program(c.arguments({"--method", method}), {.environment = {{"HEADLIGHT_ISA", "mmx"}}}),
                 {"HEADLIGHT_ISA", "mmx"});
  }
}

TEST(Attend, MemoryThatRunsOutIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers' own shadow memory does not fit under a limit";
#endif
  const Case c(1, 60000, 60000);
  // The scores alone would take 57 GB.
  const Finished finished =
      run_program(c.arguments({"-t", "1", "--probabilities", c.folder / "p.npy"}), {.memory = std::size_t{1} << 30});
  expect_error(finished, {"out of memory"});
}

}  // namespace
}  // namespace headlight::test
