// Attention over parts of the keys, put together: its twin on ragged sizes, guard pages, parts without keys, places of
// its own and of a part, any number of threads, and what is refused.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "headlight/attention.h"
#include "headlight/attention_merge.h"
#include "reference/attention.h"
#include "reference/attention_merge.h"
#include "support/allocation_counter.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/stored.h"
#include "support/workers.h"

namespace headlight::test::attention_merge_test {

class AttentionMergeTest : public EachIsa {};
HEADLIGHT_ON_EVERY_ISA(AttentionMergeTest);

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Results {
  Tensor<float, 4> out;
  Tensor<float, 3> log_sum_exp;

  explicit Results(const View<const float, 4>& like)
      : out(like.shape), log_sum_exp({like.extent(0), like.extent(2), like.extent(1)}) {}
  [[nodiscard]] AttentionPart part() const { return {out, log_sum_exp}; }
};

// `count` parts of one shape. Log-sum-exps apart by some units, so that no part drowns the others.
std::vector<Results> draw(Random& random, std::int64_t count, const View<const float, 4>::Shape& shape) {
  std::vector<Results> drawn;
  for (std::int64_t p = 0; p < count; ++p) {
    Results& part = drawn.emplace_back(View<const float, 4>(nullptr, shape));
    for (float& element : part.out) element = random.normal();
    for (float& element : part.log_sum_exp) element = 3 + 2 * random.normal();
  }
  return drawn;
}

// As the twin takes them, which are floats.
std::vector<reference::AttentionPart> as_floats(const std::vector<AttentionPart>& parts) {
  std::vector<reference::AttentionPart> floats;
  for (const AttentionPart& part : parts) {
    floats.push_back({{static_cast<const float*>(part.out.data), part.out.shape, part.out.strides}, part.log_sum_exp});
  }
  return floats;
}

std::vector<AttentionPart> parts_of(const std::vector<Results>& results) {
  std::vector<AttentionPart> parts;
  for (const Results& result : results) parts.push_back(result.part());
  return parts;
}

// Rows in memory of their own between guard pages, each part's and the result's.
TEST_P(AttentionMergeTest, MergesRaggedRows) {
  Engine engine(options());
  Random random(1);
  for (const std::int64_t value_dim : kRowLengths) {
    for (const Against side : kBothSides) {
      const std::int64_t count = random.integer(1, 35), heads = random.integer(1, 3), queries = random.integer(1, 3);
      SCOPED_TRACE(testing::Message() << count << " parts, " << heads << " heads of " << value_dim);
      const std::vector<Results> drawn = draw(random, count, {1, queries, heads, value_dim});
      std::vector<std::unique_ptr<Guarded<float>>> memory;
      std::vector<AttentionPart> parts = parts_of(drawn);
      for (std::size_t p = 0; p < parts.size(); ++p) {
        auto& guarded = *memory.emplace_back(std::make_unique<Guarded<float>>(queries * heads * value_dim, side));
        std::copy_n(drawn[p].out.data(), queries * heads * value_dim, guarded.data());
        parts[p].out.data = guarded.data();
      }
      const Guarded<float> place(queries * heads * value_dim, side);
      const View<float, 4> out = place.view<4>({1, queries, heads, value_dim});
      Tensor<float, 3> log_sum_exp({1, heads, queries}), plain_log_sum_exp(log_sum_exp.shape());
      merge_attention(engine, parts, out, log_sum_exp);

      Tensor<double, 4> truth(out.shape);
      Tensor<double, 3> true_log_sum_exp(log_sum_exp.shape());
      Tensor<float, 4> plain(out.shape);
      reference::merge_attention<double>(as_floats(parts), truth, true_log_sum_exp);
      reference::merge_attention<float>(as_floats(parts), plain, plain_log_sum_exp);
      EXPECT_TRUE(at_most_twice_the_plain_error(View<const float, 4>(out), View<const float, 4>(plain),
                                                View<const double, 4>(truth)));
      EXPECT_TRUE(at_most_twice_the_plain_error(log_sum_exp.view(), plain_log_sum_exp.view(), true_log_sum_exp.view()));
    }
  }
}

// Whatever the types of parts and result: the twin's numbers, and the bits of floats over the widened parts, rounded
// once.
TEST_P(AttentionMergeTest, MergesPartsOfAnyTypeWithTheBitsOfFloatsRoundedOnce) {
  Engine engine(options());
  Random random(8);
  for (const std::int64_t value_dim : kRowLengths) {
    for (const NumberType type : kStoredTypes) {
      const std::int64_t count = random.integer(1, 9), heads = random.integer(1, 3), queries = random.integer(1, 3);
      SCOPED_TRACE(testing::Message() << count << " parts, " << heads << " heads of " << value_dim << " into "
                                      << name(type));
      std::vector<Results> drawn = draw(random, count, {1, queries, heads, value_dim});
      std::vector<Stored> stored;
      stored.reserve(drawn.size());
      std::vector<AttentionPart> parts;
      for (Results& result : drawn) {
        const NumberType own = kStoredTypes[static_cast<std::size_t>(random.integer(0, 2))];
        parts.push_back({stored.emplace_back(own, result.out).view(), result.log_sum_exp});
        result.out = rounded_to(own, result.out);
      }
      Results wide(drawn[0].out);
      merge_attention(engine, parts_of(drawn), wide.out, wide.log_sum_exp);
      Stored out(type, drawn[0].out.shape());
      Tensor<float, 3> log_sum_exp(wide.log_sum_exp.shape());
      merge_attention(engine, parts, out.view(), log_sum_exp);
      EXPECT_TRUE(same_bits(out.floats(), rounded_to(type, wide.out)));
      EXPECT_TRUE(same_bits(log_sum_exp, wide.log_sum_exp));

      Results plain(wide.out);
      Tensor<double, 4> truth(wide.out.shape());
      Tensor<double, 3> true_log_sum_exp(log_sum_exp.shape());
      reference::merge_attention<double>(as_floats(parts_of(drawn)), truth, true_log_sum_exp);
      reference::merge_attention<float>(as_floats(parts_of(drawn)), plain.out.view(), plain.log_sum_exp.view());
      EXPECT_TRUE(at_most_twice_the_plain_error(wide.out.view(), plain.out.view(), truth.view()));

      // In the place of a part of the same type.
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].out.type != type) continue;
        merge_attention(engine, parts, stored[p].view());
        EXPECT_TRUE(same_bits(stored[p].floats(), out.floats())) << "in the place of part " << p;
        break;
      }
    }
  }
}

