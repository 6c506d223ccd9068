// attention_backward() over ranks, of operands and gradients of 16 bits: the bits are those of one process, whose sums
// are of floats and rounded once.
#include "support/typed_backward.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/mpi.h"
#include "mpi/expect_error.h"
#include "mpi/ranks.h"
#include "mpi/spread_case.h"
#include "support/attention_case.h"
#include "support/compare.h"
#include "support/quick.h"
#include "support/random.h"

namespace headlight::mpi_typed_backward_test {

using test::AttentionCase;
using test::BackwardTypes;
using test::shape_of;
using test::Stored;
using test::TypedBackward;

// The rows of the runs, in that type.
Stored share_of(const std::vector<mpi::Run>& runs, std::int64_t rows, NumberType type, const Tensor<float, 4>& whole) {
  Stored all(type, whole), share(type, {whole.shape()[0], rows, whole.shape()[2], whole.shape()[3]});
  mpi::take_share(runs, all.view(), share.view());
  return share;
}

struct Wanted {
  BackwardTypes types;
  bool with_log_sum_exp_gradient = false;
  bool in_place = false;  // the query gradient lies where out does, and is of its type
};

void expect_bits_spread(mpi::Group& group, Engine& engine, const AttentionCase& c, const Wanted& wanted,
                        const mpi::Spread& spread) {
  SCOPED_TRACE(c.line() + ", head_ranks " + std::to_string(spread.head_ranks) + ", block " +
               std::to_string(spread.block) + ", threads " + std::to_string(engine.threads()));
  TypedBackward call(engine, c, wanted.types, false);
  Tensor<float, 3> sums_gradient(call.problem.log_sum_exp.shape());
  if (wanted.with_log_sum_exp_gradient) {
    test::Random random(c.seed + 7);
    for (float& number : sums_gradient) number = random.normal();
  }
  const auto whole =
      call.of_types(engine, wanted.with_log_sum_exp_gradient ? sums_gradient.view() : View<const float, 3>());

  const mpi::Plan plan = mpi::plan(shape_of(c), call.problem.in.options, group.rank(), group.size(), spread);
  const auto rows = [&](NumberType type, const Tensor<float, 4>& of) {
    return share_of(plan.queries, plan.query_rows, type, of);
  };
  const auto keys = [&](NumberType type, const Tensor<float, 4>& of) {
    return share_of(plan.keys, plan.key_rows, type, of);
  };
  Stored query = rows(c.types[0], call.problem.in.query), key = keys(c.types[1], call.problem.in.key),
         value = keys(c.types[2], call.problem.in.value), out = rows(c.types[3], call.problem.out),
         out_gradient = rows(wanted.types.out_gradient, call.problem.out_gradient);
  const Tensor<float, 3> sums = test::share_of_heads(plan.queries, plan.query_rows, call.problem.log_sum_exp);
  const Tensor<float, 3> own_sums_gradient = test::share_of_heads(plan.queries, plan.query_rows, sums_gradient);
  Stored query_gradient(wanted.types.gradients[0], query.shape()), key_gradient(wanted.types.gradients[1], key.shape()),
      value_gradient(wanted.types.gradients[2], value.shape());
  Stored& of_query = wanted.in_place ? out : query_gradient;
  Tensor<float, 1> sinks_gradient({c.query_heads});
  AttentionOptions options = call.problem.in.options;
  if (wanted.with_log_sum_exp_gradient) options.log_sum_exp_gradient = own_sums_gradient;
  mpi::Gradients gradients = {of_query.view(), key_gradient.view(), value_gradient.view()};
  if (!call.problem.in.options.sinks.empty()) gradients.sinks = sinks_gradient;
  mpi::attention_backward(group, engine, shape_of(c), query.view(), key.view(), value.view(), out.view(), sums,
                          out_gradient.view(), gradients, options, spread);
  const auto expect = [&](const Stored& ours, const Stored& expected, const char* name) {
    EXPECT_TRUE(test::same_bits(ours.floats(), expected.floats())) << name;
  };
  expect(of_query, rows(wanted.types.gradients[0], whole.query), "query");
  expect(key_gradient, keys(wanted.types.gradients[1], whole.key), "key");
  expect(value_gradient, keys(wanted.types.gradients[2], whole.value), "value");
  if (gradients.sinks) {
    EXPECT_TRUE(test::same_bits(sinks_gradient, whole.sinks)) << "sinks";
  }
}

// Every way to share out the heads.
void expect_same_bits(mpi::Group& group, Engine& engine, const AttentionCase& c, const Wanted& wanted,
                      std::int64_t block = 0) {
  for (int head_ranks = 1; head_ranks <= group.size(); ++head_ranks) {
    if (group.size() % head_ranks != 0 || c.key_value_heads % head_ranks != 0) continue;
    expect_bits_spread(group, engine, c, wanted, {.head_ranks = head_ranks, .block = block, .bytes_per_number = 2});
  }
}

AttentionCase case_of(const std::string& text, NumberType type = NumberType::float32) {
  AttentionCase c = AttentionCase::parse("seed=7 " + text);
  c.types.fill(type);
  return c;
}

TEST(MpiTypedBackward, EveryMaskThatIsAnInterval) {
  const std::string masks[] = {
      "",
      " causal=top-left",
      " causal=top-left align=bottom-right window=200,-1 dropout=0.25",
      " window=100,30",
      " chunk=150 alibi=1",
      " causal=bottom-right key_start=7 query_start=40",
      " causal=bottom-right query_lengths=450,410 key_lengths=440,700",
      " scale=0.75 softcap=2",
      " causal=top-left sinks=1 dropout=0.125",
  };
  mpi::Group group(MPI_COMM_WORLD);
  for (const int threads : {1, 2}) {
    Engine engine({.threads = threads});
    for (const NumberType type : {NumberType::bfloat16, NumberType::float16}) {
      if (type == NumberType::float16 && threads > 1) continue;  // as of the other
      for (const std::string& mask : masks) {
        expect_same_bits(group, engine, case_of("B=2 Lq=500 Lk=700 Hq=4 Hkv=2 D=32 Dv=16" + mask, type),
                         {BackwardTypes::all(type)}, mask.empty() ? 192 : 0);
      }
    }
  }
}

TEST(MpiTypedBackward, PackedSequencesAndRaggedRows) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 2});
  for (const std::string of :
       {"B=1 Lq=900 Lk=900 Hq=4 Hkv=2 D=24 Dv=40 causal=top-left query_offsets=0,100,163,800,800,900 dropout=0.25",
        "B=1 Lq=900 Lk=1300 Hq=4 Hkv=2 D=24 Dv=40 causal=bottom-right query_offsets=0,301,310,900 "
        "key_offsets=0,11,900,1300",
        "B=1 Lq=1300 Lk=1300 Hq=4 Hkv=2 D=128 Dv=128 window=300,20", "B=3 Lq=70 Lk=130 Hq=8 Hkv=8 D=5 Dv=3 sinks=1",
        "B=1 Lq=500 Lk=1 Hq=4 Hkv=2 D=16 Dv=16", "B=1 Lq=0 Lk=300 Hq=4 Hkv=2 D=16 Dv=16",
        "B=1 Lq=130 Lk=0 Hq=4 Hkv=2 D=16 Dv=16"}) {
    const AttentionCase c = case_of(of, NumberType::bfloat16);
    expect_same_bits(group, engine, c, {BackwardTypes::all(NumberType::bfloat16)}, 64);
    expect_same_bits(group, engine, c, {BackwardTypes::all(NumberType::bfloat16)}, 576);
  }
}

