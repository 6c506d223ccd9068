// Networks by specification whose rows are spread over ranks have the bits of one process, forward and backward,
// whatever their blocks are.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/mpi.h"
#include "headlight/row_shards.h"
#include "layers/network_case.h"
#include "layers/shards.h"
#include "mpi/expect_error.h"
#include "mpi/ranks.h"
#include "support/compare.h"
#include "support/quick.h"

namespace headlight::mpi_network_test {

using test::held_by;
using test::row_of;
using test::Tokens;

constexpr std::int64_t kShards = 8;

// What a pass leaves of the rows that are held.
struct Results {
  std::vector<float> hidden;
  std::vector<std::vector<float>> shards;
};

template <class Number>
std::vector<Number> some_of(const RowShards& rows, const std::vector<Number>& whole, std::int64_t columns = 1) {
  std::vector<Number> some;
  for (const RowRun& run : rows.rows()) {
    const auto begin = whole.begin() + run.first * columns;
    some.insert(some.end(), begin, begin + run.count * columns);
  }
  return some;
}

Results pass(Engine& engine, Network& network, const Tokens& tokens, const std::vector<float>& gradient,
             RowShards& rows, const TrainingAttention& attention, Checkpoint checkpoint = Checkpoint::keep_linear) {
  SavedState saved(checkpoint, 0, attention);
  zero_gradients(network.parameters());
  const std::vector<std::int64_t> ids = some_of(rows, tokens.ids), positions = some_of(rows, tokens.positions),
                                  types = some_of(rows, tokens.token_types);
  const EncoderInput input = {.ids = ids, .positions = positions, .token_types = types, .offsets = tokens.offsets};
  const std::int64_t width = network.spec().width;
  std::vector<float> hidden(ids.size() * static_cast<std::size_t>(width));
  const std::vector<float> gradient_here = some_of(rows, gradient, width);
  network.forward(engine, input, View<float, 2>(hidden.data(), {rows.row_count(), width}), saved, {.seed = 4});
  network.backward(engine, input, saved, View<const float, 2>(gradient_here.data(), {rows.row_count(), width}));
  return {hidden, test::shards_of(engine, rows, network.parameters())};
}

void expect_same_bits(mpi::Group& group, NetworkSpec spec, test::Random& random,
                      const std::vector<std::int64_t>& lengths, Checkpoint checkpoint = Checkpoint::keep_linear) {
  spec.embedding.positions = spec.embedding.positions > 0 ? 400 : 0;
  spec.dropout = 0.1f;
  Network network(spec);
  randomize(network, random);
  network.set_training(true);
  const Tokens tokens(random, spec.embedding.vocabulary, lengths);
  std::vector<float> gradient(static_cast<std::size_t>(tokens.count() * network.spec().width));
  for (float& number : gradient) number = random.uniform();
  const RowShardsOptions options = {
      .length = tokens.count(), .shards = kShards, .block = 64, .offsets = tokens.offsets};
  Engine one({.threads = 1});
  RowShards all(network.parameters(), options);
  const Results whole = pass(one, network, tokens, gradient, all, ShardedAttention(all));
  const mpi::Run held = held_by(group.rank(), group.size(), kShards);
  RowShards rows(network.parameters(), options, held);
  const mpi::SequenceAttention attention(group, rows);
  Engine engine({.threads = 2});
  const Results here = pass(engine, network, tokens, gradient, rows, attention, checkpoint);
  EXPECT_TRUE(test::same_bits(row_of(here.hidden), row_of(some_of(rows, whole.hidden, network.spec().width))));
  for (std::size_t s = 0; s < here.shards.size(); ++s) {
    EXPECT_TRUE(test::same_bits(row_of(here.shards[s]), row_of(whole.shards[static_cast<std::size_t>(held.first) + s])))
        << "shard " << held.first << " + " << s;
  }
}

TEST(MpiNetwork, OfAnySpecification) {
  mpi::Group group(MPI_COMM_WORLD);
  test::Random random(6);
  for (std::int64_t n = 0; n < test::count<std::int64_t>(60, 12); ++n) {
    SCOPED_TRACE("specification " + std::to_string(n));
    const Checkpoint checkpoint = n % 3 == 0 ? Checkpoint::layer_input : Checkpoint::keep_linear;
    const NetworkSpec spec = test::draw_network(random);
    expect_same_bits(group, spec, random, {random.integer(1, 300), 1, random.integer(1, 200), 90}, checkpoint);
  }
}

// Sinks, a bias by distance and turned heads together; each kind of scaling, of which some depend on how long a
// sequence is that no rank holds alone.
TEST(MpiNetwork, WhatDependsOnTheWholeSequence) {
  mpi::Group group(MPI_COMM_WORLD);
  test::Random random(7);
  for (int kind = 0; kind <= static_cast<int>(RotaryScalingKind::proportional); ++kind) {
    SCOPED_TRACE("scaling " + std::to_string(kind));
    BlockSpec block;
    block.attention = {.heads = 4, .key_value_heads = 2, .head_dim = 8, .sinks = true};
    block.attention.softcap = 4;
    block.attention.relative_bias = {.buckets = 16, .max_distance = 100};
    block.attention.rotary = {.dims = 8};
    block.attention.rotary.scaling = {.kind = static_cast<RotaryScalingKind>(kind),
                                      .factor = 4,
                                      .original_length = 128,
                                      .short_factors = {1, 2, 3, 4},
                                      .long_factors = {4, 3, 2, 1}};
    block.feed_forward.hidden_width = 20;
    NetworkSpec spec = {.width = 16, .embedding = {.vocabulary = 30}};
    spec.blocks = {block, block};
    expect_same_bits(group, spec, random, {500});
    expect_same_bits(group, spec, random, {100, 260, 1, 300});
  }
}

// Self-attention of 256 rows of zeros, spread over the ranks.
class BiasedAttention {
 public:
  void operator()(const View<const float, 4>& bias) {
    AttentionOptions options;
    options.bias = bias;
    mpi::attention(group_, engine_, kWhole, share_, share_, share_, out_, options);
  }