// Causal attention over 70 keys in pieces, each at its place, against all of them at once: a piece that begins behind
// a row's position has nothing for it.
TEST_P(AttentionMergeTest, PiecesOfTheKeysGiveAttentionOverAll) {
  Engine engine(options());
  Random random(2);
  const Tensor<float, 4> query = random.normal_tensor<4>({2, 33, 4, 24});
  const Tensor<float, 4> key = random.normal_tensor<4>({2, 70, 2, 24}), value = random.normal_tensor<4>({2, 70, 2, 20});
  const View<const float, 4> keys = key, values = value;
  AttentionOptions how;
  how.causal = Causal::top_left;
  how.query_start = 0;

  std::vector<Results> results;
  constexpr std::array<std::int64_t, 5> kCuts = {0, 1, 17, 18, 70};
  for (std::size_t piece = 0; piece + 1 < kCuts.size(); ++piece) {
    const std::int64_t first = kCuts[piece], count = kCuts[piece + 1] - first;
    Results& result = results.emplace_back(View<const float, 4>(nullptr, {2, 33, 4, 20}));
    AttentionOptions options = how;
    options.key_start = first;
    options.log_sum_exp = result.log_sum_exp;
    attention(engine, query, {keys.data + first * keys.stride(1), {2, count, 2, 24}, keys.strides},
              {values.data + first * values.stride(1), {2, count, 2, 20}, values.strides}, result.out, options);
  }
  Results merged(results.front().out);
  merge_attention(engine, parts_of(results), merged.out, merged.log_sum_exp);

  Tensor<double, 4> truth(merged.out.shape());
  Tensor<double, 3> true_log_sum_exp(merged.log_sum_exp.shape());
  reference::attention<double>(converted<double>(query), converted<double>(key), converted<double>(value), truth, how,
                               {.log_sum_exp = true_log_sum_exp});
  Tensor<float, 4> plain(merged.out.shape());
  Tensor<float, 3> plain_log_sum_exp(merged.log_sum_exp.shape());
  reference::attention<float>(query, key, value, plain, how, {.log_sum_exp = plain_log_sum_exp});
  EXPECT_TRUE(at_most_twice_the_plain_error(merged.out.view(), plain.view(), truth.view()));
  EXPECT_TRUE(
      at_most_twice_the_plain_error(merged.log_sum_exp.view(), plain_log_sum_exp.view(), true_log_sum_exp.view()));
}

