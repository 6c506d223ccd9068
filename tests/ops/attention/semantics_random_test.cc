// attention() and attention_unfused() against the float64 twin, over random calls with all options in combination:
// every row's error is at most twice that of the plain float32 computation, on every instruction set.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ops/attention/plan.h"
#include "support/attention_case.h"
#include "support/attention_results.h"
#include "support/attention_routes.h"
#include "support/compare.h"
#include "support/quick.h"

namespace headlight::attention_semantics_random_test {

// Memory in which the axes of a tensor lie in another order, with gaps: what callers have who keep [B, H, L, D], or
// slices of something bigger. Gaps are NaN, so that whoever reads one shows it.
class Strided {
 public:
  Strided(const View<const float, 4>& from, test::Random& random) : view_(nullptr, from.shape) {
    std::array<std::size_t, 3> order{0, 1, 2};
    if (random.once_in(2)) std::swap(order[1], order[2]);
    std::int64_t step = from.extent(3) + (random.once_in(2) ? random.integer(0, 5) : 0);
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      view_.strides[*axis] = step;
      step = step * std::max<std::int64_t>(1, from.shape[*axis]) + (random.once_in(3) ? random.integer(0, 9) : 0);
    }
    view_.strides[3] = 1;
    memory_.assign(static_cast<std::size_t>(step), std::nanf(""));
    view_.data = memory_.data();
    copy(from, View<float, 4>(view_));
  }

  [[nodiscard]] View<float, 4> view() { return view_; }

  // How many elements hold a number, gaps included.
  [[nodiscard]] std::int64_t numbers() const {
    return std::count_if(memory_.begin(), memory_.end(), [](float element) { return !std::isnan(element); });
  }

 private:
  static void copy(const View<const float, 4>& from, const View<float, 4>& to) {
    test::for_each_row(from, to, [&](const auto&, std::int64_t offset_from, std::int64_t offset_to) {
      std::copy_n(from.data + offset_from, from.extent(3), to.data + offset_to);
    });
  }

  std::vector<float> memory_;
  View<float, 4> view_;
};

using Results = test::AttentionResults<float>;

void check(const test::Route& route, const test::AttentionCase& c, const test::AttentionInputs& in,
           const Results& plain, const test::AttentionResults<double>& truth,
           const test::AttentionYardsticks& yardsticks) {
  SCOPED_TRACE(route.name());
  test::Random random(c.seed);
  Strided query(in.query, random);
  Strided key(in.key, random);
  Strided value(in.value, random);
  Results results(c);
  Strided out(results.out, random);
  AttentionOptions options = in.options;
  options.log_sum_exp = results.log_sum_exp;
  if (random.once_in(3)) options.probabilities.per_head = results.probabilities;
  if (random.once_in(3)) options.scores = results.scores;
  route(query.view(), key.view(), value.view(), out.view(), options, static_cast<int>(random.integer(1, 3)));

  EXPECT_EQ(out.numbers(), out.view().size()) << "something was written into the gaps of out";
  EXPECT_TRUE(
      test::at_most_twice_the_plain_error(out.view(), plain.out.view(), truth.out.view(), yardsticks.out.view()));
  EXPECT_TRUE(test::at_most_twice_the_plain_error(results.log_sum_exp.view(), plain.log_sum_exp.view(),
                                                  truth.log_sum_exp.view(), yardsticks.log_sum_exp.view()));
  if (options.scores) {
    EXPECT_TRUE(test::at_most_twice_the_plain_error(results.scores.view(), plain.scores.view(), truth.scores.view(),
                                                    yardsticks.scores.view()));
  }
  if (!options.probabilities.per_head) return;
  EXPECT_TRUE(test::at_most_twice_the_plain_error(results.probabilities.view(), plain.probabilities.view(),
                                                  truth.probabilities.view()));
}

// Every route against the truth.
void check_all(const test::AttentionCase& c) {
  SCOPED_TRACE(c.line());
  const test::AttentionInputs in(c);
  const auto plain = test::plain_results<float>(c, in);
  const auto truth = test::plain_results<double>(c, in);
  const test::AttentionYardsticks yardsticks(c, in, truth);
  for (const test::Route& route : test::engine_routes()) check(route, c, in, plain, truth, yardsticks);
}

TEST(AttentionRandomTest, FULL_ErrsAtMostTwiceAsMuchAsThePlainComputation) {
  const auto longest = test::count<std::int64_t>(300, 60);
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(200, 40) && !HasFailure(); ++seed) {
    check_all(test::random_attention_case(seed, longest));
  }
}