// Gradients of floats over operands of 16 bits, the other way round, and what else a call may ask for.
TEST(MpiTypedBackward, EachTypeByItself) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  const std::string of = "B=1 Lq=300 Lk=500 Hq=4 Hkv=2 D=16 Dv=24 causal=top-left";
  constexpr NumberType kFloat = NumberType::float32, kBrain = NumberType::bfloat16, kHalf = NumberType::float16;
  const AttentionCase brains = case_of(of, kBrain), floats = case_of(of);
  expect_same_bits(group, engine, brains, {{kBrain, {kFloat, kFloat, kFloat}}});
  expect_same_bits(group, engine, brains, {{kFloat, {kBrain, kHalf, kFloat}}});
  expect_same_bits(group, engine, floats, {{kFloat, {kFloat, kBrain, kFloat}}});
  expect_same_bits(group, engine, floats, {{kFloat, {kHalf, kFloat, kHalf}}, true});
  const AttentionCase square = case_of("B=2 Lq=300 Lk=500 Hq=4 Hkv=2 D=16 Dv=16 window=70,0", kBrain);
  expect_same_bits(group, engine, square, {BackwardTypes::all(kBrain), true, true});
}

// Where sums that lie apart are added up in several passes.
TEST(MpiTypedBackward, LongShares) {
  mpi::Group group(MPI_COMM_WORLD);
  if (group.size() > 2) GTEST_SKIP() << "as at two ranks";
  Engine engine({.threads = 1});
  const std::string length = std::to_string(25000 * group.size() + 700);
  const std::string of = "B=1 Lq=" + length + " Lk=" + length + " Hq=2 Hkv=1", rest = " window=200,100 sinks=1";
  const BackwardTypes types = BackwardTypes::all(NumberType::bfloat16);
  expect_bits_spread(group, engine, case_of(of + " D=2 Dv=2" + rest, NumberType::bfloat16), {types}, {.head_ranks = 1});
  // Many rows over few keys, and the other way round: passes go by what is added up. Heads shared out, in place, too.
  for (const std::string& lengths : {" Lq=" + length + " Lk=300", " Lq=300 Lk=" + length}) {
    const std::string both = "B=2" + lengths + " Hq=4 Hkv=2 D=2 Dv=2 window=200,100";
    expect_same_bits(group, engine, case_of(both, NumberType::bfloat16), {types, false, true});
  }
  // Of floats whose rows are no whole vectors, those of keys alone.
  expect_bits_spread(group, engine, case_of(of + " D=1 Dv=3" + rest), {}, {.head_ranks = 1});
}