TEST_P(AttentionMergeTest, OnePartComesBackToTheBitAndMayBeTheResult) {
  Engine engine(options());
  Random random(3);
  std::vector<Results> drawn = draw(random, 3, {2, 5, 3, 37});
  Results merged(drawn[0].out);
  merge_attention(engine, std::vector<AttentionPart>{drawn[0].part()}, merged.out, merged.log_sum_exp);
  EXPECT_TRUE(same_bits(merged.out, drawn[0].out));
  EXPECT_TRUE(same_bits(merged.log_sum_exp, drawn[0].log_sum_exp));

  const std::vector<AttentionPart> parts = parts_of(drawn);
  merge_attention(engine, parts, merged.out, merged.log_sum_exp);
  merge_attention(engine, parts, drawn[1].out, drawn[2].log_sum_exp);
  EXPECT_TRUE(same_bits(drawn[1].out, merged.out)) << "in place";
  EXPECT_TRUE(same_bits(drawn[2].log_sum_exp, merged.log_sum_exp)) << "in place";
}

TEST_P(AttentionMergeTest, PartsWithoutKeysAreNotRead) {
  Engine engine(options());
  Random random(4), again(4);
  std::vector<Results> drawn = draw(random, 3, {1, 4, 2, 19});
  const std::vector<Results> before = draw(again, 3, {1, 4, 2, 19});
  const Results& kept = before[1];
  for (const std::size_t p : {std::size_t{0}, std::size_t{2}}) {
    std::ranges::fill(drawn[p].out, std::nanf(""));
    std::ranges::fill(drawn[p].log_sum_exp, -kInfinity);
  }
  Results merged(kept.out);
  merge_attention(engine, parts_of(drawn), merged.out, merged.log_sum_exp);
  EXPECT_TRUE(same_bits(merged.out, kept.out));
  EXPECT_TRUE(same_bits(merged.log_sum_exp, kept.log_sum_exp));

  std::ranges::fill(drawn[1].log_sum_exp, -kInfinity);
  merge_attention(engine, parts_of(drawn), merged.out, merged.log_sum_exp);
  for (const float element : merged.out) EXPECT_EQ(element, 0.0f);
  for (const float element : merged.log_sum_exp) EXPECT_EQ(element, -kInfinity);

  std::ranges::fill(drawn[1].log_sum_exp, std::nanf(""));
  merge_attention(engine, parts_of(drawn), merged.out, merged.log_sum_exp);
  for (const float element : merged.out) EXPECT_TRUE(std::isnan(element));
  for (const float element : merged.log_sum_exp) EXPECT_TRUE(std::isnan(element));
}

