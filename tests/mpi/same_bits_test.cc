// Attention over ranks has the bits of one process, forward and backward.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention_backward.h"
#include "headlight/mpi.h"
#include "mpi/ranks.h"
#include "mpi/spread_case.h"
#include "support/attention_case.h"
#include "support/compare.h"
#include "support/quick.h"
#include "support/random.h"

namespace headlight::mpi_same_bits_test {

using test::AttentionCase;
using test::AttentionInputs;
using test::shape_of;

// What one process gives.
struct Results {
  explicit Results(const AttentionCase& c)
      : out({c.batch, c.query_length, c.query_heads, c.value_dim}),
        log_sum_exp({c.batch, c.query_heads, c.query_length}),
        query_gradient({c.batch, c.query_length, c.query_heads, c.head_dim}),
        key_gradient({c.batch, c.key_length, c.key_value_heads, c.head_dim}),
        value_gradient({c.batch, c.key_length, c.key_value_heads, c.value_dim}),
        sinks_gradient({c.query_heads}) {}
  Tensor<float, 4> out;
  Tensor<float, 3> log_sum_exp;
  Tensor<float, 4> query_gradient;
  Tensor<float, 4> key_gradient;
  Tensor<float, 4> value_gradient;
  Tensor<float, 1> sinks_gradient;
};

// Where that of the sinks goes, if there are any.
View<float, 1> of_sinks(const AttentionInputs& in, Tensor<float, 1>& gradient) {
  return in.options.sinks.empty() ? View<float, 1>() : gradient.view();
}

Tensor<float, 4> out_gradient_of(const AttentionCase& c) {
  return test::Random(c.seed + 1000).normal_tensor<4>({c.batch, c.query_length, c.query_heads, c.value_dim});
}

Results in_one_process(Engine& engine, const AttentionCase& c, const AttentionInputs& in) {
  Results results(c);
  AttentionOptions options = in.options;
  options.log_sum_exp = results.log_sum_exp;
  attention(engine, in.query, in.key, in.value, results.out, options);
  attention_backward(engine, in.query, in.key, in.value, results.out, results.log_sum_exp, out_gradient_of(c),
                     {.query = results.query_gradient,
                      .key = results.key_gradient,
                      .value = results.value_gradient,
                      .sinks = of_sinks(in, results.sinks_gradient)},
                     in.options);
  return results;
}

Tensor<float, 4> share_of(const std::vector<mpi::Run>& runs, std::int64_t rows, const Tensor<float, 4>& whole) {
  Tensor<float, 4> share({whole.shape()[0], rows, whole.shape()[2], whole.shape()[3]});
  mpi::take_share(runs, whole, share);
  return share;
}

// `biased`: by the distance of keys, of every head's own or, as `of_all`, of one for all heads.
enum class Biased { not_at_all, by_head, by_all };

void expect_bits_spread(mpi::Group& group, Engine& engine, const AttentionCase& c, const mpi::Spread& spread,
                        Biased biased = Biased::not_at_all) {
  SCOPED_TRACE(c.line() + ", head_ranks " + std::to_string(spread.head_ranks) + ", block " +
               std::to_string(spread.block) + ", threads " + std::to_string(engine.threads()));
  AttentionInputs in(c);
  const std::int64_t tables = biased == Biased::by_head ? c.query_heads : 1,
                     distances = c.query_length + c.key_length - 1;
  const Tensor<float, 2> table = test::Random(c.seed + 2000).normal_tensor<2>({tables, distances});
  if (biased != Biased::not_at_all) {
    in.options.bias = {
        table.data() + c.query_length - 1, {1, tables, c.query_length, c.key_length}, {0, distances, -1, 1}};
  }
  const Results whole = in_one_process(engine, c, in);
  const mpi::Plan plan = mpi::plan(shape_of(c), in.options, group.rank(), group.size(), spread);
  const auto rows = [&](const auto& tensor) { return share_of(plan.queries, plan.query_rows, tensor); };
  const auto keys = [&](const auto& tensor) { return share_of(plan.keys, plan.key_rows, tensor); };
  const Tensor<float, 4> query = rows(in.query), key = keys(in.key), value = keys(in.value);
  Tensor<float, 4> out({c.batch, plan.query_rows, c.query_heads, c.value_dim});
  Tensor<float, 3> log_sum_exp({c.batch, c.query_heads, plan.query_rows});
  AttentionOptions options = in.options;
  options.log_sum_exp = log_sum_exp;
  mpi::attention(group, engine, shape_of(c), query, key, value, out, options, spread);
  EXPECT_TRUE(test::same_bits(out, rows(whole.out)));
  EXPECT_TRUE(test::same_bits(log_sum_exp, test::share_of_heads(plan.queries, plan.query_rows, whole.log_sum_exp)));

  Tensor<float, 4> query_gradient(query.shape()), key_gradient(key.shape()), value_gradient(value.shape());
  Tensor<float, 1> sinks_gradient({c.query_heads});
  mpi::attention_backward(group, engine, shape_of(c), query, key, value, out, log_sum_exp, rows(out_gradient_of(c)),
                          {query_gradient, key_gradient, value_gradient, of_sinks(in, sinks_gradient)}, in.options,
                          spread);
  EXPECT_TRUE(test::same_bits(query_gradient, rows(whole.query_gradient)));
  EXPECT_TRUE(test::same_bits(key_gradient, keys(whole.key_gradient)));
  EXPECT_TRUE(test::same_bits(value_gradient, keys(whole.value_gradient)));
  EXPECT_TRUE(test::same_bits(sinks_gradient, whole.sinks_gradient));
}

// Every way to spread the case over the ranks.
void expect_same_bits(mpi::Group& group, Engine& engine, const AttentionCase& c,
                      const std::vector<std::int64_t>& blocks, Biased biased = Biased::not_at_all) {
  for (int head_ranks = 1; head_ranks <= group.size(); ++head_ranks) {
    if (group.size() % head_ranks != 0 || c.key_value_heads % head_ranks != 0) continue;
    for (const std::int64_t block : blocks) {
      expect_bits_spread(group, engine, c, {.head_ranks = head_ranks, .block = block}, biased);
    }
  }
}

TEST(MpiSameBits, EveryMaskThatIsAnInterval) {
  const std::string masks[] = {
      "",
      "causal=top-left",
      "causal=bottom-right",
      "causal=top-left align=bottom-right window=200,-1",
      "window=100,30",
      "window=-1,0",
      "chunk=150",
      "causal=top-left window=90,-1 chunk=130",
      "causal=bottom-right key_start=7 query_start=40",
      "query_lengths=700,31 key_lengths=1100,500",
      "causal=bottom-right query_lengths=650,610 key_lengths=640,1200",
      "dropout=0.25",
      "causal=top-left alibi=1 dropout=0.125",
      "scale=0.75 softcap=2",
      "causal=top-left sinks=1",
  };
  mpi::Group group(MPI_COMM_WORLD);
  for (const int threads : {1, 2}) {
    Engine engine({.threads = threads});
    std::uint64_t seed = 1;
    for (const std::string& mask : masks) {
      const AttentionCase c =
          AttentionCase::parse("seed=" + std::to_string(seed++) + " B=2 Lq=700 Lk=1200 Hq=8 Hkv=4 D=32 Dv=16" +
                               (mask.empty() ? "" : " ") + mask);
      expect_same_bits(group, engine, c,
                       test::quick() ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{0, 192});
    }
  }
}

TEST(MpiSameBits, ABiasThatTellsDistances) {
  mpi::Group group(MPI_COMM_WORLD);
  for (const int threads : {1, 2}) {
    Engine engine({.threads = threads});
    for (const char* const more : {"B=2 Lq=700 Lk=1200 Hq=8 Hkv=4 D=32 Dv=16 sinks=1 dropout=0.25",
                                   "B=1 Lq=900 Lk=900 Hq=8 Hkv=4 D=24 Dv=40 query_offsets=0,100,163,800,800,900",
                                   "B=1 Lq=130 Lk=300 Hq=8 Hkv=4 D=8 Dv=8 causal=bottom-right softcap=2 alibi=1"}) {
      const AttentionCase c = AttentionCase::parse("seed=3 " + std::string(more));
      for (const Biased biased : {Biased::by_head, Biased::by_all})
        expect_same_bits(group, engine, c, {0, 128}, biased);
    }
  }
}

TEST(MpiSameBits, PackedSequences) {
  const std::string sequences[] = {
      "Lq=900 Lk=900 Hq=4 Hkv=2 D=24 Dv=40 causal=top-left query_offsets=0,100,163,800,800,900 dropout=0.25",
      "Lq=900 Lk=1300 Hq=4 Hkv=2 D=24 Dv=40 causal=bottom-right query_offsets=0,300,310,900 key_offsets=0,10,900,1300",
      "Lq=1000 Lk=1000 Hq=4 Hkv=2 D=24 Dv=40 window=70,0 query_offsets=0,3,9,14,500,999,1000 alibi=1 dropout=0.5",
      "Lq=10 Lk=10 Hq=4 Hkv=2 D=24 Dv=40 query_offsets=0,1,2,3,10",
  };
  mpi::Group group(MPI_COMM_WORLD);
  for (const int threads : {1, 2}) {
    Engine engine({.threads = threads});
    for (const std::string& of : sequences) {
      const AttentionCase c = AttentionCase::parse("seed=5 B=1 " + of);
      expect_same_bits(group, engine, c, {0, 64});
    }
  }
}

// Rows of one and of several panels, of whole vectors and ragged; few heads, many, groups.
TEST(MpiSameBits, Shapes) {
  const std::string shapes[] = {
      "B=1 Lq=600 Lk=600 Hq=1 Hkv=1 D=64 Dv=64 causal=top-left",
      "B=1 Lq=600 Lk=600 Hq=6 Hkv=1 D=80 Dv=72 dropout=0.125",
      "B=3 Lq=70 Lk=130 Hq=8 Hkv=8 D=5 Dv=3 causal=bottom-right",
      "B=1 Lq=1 Lk=900 Hq=4 Hkv=4 D=64 Dv=64",
      "B=1 Lq=500 Lk=1 Hq=4 Hkv=2 D=16 Dv=16",
      "B=1 Lq=130 Lk=0 Hq=4 Hkv=2 D=16 Dv=16 sinks=1",
      "B=1 Lq=0 Lk=300 Hq=4 Hkv=2 D=16 Dv=16",
      "B=1 Lq=700 Lk=700 Hq=2 Hkv=2 D=160 Dv=160 causal=top-left",
      "B=1 Lq=300 Lk=300 Hq=3 Hkv=3 D=1 Dv=1 scale=-1",
  };
  mpi::Group group(MPI_COMM_WORLD);
  for (const int threads : {1, 2}) {
    Engine engine({.threads = threads});
    for (const std::string& shape : shapes)
      expect_same_bits(group, engine, AttentionCase::parse("seed=9 " + shape), {0, 128});
  }
}

// Blocks that are sent in several segments, where a block of the sums' grid (384 or 512 keys, 96 rows, fewer in long
// rows) begins in one and ends in the next: also where segments are as long as such blocks, for they begin with the
// rank's.
TEST(MpiSameBits, BlocksOfManySegments) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  for (const std::string dim : {"64", "128", "160"}) {
    const AttentionCase c =
        AttentionCase::parse("seed=4 B=1 Lq=1300 Lk=1300 Hq=2 Hkv=1 D=" + dim + " Dv=" + dim + " causal=top-left");
    for (const std::int64_t block : {576, 1088})
      expect_bits_spread(group, engine, c, {.head_ranks = 1, .block = block});
  }
  expect_bits_spread(group, engine, AttentionCase::parse("seed=4 B=1 Lq=2500 Lk=2500 Hq=1 Hkv=1 D=64 Dv=64"),
                     {.head_ranks = 1});
}