  [[nodiscard]] int rank() const { return group_.rank(); }

 private:
  static constexpr AttentionShape kWhole = {.query_length = 256, .key_length = 256, .head_dim = 4, .value_dim = 4};
  mpi::Group group_{MPI_COMM_WORLD};
  Engine engine_{{.threads = 1}};
  Tensor<float, 4> share_{{1, mpi::plan(kWhole, {}, group_.rank(), group_.size()).query_rows, 1, 4}};
  Tensor<float, 4> out_{share_.shape()};
};

TEST(MpiNetwork, BiasesThatDifferAreToldOnAllRanks) {
  if (test::last_rank() == 0) GTEST_SKIP() << "there is no rest";
  BiasedAttention attend;
  Tensor<float, 1> table({511});
  const View<const float, 4> bias = {table.data() + 255, {1, 1, 256, 256}, {0, 0, -1, 1}};
  attend(bias);
  if (attend.rank() == test::last_rank()) table(7) = 1;
  test::expect_error([&] { attend(bias); }, test::last_rank(), "options.bias=[1, 1, 256, 256], digest");
}

// Sums by distance are those of the shards that a rank holds, which call no one else's memory their own.
TEST(MpiNetwork, SumsByDistanceFitTheSequence) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  const std::int64_t length = 64 * group.size(), count = 2 * length - 1;
  const mpi::Run held = held_by(group.rank(), group.size(), group.size());
  RowShards rows({}, {.length = length, .shards = group.size(), .block = 64}, held);
  const mpi::SequenceAttention attention(group, rows);
  const auto differentiate = [&](std::int64_t batch, const View<float, 3>& to) {
    const Tensor<float, 4> share({batch, rows.row_count(), 2, 4});
    const Tensor<float, 3> sums({batch, 2, rows.row_count()});
    attention.differentiate_distances(engine, share, share, share, share, sums, share, to, {});
  };
  Tensor<float, 3> dense({held.count, 2, count}), spaced({held.count, 2, count + 3});
  std::fill(dense.begin(), dense.end(), 1.0f);
  std::fill(spaced.begin(), spaced.end(), 1.0f);
  differentiate(1, dense);
  differentiate(1, {spaced.data(), dense.shape(), {2 * (count + 3), count + 3, 1}});
  for (const float number : dense) ASSERT_EQ(number, 0);
  for (std::int64_t n = 0; n < spaced.size(); ++n) ASSERT_EQ(spaced.data()[n], n % (count + 3) < count ? 0.0f : 1.0f);
  const auto refuses = [&](const View<float, 3>& to) {
    test::expect_error([&] { differentiate(1, to); }, 0, "mpi::SequenceAttention::differentiate_distances: distances");
  };
  refuses({dense.data(), {held.count, 2, count - 1}});
  refuses({dense.data(), {held.count + 1, 2, count}});
  refuses({dense.data(), {held.count, 1, count}});
  refuses({nullptr, {held.count, 2, count}});
}

// Ranks compare biases before they refuse them: nothing of these is read, which have less memory than one that tells
// distances.
TEST(MpiNetwork, OtherBiasesAreRefusedUnread) {
  BiasedAttention attend;
  const auto refuses = [&](const View<const float, 4>& bias) {
    test::expect_error([&] { attend(bias); }, 0, "expected none over ranks but one that tells distances alone");
  };
  const Tensor<float, 4> of_pairs({1, 1, 256, 256}), of_keys({1, 1, 1, 256}), of_rows({1, 1, 256, 1});
  const float* const last = &of_rows(0, 0, 255, 0);
  refuses(of_pairs.view());
  refuses(of_keys.view());
  refuses(of_rows.view());
  refuses({last, {1, 1, 256, 1}, {0, 0, -1, 1}});  // by rows alone
  refuses({of_keys.data(), {1, 1, 256, 256}, {0, 0, 0, 1}});
  refuses({of_keys.data(), {2, 1, 256, 256}, {0, 0, 0, 1}});
}

}  // namespace headlight::mpi_network_test