// Sums far outside what exp() can take, and a part that adds nothing.
TEST_P(AttentionMergeTest, TakesSumsOfAnySize) {
  Engine engine(options());
  Random random(5);
  for (const float size : {-3e38f, -1e4f, 1e4f, 3e38f}) {
    std::vector<Results> drawn = draw(random, 2, {1, 3, 1, 5});
    std::ranges::fill(drawn[0].log_sum_exp, size);
    std::ranges::fill(drawn[1].log_sum_exp, -3.3e38f);
    Results merged(drawn[0].out);
    merge_attention(engine, parts_of(drawn), merged.out, merged.log_sum_exp);
    EXPECT_TRUE(same_bits(merged.out, drawn[0].out)) << size;
    EXPECT_TRUE(same_bits(merged.log_sum_exp, drawn[0].log_sum_exp)) << size;
  }
}

TEST_P(AttentionMergeTest, GivesTheSameBitsOnAnyNumberOfThreadsAndForEveryRow) {
  Random random(6);
  const std::vector<Results> drawn = draw(random, 5, {3, 130, 7, 37});
  Engine one(options(1));
  Results alone(drawn[0].out);
  merge_attention(one, parts_of(drawn), alone.out, alone.log_sum_exp);
  for (const int threads : {2, 3, 5}) {
    Engine engine(options(threads));
    wait_for_workers(engine);
    Results merged(drawn[0].out);
    const std::vector<AttentionPart> parts = parts_of(drawn);
    merge_attention(engine, parts, merged.out, merged.log_sum_exp);
    const AllocationCounter counter;
    merge_attention(engine, parts, merged.out, merged.log_sum_exp);
    const std::int64_t allocations = counter.count();
    EXPECT_EQ(allocations, 0) << threads;
    EXPECT_TRUE(same_bits(merged.out, alone.out)) << threads;
    EXPECT_TRUE(same_bits(merged.log_sum_exp, alone.log_sum_exp)) << threads;
  }
}

TEST(AttentionMerge, RefusesWhatDoesNotFit) {
  Engine engine;
  Random random(7);
  const std::vector<Results> drawn = draw(random, 2, {1, 3, 2, 4});
  std::vector<AttentionPart> parts = parts_of(drawn);
  Results merged(drawn[0].out);
  const auto message = [&](View<float, 4> out, View<float, 3> log_sum_exp) {
    return refusal([&] { merge_attention(engine, parts, out, log_sum_exp); });
  };
  const auto says = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  EXPECT_TRUE(says(refusal([&] { merge_attention(engine, {}, merged.out); }), "parts is empty"));
  EXPECT_TRUE(says(message({}, {}), "out"));

  parts[1].log_sum_exp = {};
  EXPECT_TRUE(says(message(merged.out, {}), "parts[1].log_sum_exp"));
  parts[1] = drawn[1].part();
  parts[1].out.shape[3] = 3;
  EXPECT_TRUE(says(message(merged.out, {}), "parts[1].out"));
  parts[1] = drawn[1].part();

  parts[1].out.type = NumberType::int8;
  EXPECT_TRUE(says(message(merged.out, {}), "parts[1].out has type int8"));
  parts[1] = drawn[1].part();
  const MutableTypedView<4> integers{NumberType::int4, merged.out.data(), merged.out.shape()};
  EXPECT_TRUE(says(refusal([&] { merge_attention(engine, parts, integers); }), "out has type int4"));
  // The same memory in another type is no part's place.
  const MutableTypedView<4> halves{NumberType::float16, const_cast<float*>(drawn[0].out.data()), drawn[0].out.shape()};
  EXPECT_TRUE(says(refusal([&] { merge_attention(engine, parts, halves); }), "out overlaps parts[0].out"));

  Tensor<float, 3> turned({1, 3, 2});
  EXPECT_TRUE(says(message(merged.out, turned), "log_sum_exp"));

  // A result that begins one row behind the part in the same memory would be read after it was written.
  Tensor<float, 4> long_enough({1, 4, 2, 4});
  View<float, 4> later = long_enough;
  later.shape = merged.out.shape();
  parts[0].out = later;
  later.data += later.stride(1);
  EXPECT_TRUE(says(message(later, {}), "parts[0].out"));
  EXPECT_EQ(message(merged.out, merged.log_sum_exp), "");
}

}  // namespace headlight::test::attention_merge_test