// More work than a tenth of a second between two calls of MPI is cut further, within the runs that a rank holds; few
// keys are seen, which what is between two calls does not count on. In plain C++ 24 heads of 96 are so much for 256
// rows forward, and for 128 rows and 192 keys backward, while the first rank holds 576.
TEST(MpiSameBits, RunsOfMuchWork) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1, .isa = available_isas().front()});
  for (const std::string of :
       {"B=4 Lq=640 Lk=640 Hq=6 Hkv=3 D=96 Dv=96 window=50,0",
        "B=1 Lq=640 Lk=640 Hq=24 Hkv=12 D=96 Dv=96 window=50,0 query_offsets=0,3,9,500,560,640"}) {
    expect_bits_spread(group, engine, AttentionCase::parse("seed=8 " + of + " dropout=0.25"),
                       {.head_ranks = 1, .block = 576});
  }
}

// Shares of 16,384 rows and more are sent in longer segments.
TEST(MpiSameBits, LongShares) {
  mpi::Group group(MPI_COMM_WORLD);
  if (group.size() > 2) GTEST_SKIP() << "as at two ranks";
  Engine engine({.threads = 1});
  const std::string length = std::to_string(16384 * group.size() + 700);
  expect_bits_spread(
      group, engine,
      AttentionCase::parse("seed=6 B=1 Lq=" + length + " Lk=" + length + " Hq=1 Hkv=1 D=1 Dv=1 window=700,300"),
      {.head_ranks = 1});
}

// Any options in any combination.
TEST(MpiSameBits, RandomCases) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 2});
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(60, 15); ++seed) {
    const AttentionCase c = test::random_spread_case(seed, 400);
    expect_same_bits(group, engine, c, {0});
  }
}

TEST(MpiSameBits, OnEveryInstructionSet) {
  mpi::Group group(MPI_COMM_WORLD);
  for (const Isa isa : available_isas()) {
    Engine engine({.threads = 1, .isa = isa});
    const AttentionCase c =
        AttentionCase::parse("seed=3 B=1 Lq=600 Lk=600 Hq=4 Hkv=2 D=20 Dv=20 causal=top-left alibi=1 dropout=0.25");
    expect_same_bits(group, engine, c, {0});
  }
}

}  // namespace headlight::mpi_same_bits_test