std::int64_t key_block(std::int64_t head_dim, std::int64_t value_dim) {
  return ops::attention_key_block({1, 1, 1, 1, 1, 1, head_dim, value_dim});
}

TEST(AttentionRandomTest, FULL_ErrsAsLittleOverSeveralBlocksOfKeys) {
  // How many cases with an option saw two blocks of keys.
  std::map<std::string, int> reached;
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(50, 8) && !HasFailure(); ++seed) {
    const test::AttentionCase c = test::random_case_of_several_blocks(seed, key_block);
    check_all(c);
    const std::int64_t blocks =
        test::blocks_that_are_seen(c, test::AttentionInputs(c), key_block(c.head_dim, c.value_dim));
    for (const std::string& option : test::names_of_options(c)) reached[option] += blocks >= 2 ? 1 : 0;
  }
  if (test::quick()) return;
  for (const auto& [option, count] : reached) EXPECT_GE(count, 2) << option << ": hardly any case sees two blocks";
}

// Inputs may lie broadcast: a stride of 0 repeats a batch entry, a head or a row.
TEST(AttentionRandomTest, ReadsInputsThroughStridesOfZero) {
  test::Random random(1);
  const auto one_key = random.normal_tensor<4>({1, 19, 1, 8});
  const auto one_value = random.normal_tensor<4>({1, 19, 1, 8});
  const auto one_query = random.normal_tensor<4>({1, 1, 4, 8});
  const View<const float, 4> key(one_key.data(), {3, 19, 2, 8}, {0, 8, 0, 1});
  const View<const float, 4> value(one_value.data(), {3, 19, 2, 8}, {0, 8, 0, 1});
  const View<const float, 4> query(one_query.data(), {3, 21, 4, 8}, {0, 0, 8, 1});
  Tensor<float, 4> plain({3, 21, 4, 8});
  reference::attention<float>(query, key, value, plain, {.causal = Causal::top_left});
  for (const test::Route& route : test::engine_routes()) {
    SCOPED_TRACE(route.name());
    Tensor<float, 4> out(plain.shape());
    route(query, key, value, out, {.causal = Causal::top_left});
    // Both err by some 4 roundings of scores below 8 in size.
    EXPECT_TRUE(test::within(out.view(), plain.view(), 2 * 4 * 8 * test::kUnitRoundoff));
  }
}

// Averaged over heads, and of chosen rows only: the same numbers as all of them.
TEST(AttentionRandomTest, GivesProbabilitiesAveragedAndOfChosenRows) {
  const auto c =
      test::AttentionCase::parse("seed=5 B=2 Lq=23 Lk=37 Hq=6 Hkv=3 D=20 Dv=20 causal=bottom-right window=12,-1");
  const test::AttentionInputs in(c);
  const std::vector<std::int64_t> rows{22, 0, 7, 7};
  const auto count = static_cast<std::int64_t>(rows.size());
  for (const test::Route& route : test::engine_routes()) {
    SCOPED_TRACE(route.name());
    Results all(c);
    Tensor<float, 3> averaged({c.batch, c.query_length, c.key_length});
    AttentionOptions options = in.options;
    options.probabilities = {.per_head = all.probabilities, .averaged = averaged};
    route(in.query, in.key, in.value, all.out, options);

    Results some(c);
    Tensor<float, 4> chosen({c.batch, c.query_heads, count, c.key_length});
    Tensor<float, 3> chosen_averaged({c.batch, count, c.key_length});
    options.probabilities = {.per_head = chosen, .averaged = chosen_averaged, .rows = rows};
    route(in.query, in.key, in.value, some.out, options);

    EXPECT_TRUE(test::same_bits(some.out.view(), all.out.view()));
    for (std::int64_t b = 0; b < c.batch; ++b) {
      for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t i = rows[static_cast<std::size_t>(r)];
        for (std::int64_t j = 0; j < c.key_length; ++j) {
          double sum = 0;
          for (std::int64_t h = 0; h < c.query_heads; ++h) {
            EXPECT_EQ(chosen(b, h, r, j), all.probabilities(b, h, i, j));
            sum += all.probabilities(b, h, i, j);
          }
          // A sum of shares up to 1, six additions and a division.
          EXPECT_NEAR(averaged(b, i, j), sum / static_cast<double>(c.query_heads), 8 * test::kUnitRoundoff);
          EXPECT_EQ(chosen_averaged(b, r, j), averaged(b, i, j));
        }
      }
    }
  }
}

}  // namespace headlight::attention_semantics_random_test