TEST(MpiTypedBackward, RandomCasesOnEveryInstructionSet) {
  mpi::Group group(MPI_COMM_WORLD);
  for (const Isa isa : available_isas()) {
    Engine engine({.threads = 2, .isa = isa});
    for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(16, 4); ++seed) {
      const AttentionCase c = test::random_spread_case(seed, 300);
      expect_same_bits(group, engine, c, {BackwardTypes::random(seed)});
    }
  }
}

TEST(MpiTypedBackward, RefusesWhatDoesNotFit) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  const AttentionCase c = case_of("B=1 Lq=640 Lk=640 Hq=2 Hkv=2 D=8 Dv=8");
  const mpi::Plan plan = mpi::plan(shape_of(c), {}, group.rank(), group.size());
  constexpr NumberType kBrain = NumberType::bfloat16;
  const View<float, 4>::Shape shape = {1, plan.query_rows, 2, 8};
  Stored zeros(kBrain, shape), query_gradient(kBrain, shape), floats(NumberType::float32, shape);
  Stored small(kBrain, {1, 3, 2, 8});
  const Tensor<float, 3> sums({1, 2, plan.query_rows});
  const ops::AttentionBackwardOperands good = {zeros.view(), zeros.view(), zeros.view(),
                                               zeros.view(), sums,         zeros.view()};
  const bool is_last = group.rank() == test::last_rank();
  const auto attend_backward = [&](const ops::AttentionBackwardOperands& of, const mpi::Gradients& gradients) {
    mpi::attention_backward(group, engine, shape_of(c), of.query, of.key, of.value, of.out, of.log_sum_exp,
                            of.out_gradient, gradients);
  };
  const auto refuse = [&](const ops::AttentionBackwardOperands& operands, const mpi::Gradients& gradients,
                          const std::string& words) {
    test::expect_error([&] { attend_backward(operands, gradients); }, test::last_rank(), words);
  };
  const auto with = [&](const MutableTypedView<4>& of_last) {
    return mpi::Gradients{.query = is_last ? of_last : query_gradient.view()};
  };
  if (group.size() > 1) {
    refuse(good, with(floats.view()), "gradients.query=of float32, but gradients.query=of bfloat16 on rank 0");
    refuse(good, with({}), "gradients.query=not given, but gradients.query=of bfloat16 on rank 0");
  }
  refuse(good, with(small.view()), "gradients.query has shape [1, 3, 2, 8]");
  refuse(good, with(zeros.view()), "gradients.query overlaps query");
  ops::AttentionBackwardOperands wrong = good;
  if (is_last) wrong.out_gradient = small.view();
  refuse(wrong, with(query_gradient.view()), "out_gradient has shape [1, 3, 2, 8]");
  attend_backward(good, with(query_gradient.view()));
}

}  // namespace headlight::mpi_typed_backward_test
