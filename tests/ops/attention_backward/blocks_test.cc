// attention_backward() over two and three blocks of keys, every option at random: query gradients are handed from block
// to block there, and gradients of a bias added up over several.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "kernels/kernels.h"
#include "ops/attention_backward/plan.h"
#include "support/backward_problem.h"
#include "support/quick.h"

namespace headlight::attention_backward_blocks_test {

using test::AttentionCase;

Engine engine_of(Isa isa) {
  EngineOptions options;
  options.isa = isa;
  options.threads = 2;
  return Engine(options);
}

// Keys of a block on the instruction set that has the largest.
std::int64_t key_block(std::int64_t head_dim, std::int64_t value_dim) {
  std::int64_t largest = 0;
  for (const Isa isa : available_isas()) {
    const Engine engine = engine_of(isa);
    const ops::AttentionSizes sizes{1, 64, 64, 1, 1, 1, head_dim, value_dim};
    const auto plan = ops::plan_attention_backward(engine, kernels::attention_kernels(isa), sizes);
    largest = std::max(largest, plan.key_block);
  }
  return largest;
}

void expect_close(test::BackwardProblem& problem) {
  const test::GradientPromise promise(problem);
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(name(isa));
    Engine engine = engine_of(isa);
    promise.expect_kept_by(problem.both(engine));
  }
}

TEST(AttentionBackwardBlocks, EveryOptionAtRandom) {
  const int cases = test::count(80, 12);
  // How many cases with an option saw two blocks of keys, and how many three.
  std::map<std::string, int> two, three;
  for (int seed = 0; seed < cases && !HasFailure(); ++seed) {
    const AttentionCase c = test::random_case_of_several_blocks(static_cast<std::uint64_t>(seed), key_block);
    SCOPED_TRACE(c.line());
    test::BackwardProblem problem(c);
    expect_close(problem);
    const std::int64_t blocks = test::blocks_that_are_seen(c, problem.in, key_block(c.head_dim, c.value_dim));
    for (const std::string& option : test::names_of_options(c)) {
      two[option] += blocks >= 2 ? 1 : 0;
      three[option] += blocks >= 3 ? 1 : 0;
    }
  }
  if (test::quick()) return;
  for (const auto& [option, count] : two) EXPECT_GE(count, 2) << option << ": hardly any case sees two blocks";
  for (const auto& [option, count] : three) EXPECT_GE(count, 1) << option << ": no case sees three blocks";
}

}  // namespace headlight::attention_backward_blocks_test
