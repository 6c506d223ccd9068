// Whether the sweep would find what is wrong: its language, what it draws, how it compares, how it makes a case small.
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "support/attention_case.h"
#include "support/compare.h"
#include "support/placed.h"
#include "support/refusal.h"
#include "sweep/case.h"
#include "sweep/minimise.h"

namespace headlight::sweep::sweep_test {

constexpr std::uint64_t kDrawn = 6000;

TEST(SweepTest, ReadsWhatItWrites) {
  for (std::uint64_t n = 0; n < kDrawn; ++n) {
    const std::string line = line_of(*draw(11, n));
    ASSERT_EQ(line_of(*parse(line)), line);
  }
}

TEST(SweepTest, SaysWhatItCannotRead) {
  const auto said = [](const char* line) { return test::refusal([&] { (void)parse(line); }); };
  EXPECT_EQ(said("gemm M=2 Q=3"), "gemm has no field 'Q'");
  EXPECT_EQ(said("gemm M=2x"), "M is '2x', expected a number");
  EXPECT_EQ(said("gemm packed=float64"),
            "packed is 'float64', expected one of plain, float32, bfloat16, float16, int8, int4");
  EXPECT_EQ(said("gemm M"), "'M' is no name=value");
  EXPECT_EQ(said("product M=2").find("there is no operation 'product', expected one of attention, "), 0u);
  EXPECT_EQ(said("gemm M=2 packed=int8 repeats=3"),
            "that call would be refused; the nearest that is not is\ngemm M=2 packed=int8");
  const std::string sizes = "B=1 Lq=2 Lk=2 Hq=1 Hkv=1 D=2 Dv=2";
  EXPECT_EQ(said(("attention " + sizes + " types=int8,int8,int8,float32").c_str()),
            "that call would be refused; the nearest that is not is\nattention " + sizes +
                " types=float32,int8,int8,float32");
  EXPECT_EQ(said(("attention_backward " + sizes + " types=float32,int8,float16,float32").c_str()),
            "that call would be refused; the nearest that is not is\nattention_backward " + sizes +
                " types=float32,float32,float16,float32");
}

// Words of cases, but for numbers: which fields, and which of their values where those have names.
std::multiset<std::string> options_of(Case& of) {
  std::multiset<std::string> options;
  for (const Word& word : of.words()) {
    const bool has_name = word.name != "types" && std::isalpha(word.value.front()) != 0;
    options.insert(has_name ? word.name + "=" + word.value : word.name);
  }
  return options;
}

TEST(SweepTest, DrawsEveryOptionOfEveryOperation) {
  std::map<std::string, std::map<std::string, int>> drawn;
  int caches = 0;
  for (std::uint64_t n = 0; n < kDrawn; ++n) {
    const auto made = draw(5, n);
    for (const std::string& option : options_of(*made)) ++drawn[made->operation()][option];
    if (line_of(*made).find("int8") != std::string::npos && made->operation() == "attention") ++caches;
  }
  EXPECT_GE(caches, 20) << "keys or values of int8";
  EXPECT_EQ(drawn.size(), 22u);
  for (const char* option : {"causal=top-left",
                             "causal=bottom-right",
                             "align=top-left",
                             "align=bottom-right",
                             "window",
                             "chunk",
                             "query_lengths",
                             "key_lengths",
                             "query_offsets",
                             "key_offsets",
                             "key_start",
                             "query_start",
                             "mask",
                             "mask_means=ignore",
                             "bias",
                             "bias_has_infinities",
                             "scale",
                             "softcap",
                             "alibi",
                             "sinks",
                             "dropout",
                             "types",
                             "layout=by_head",
                             "layout=interleaved",
                             "layout=gapped",
                             "probabilities",
                             "scores",
                             "threads"}) {
    EXPECT_GE(drawn["attention"][option], 20) << option;
  }
  for (const char* option : {"asked=query", "asked=key", "asked=value", "causal=top-left", "bias", "sinks", "types",
                             "out_gradient=bfloat16", "out_gradient=float16", "query_gradient=bfloat16",
                             "key_gradient=float16", "value_gradient=bfloat16", "accumulate"}) {
    EXPECT_GE(drawn["attention_backward"][option], 3) << option;
  }
  for (const char* option : {"x=bfloat16", "x=float16", "other=bfloat16", "y=float16"}) {
    EXPECT_GE(drawn["layer_norm"][option], 5) << option;
  }
  EXPECT_GE(drawn["embed"]["table=bfloat16"], 5);
  for (const char* option : {"norm=layer", "norm=rms", "pairing=interleaved", "dims", "heads", "one_plus"}) {
    EXPECT_GE(drawn["head_rows"][option], 5) << option;
  }
  for (const char* option : {"packed=float32", "packed=bfloat16", "packed=float16", "packed=int8", "packed=int4",
                             "transpose_a=yes", "transpose_b=yes", "alpha", "beta", "bias", "residual",
                             "activation=relu", "activation=gelu", "activation=gelu_tanh", "gap", "repeats"}) {
    EXPECT_GE(drawn["gemm"][option], 20) << option;
  }
}

// Of attention, which has most of them: each alone, and each pair of them together.
TEST(SweepTest, DrawsOptionsAloneAndTogether) {
  std::map<std::string, int> alone;
  std::map<std::pair<std::string, std::string>, int> together;
  for (std::uint64_t n = 0; n < 4 * kDrawn; ++n) {
    const auto made = draw(6, n);
    if (made->operation() != "attention") continue;
    test::AttentionCase c;
    for (const Word& word : made->words()) (void)c.set(word.name, word.value);
    c.key_value_heads = c.query_heads;  // grouped heads are a size, not an option
    const std::vector<std::string> names = names_of_options(c);
    if (names.size() == 1) ++alone[names[0]];
    for (const std::string& a : names) {
      for (const std::string& b : names) ++together[{a, b}];
    }
  }
  for (const char* name : {"causal", "window", "chunk", "lengths", "packed sequences", "mask", "soft cap", "alibi",
                           "sinks", "key start", "dropout"}) {
    EXPECT_GE(alone[name], 5) << name;
    for (const char* other : {"causal", "window", "chunk", "mask", "bias", "soft cap", "alibi", "sinks", "dropout"}) {
      const auto count = together[{name, other}];
      EXPECT_GE(count, 20) << name << " with " << other;
    }
  }
}

TEST(SweepTest, MakesAFailingCaseSmall) {
  const std::string line =
      "attention seed=7 B=3 Lq=29 Lk=41 Hq=6 Hkv=2 D=17 Dv=9 causal=bottom-right window=12,3 key_lengths=41,20,7 "
      "mask=3,6,29,41 mask_means=ignore scale=0.25 types=bfloat16,float16,float32,float32 layout=gapped threads=5";
  int tries = 0;
  // As if a mask for each sample went wrong from the eighth key on.
  const auto fails = [&](const std::string& candidate) {
    ++tries;
    const auto made = parse(candidate);
    test::AttentionCase c;
    for (const Word& word : made->words()) (void)c.set(word.name, word.value);
    return c.key_length >= 8 && c.mask && (*c.mask)[0] > 1 && made->isa == "";
  };
  EXPECT_EQ(minimised(line, fails),
            "attention seed=7 B=2 Lq=0 Lk=8 Hq=1 Hkv=1 D=1 Dv=1 mask=2,1,0,1 mask_means=ignore");
  EXPECT_LT(tries, 300);
  // What fails in no smaller form stays, and so does what nobody has the time to try.
  EXPECT_EQ(minimised(line, [](const std::string&) { return false; }), line);
  EXPECT_EQ(minimised(line, fails, 0), line);
}

// A machine that gets one number wrong is found, and named.
TEST(SweepTest, NamesWhereSomethingWentWrong) {
  Report report;
  report.goes_on("scalar");
  report.expect(testing::AssertionSuccess(), "out");
  EXPECT_FALSE(report.failed());
  report.goes_on("avx2");
  report.expect(testing::AssertionFailure() << "is off", "out");
  report.goes_on("avx512");
  report.fail("threw");
  EXPECT_TRUE(report.failed());
  EXPECT_EQ(report.failed_on(), "avx2");
  EXPECT_EQ(report.text(), "  avx2: out: is off\n  avx512: threw\n");
}

// The comparisons, on a row that is right, off by as much as is allowed, and by a little more.
TEST(SweepTest, ComparesByWhatIsPromised) {
  test::Random random(1);
  const auto truth = random.normal_tensor<2>({3, 40});
  Tensor<float, 2> actual = test::converted<float>(truth);
  const auto close = [&] { return test::at_most_twice_the_plain_error(actual.view(), truth.view(), truth.view()); };
  EXPECT_TRUE(close());
  const double norm = test::row_norm(&truth(1, 0), 40, 1);
  actual(1, 7) = truth(1, 7) + static_cast<float>(7 * test::kUnitRoundoff * norm);
  EXPECT_TRUE(close());
  EXPECT_FALSE(test::same_bits(actual, truth));
  actual(1, 7) = truth(1, 7) + static_cast<float>(10 * test::kUnitRoundoff * norm);
  EXPECT_FALSE(close());
  actual(1, 7) = std::nanf("");
  EXPECT_FALSE(close());
}

TEST(SweepTest, SeesWhatIsWrittenBetweenRows) {
  test::Random random(2);
  for (const NumberType type : test::kStoredTypes) {
    const auto tensor = test::rounded_to(type, random.normal_tensor<4>({2, 3, 2, 5}));
    for (const auto layout :
         {test::Layout::contiguous, test::Layout::by_head, test::Layout::interleaved, test::Layout::gapped}) {
      const test::Placed placed(type, tensor, layout, test::Against::back);
      EXPECT_TRUE(test::same_bits(placed.floats(), tensor));
      EXPECT_TRUE(placed.gaps_are_untouched());
      if (layout == test::Layout::contiguous || layout == test::Layout::by_head) continue;
      // Behind the two heads of the first row.
      const std::int64_t behind = placed.view().stride(2) + 5;
      test::put(placed.view().data, behind, 0, type);
      EXPECT_FALSE(placed.gaps_are_untouched());
    }
  }
}

}  // namespace headlight::sweep::sweep_test
