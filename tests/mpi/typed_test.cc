// Attention over ranks, of 16- and 8-bit operands: they are sent as they are, and the bits are those of one process.
#include <string>

#include "gtest/gtest.h"
#include "headlight/mpi.h"
#include "mpi/ranks.h"
#include "mpi/spread_case.h"
#include "support/attention_case.h"
#include "support/attention_operands.h"
#include "support/cached_rows.h"
#include "support/compare.h"
#include "support/quick.h"
#include "support/typed_operands.h"

namespace headlight::mpi_typed_test {

using test::AttentionCase;
using test::AttentionInputs;
using test::CachedRows;
using test::shape_of;
using test::Stored;

// [B, L, H] as [B, L, H, 1].
template <class T>
View<T, 4> each(const View<T, 3>& numbers) {
  return {numbers.data,
          {numbers.extent(0), numbers.extent(1), numbers.extent(2), 1},
          {numbers.stride(0), numbers.stride(1), numbers.stride(2), 1}};
}
// [B, H, L] likewise.
template <class T>
View<T, 4> each_row(const View<T, 3>& numbers) {
  return each(View<T, 3>(numbers.data, {numbers.extent(0), numbers.extent(2), numbers.extent(1)},
                         {numbers.stride(0), numbers.stride(2), numbers.stride(1)}));
}

void attend(mpi::Group& group, Engine& engine, const AttentionShape& whole, const ops::AttentionOperands& shares,
            AttentionOptions options = {}, const mpi::Spread& spread = {}) {
  options.key_scales = shares.key_scales;
  options.value_scales = shares.value_scales;
  mpi::attention(group, engine, whole, shares.query, shares.key, shares.value, shares.out, options, spread);
}

// Of one process and over ranks: the same out, brought together on every rank in turn, and the same log-sum-exp.
void expect_same_bits(mpi::Group& group, Engine& engine, const AttentionCase& c, const AttentionOptions& given,
                      ops::AttentionOperands whole, const mpi::Spread& spread) {
  SCOPED_TRACE(c.line() + ", head_ranks " + std::to_string(spread.head_ranks));
  const View<float, 4>::Shape shape = {c.batch, c.query_length, c.query_heads, c.value_dim};
  Stored expected(c.types[3], shape), out(c.types[3], shape);
  Tensor<float, 3> expected_sums({c.batch, c.query_heads, c.query_length}), sums(expected_sums.shape());
  AttentionOptions options = given;
  options.log_sum_exp = expected_sums;
  whole.out = expected.view();
  test::attend(engine, whole, options);

  const mpi::Plan plan = mpi::plan(shape_of(c), given, group.rank(), group.size(), spread);
  const auto share = [&](const std::vector<mpi::Run>& runs, std::int64_t rows, const TypedView<4>& of) {
    Stored part(of.type, {of.extent(0), rows, of.extent(2), of.extent(3)});
    mpi::take_share(runs, of, part.view());
    return part;
  };
  const auto scales_of = [&](const View<const float, 3>& of) {
    Tensor<float, 3> part({c.batch, plan.key_rows, c.key_value_heads});
    mpi::take_share(plan.keys, each(of), each(part.view()));
    return part;
  };
  Stored query = share(plan.queries, plan.query_rows, whole.query);
  Stored key = share(plan.keys, plan.key_rows, whole.key), value = share(plan.keys, plan.key_rows, whole.value);
  Stored own(c.types[3], {c.batch, plan.query_rows, c.query_heads, c.value_dim});
  Tensor<float, 3> own_sums({c.batch, c.query_heads, plan.query_rows});
  Tensor<float, 3> key_scales, value_scales;
  ops::AttentionOperands shares = {query.view(), key.view(), value.view(), own.view()};
  if (whole.key_scales) shares.key_scales = key_scales = scales_of(whole.key_scales);
  if (whole.value_scales) shares.value_scales = value_scales = scales_of(whole.value_scales);
  options.log_sum_exp = own_sums;
  attend(group, engine, shape_of(c), shares, options, spread);
  for (int root = 0; root < group.size(); ++root) {
    mpi::collect(group, root, plan.queries, own.view(), out.view());
    mpi::collect(group, root, plan.queries, each_row(View<const float, 3>(own_sums)), each_row(sums.view()));
  }
  EXPECT_TRUE(test::same_bits(out.floats(), expected.floats()));
  EXPECT_TRUE(test::same_bits(sums, expected_sums));
}

// Every way to share out the heads.
void expect_same_bits(mpi::Group& group, Engine& engine, const AttentionCase& c, const AttentionOptions& options,
                      const ops::AttentionOperands& whole) {
  for (int head_ranks = 1; head_ranks <= group.size(); ++head_ranks) {
    if (group.size() % head_ranks != 0 || c.key_value_heads % head_ranks != 0) continue;
    expect_same_bits(group, engine, c, options, whole, {.head_ranks = head_ranks, .bytes_per_number = 2});
  }
}

AttentionCase case_of(const std::string& text) { return AttentionCase::parse("seed=7 " + text); }

void expect_same_bits(mpi::Group& group, Engine& engine, const AttentionCase& c) {
  const AttentionInputs in(c);
  test::TypedOperands operands(c, in);
  expect_same_bits(group, engine, c, in.options,
                   {operands.query.view(), operands.key.view(), operands.value.view(), {}});
}

TEST(MpiTyped, SixteenBits) {
  mpi::Group group(MPI_COMM_WORLD);
  const std::string of_all = "B=2 Lq=700 Lk=1200 Hq=8 Hkv=4";
  for (const int threads : {1, 2}) {
    Engine engine({.threads = threads});
    for (const std::string types : {"bfloat16,bfloat16,bfloat16,bfloat16", "float16,float16,float16,float16",
                                    "float32,bfloat16,float16,float32", "bfloat16,float32,bfloat16,float16"}) {
      expect_same_bits(group, engine, case_of(of_all + " D=32 Dv=16 causal=top-left types=" + types + " dropout=0.25"));
      expect_same_bits(group, engine, case_of(of_all + " D=7 Dv=5 causal=bottom-right sinks=1 types=" + types));
    }
  }
}

// Pairs of bfloat16 need whole vectors of the kernels, and sequences cut within blocks of keys carry rows along.
TEST(MpiTyped, PackedSequencesAndLongSegments) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 2});
  for (const std::string of :
       {"B=1 Lq=900 Lk=900 Hq=4 Hkv=2 D=24 Dv=40 causal=top-left query_offsets=0,100,163,800,800,900",
        "B=1 Lq=1300 Lk=1300 Hq=4 Hkv=2 D=128 Dv=128 window=300,20", "B=1 Lq=500 Lk=1 Hq=4 Hkv=2 D=16 Dv=16",
        "B=1 Lq=0 Lk=300 Hq=4 Hkv=2 D=16 Dv=16", "B=1 Lq=130 Lk=0 Hq=4 Hkv=2 D=16 Dv=16"}) {
    expect_same_bits(group, engine, case_of(of + " types=bfloat16,bfloat16,bfloat16,bfloat16"));
  }
}

TEST(MpiTyped, CachesOfInt8) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  for (const std::string of : {"D=32 Dv=16", "D=5 Dv=3 causal=top-left"}) {
    const AttentionCase c = case_of("B=2 Lq=300 Lk=1100 Hq=4 Hkv=4 " + of + " types=float32,float32,float32,bfloat16");
    const AttentionInputs in(c);
    const CachedRows key(in.key), value(in.value, CachedRows::Layout::by_head);
    expect_same_bits(group, engine, c, in.options,
                     {in.query, key.numbers(), value.numbers(), {}, key.scales(), value.scales()});
    // One of the two.
    expect_same_bits(group, engine, c, in.options, {in.query, key.numbers(), in.value, {}, key.scales(), {}});
    expect_same_bits(group, engine, c, in.options, {in.query, in.key, value.numbers(), {}, {}, value.scales()});
  }
}

TEST(MpiTyped, RandomCasesOnEveryInstructionSet) {
  mpi::Group group(MPI_COMM_WORLD);
  for (const Isa isa : available_isas()) {
    Engine engine({.threads = 2, .isa = isa});
    for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(12, 4); ++seed) {
      const AttentionCase c = test::random_spread_case(seed, 300);
      expect_same_bits(group, engine, c);
    }
  }
}

TEST(MpiTyped, RefusesTypesThatDiffer) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  const AttentionCase c = case_of("B=1 Lq=128 Lk=128 Hq=2 Hkv=2 D=8 Dv=8");
  const AttentionInputs in(c);
  const mpi::Plan plan = mpi::plan(shape_of(c), {}, group.rank(), group.size());
  const bool is_last = group.rank() == group.size() - 1;
  const auto refused = [&](NumberType of_last, const ops::AttentionOperands& shares) {
    try {
      attend(group, engine, shape_of(c), shares);
    } catch (const mpi::Error& error) {
      return std::string(error.what());
    }
    return "nothing for " + std::string(name(of_last));
  };
  const auto shares_of = [&](NumberType type) {
    return std::array{Stored(type, {1, plan.query_rows, 2, 8}), Stored(type, {1, plan.key_rows, 2, 8}),
                      Stored(type, {1, plan.key_rows, 2, 8}), Stored(type, {1, plan.query_rows, 2, 8})};
  };
  auto halves = shares_of(NumberType::bfloat16);
  auto floats = shares_of(NumberType::float32);
  const auto operands = [](auto& of) {
    return ops::AttentionOperands{of[0].view(), of[1].view(), of[2].view(), of[3].view()};
  };
  if (group.size() > 1) {
    EXPECT_NE(refused(NumberType::bfloat16, is_last ? operands(halves) : operands(floats))
                  .find("the type of query=bfloat16, but the type of query=float32 on rank 0"),
              std::string::npos);
  }
  ops::AttentionOperands wrong = operands(floats);
  if (is_last) wrong.key.type = NumberType::int4;
  const std::string words = refused(NumberType::int4, wrong);
  EXPECT_NE(words.find("key"), std::string::npos) << words;
  // And goes on.
  attend(group, engine, shape_of(c), operands(floats));

  Stored whole(NumberType::float32, {1, 128, 2, 8});
  EXPECT_THROW(mpi::take_share(plan.queries, whole.view(), halves[0].view()), std::invalid_argument);
  EXPECT_THROW(mpi::collect(group, 0, plan.queries, halves[0].view(), whole.view()), mpi::Error);
}

}  // namespace headlight::mpi_typed_test
