// Weights are in memory once, wherever they came from, and have the same bits wherever they lie.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "layers/twins.h"
#include "ops/gemm/internal.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/random.h"

namespace headlight::test::weight_matrix_test {

using Rows = WeightMatrix::Rows;

// Ragged in every way: columns of a lane, a panel, more; depths of one block of K and of several.
constexpr std::array<std::array<std::int64_t, 2>, 6> kShapes = {
    {{1, 1}, {3, 5}, {48, 16}, {50, 33}, {97, 768}, {70, 1700}}};

bool same(const View<const float, 2>& a, const View<const float, 2>& b) { return same_bits(a, b); }

WeightMatrix with_values(const Tensor<float, 2>& values) {
  WeightMatrix matrix(values.shape());
  std::copy(values.begin(), values.end(), matrix.own().data);
  return matrix;
}

using WeightMatrixOnEachIsa = EachIsa;
HEADLIGHT_ON_EVERY_ISA(WeightMatrixOnEachIsa);

TEST_P(WeightMatrixOnEachIsa, IsReadBackFromPanelsToTheBit) {
  Engine engine(options());
  Random random(1);
  for (const auto& shape : kShapes) {
    const auto values = random.normal_tensor<2>(shape);
    const PackedMatrix packed(engine, values, Transpose::yes);
    for (std::int64_t first = 0; first < shape[0]; first += 7) {
      const std::int64_t count = std::min<std::int64_t>(9, shape[0] - first);
      Tensor<float, 2> rows({count, shape[1]});
      ops::unpack_columns(packed, first, count, rows.data());
      const View<const float, 2> expected(&values(first, 0), rows.shape());
      EXPECT_TRUE(same(rows, expected)) << shape[0] << " x " << shape[1] << ", rows from " << first;
    }
  }
}

TEST_P(WeightMatrixOnEachIsa, KeepsPanelsAloneUntilItsRowsAreAskedFor) {
  Engine engine(options());
  Random random(2);
  for (const auto& shape : kShapes) {
    const auto values = random.normal_tensor<2>(shape);
    WeightMatrix matrix = with_values(values);
    ASSERT_NE(matrix.plain().data, nullptr);
    const PackedMatrix* const packed = matrix.packed(engine, matrix.all());
    ASSERT_NE(packed, nullptr);
    EXPECT_EQ(matrix.packed(engine, matrix.all()), packed);
    EXPECT_EQ(matrix.plain().data, nullptr);
    Tensor<float, 2> read(shape);
    matrix.read(matrix.all(), read.data());
    EXPECT_TRUE(same(read, values));
    EXPECT_EQ(matrix.plain().data, nullptr);
    EXPECT_TRUE(same(matrix.shown(), values));
    EXPECT_EQ(matrix.plain().data, matrix.shown().data) << "what was shown stays";
  }
}

TEST_P(WeightMatrixOnEachIsa, KeepsItsRowsUntilPanelsHoldAllOfThem) {
  Engine engine(options());
  Random random(3);
  const auto values = random.normal_tensor<2>({50, 33});
  WeightMatrix matrix = with_values(values);
  (void)matrix.packed(engine, {0, 20});
  EXPECT_NE(matrix.plain().data, nullptr);
  (void)matrix.packed(engine, {20, 30});
  EXPECT_EQ(matrix.plain().data, nullptr);
  // Rows of both, for another product.
  const PackedMatrix* const across = matrix.packed(engine, {13, 17});
  Tensor<float, 2> rows({17, 33});
  ops::unpack_columns(*across, 0, 17, rows.data());
  EXPECT_TRUE(same(rows, View<const float, 2>(&values(13, 0), rows.shape())));
  EXPECT_TRUE(same(matrix.own(), values));
}

TEST(WeightMatrix, PacksOneInstructionSetFromThePanelsOfAnother) {
  Random random(4);
  const auto values = random.normal_tensor<2>({70, 1700});
  WeightMatrix matrix = with_values(values);
  for (const Isa isa : available_isas()) {
    Engine engine({.threads = 1, .isa = isa});
    Tensor<float, 2> rows(values.shape());
    ops::unpack_columns(*matrix.packed(engine, matrix.all()), 0, 70, rows.data());
    EXPECT_TRUE(same(rows, values)) << name(isa);
    EXPECT_EQ(matrix.plain().data, nullptr);
  }
}

TEST(WeightMatrix, WithAGradientKeepsItsRows) {
  Engine engine({.threads = 1});
  WeightMatrix matrix({4, 3});
  matrix.make_gradient(true);
  (void)matrix.packed(engine, matrix.all());
  EXPECT_NE(matrix.plain().data, nullptr);
  EXPECT_FALSE(matrix.may_move());
  matrix.make_gradient(false);
  matrix.set_open(true);
  EXPECT_EQ(matrix.packed(engine, matrix.all()), nullptr);
}

// Parts lent by three owners, as a file has query, key and value.
TEST(WeightMatrix, ReadsPartsWhereTheyLie) {
  Engine engine({.threads = 1});
  Random random(5);
  const auto values = random.normal_tensor<2>({30, 17});
  WeightMatrix matrix(values.shape());
  std::vector<std::shared_ptr<std::vector<float>>> owners;
  std::vector<WeightMatrix::Lent> parts;
  for (const Rows rows : {Rows{0, 8}, Rows{8, 3}, Rows{11, 19}}) {
    const float* const begin = &values(rows.first, 0);
    owners.push_back(std::make_shared<std::vector<float>>(begin, begin + rows.count * 17));
    parts.push_back({rows, {StorageFormat::float32, owners.back()->data(), rows.count * 17}, owners.back()});
  }
  matrix.borrow(std::move(parts));
  EXPECT_TRUE(matrix.is_borrowed());
  for (const Rows rows : {Rows{0, 30}, Rows{8, 3}, Rows{5, 20}}) {
    Tensor<float, 2> read({rows.count, 17});
    ops::unpack_columns(*matrix.packed(engine, rows), 0, rows.count, read.data());
    EXPECT_TRUE(same(read, View<const float, 2>(&values(rows.first, 0), read.shape())));
  }
  EXPECT_EQ(owners[1].use_count(), 2) << "they are kept, though panels hold them all";
  EXPECT_TRUE(same(matrix.own(), values));
  EXPECT_FALSE(matrix.is_borrowed());
  EXPECT_EQ(owners[1].use_count(), 1);
}

// Whoever comes first packs, whatever the others ask for meanwhile.
TEST(WeightMatrix, SameBitsForThreadsThatComeAtOnce) {
  Random random(6);
  const auto x = random.normal_tensor<2>({3, 65});
  const auto values = random.normal_tensor<2>({70, 65});
  for (int round = 0; round < 20; ++round) {
    Linear layer(65, 70, false);
    layer.load({{"weight", {{70, 65}, {values.data(), static_cast<std::size_t>(values.size())}}}});
    const std::vector<Isa> isas = available_isas();
    std::vector<Tensor<float, 2>> results;
    for (std::size_t thread = 0; thread < 6; ++thread) results.emplace_back(Tensor<float, 2>::Shape{3, 70});
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < results.size(); ++thread) {
      threads.emplace_back([&, thread] {
        Engine engine({.threads = 1, .isa = isas[thread % isas.size()]});
        layer.forward(engine, x, results[thread]);
        if (thread == 5) (void)layer.weights();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t thread = 0; thread < results.size(); ++thread) {
      Engine engine({.threads = 1, .isa = isas[thread % isas.size()]});
      Tensor<float, 2> expected({3, 70});
      gemm(engine, x, values, expected, {.transpose_b = Transpose::yes});
      EXPECT_TRUE(same(results[thread], expected)) << "thread " << thread;
    }
    EXPECT_TRUE(same(View<const float, 2>(layer.weights().at("weight").values.data(), {70, 65}), values));
  }
}

// The same of one instruction set: parts are packed, read and shown while the rows they come from go.
TEST(WeightMatrix, SameBitsForThreadsThatAskForDifferentRows) {
  Random random(11);
  const auto values = random.normal_tensor<2>({70, 65});
  for (int round = 0; round < 20; ++round) {
    WeightMatrix matrix = with_values(values);
    const std::array<Rows, 4> asked = {Rows{0, 70}, Rows{0, 20}, Rows{20, 50}, Rows{11, 30}};
    std::vector<Tensor<float, 2>> results;
    for (const Rows rows : asked) results.emplace_back(Tensor<float, 2>::Shape{rows.count, 65});
    Tensor<float, 2> read(values.shape());
    View<const float, 2> shown;
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < asked.size(); ++thread) {
      threads.emplace_back([&, thread] {
        Engine engine({.threads = 1});
        const PackedMatrix* const packed = matrix.packed(engine, asked[thread]);
        ops::unpack_columns(*packed, 0, asked[thread].count, results[thread].data());
      });
    }
    threads.emplace_back([&] { matrix.read(matrix.all(), read.data()); });
    threads.emplace_back([&] { shown = matrix.shown(); });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t thread = 0; thread < asked.size(); ++thread) {
      const View<const float, 2> expected(&values(asked[thread].first, 0), results[thread].shape());
      EXPECT_TRUE(same(results[thread], expected)) << "thread " << thread;
    }
    EXPECT_TRUE(same(read, values));
    EXPECT_TRUE(same(shown, values));
  }
}

// A pool of one thread that does something else before the tasks it is given, as pools do while they wait.
struct DistractedPool {
  std::function<void()> something_else;

  static int worker_count(void*) { return 2; }
  static bool inside_worker(void*) { return false; }
  static void* run(void* context, int count, void (*task)(void*, int), void* argument) {
    const auto first = std::exchange(static_cast<DistractedPool*>(context)->something_else, nullptr);
    if (first) first();
    for (int index = 0; index < count; ++index) task(argument, index);
    return nullptr;
  }
  static void wait(void*, void*) {}
};

TEST(WeightMatrix, IsPackedByAPoolThatComputesWithItMeanwhile) {
  Random random(12);
  const auto values = random.normal_tensor<2>({512, 512});
  WeightMatrix matrix = with_values(values);
  Engine other({.threads = 1});
  const PackedMatrix* meanwhile = nullptr;
  DistractedPool pool{[&] { meanwhile = matrix.packed(other, matrix.all()); }};
  const Executor executor = {&pool, DistractedPool::worker_count, DistractedPool::inside_worker, DistractedPool::run,
                             DistractedPool::wait};
  Engine engine({.threads = 2, .executor = &executor});
  const PackedMatrix* const packed = matrix.packed(engine, matrix.all());
  ASSERT_NE(meanwhile, nullptr) << "packing was no work for two workers";
  EXPECT_EQ(packed, meanwhile) << "who comes first wins";
  EXPECT_TRUE(same(matrix.shown(), values));
}

struct Owned {
  explicit Owned(const Layer& layer) {
    for (const auto& [name, weight] : layer.weights()) {
      auto values = std::make_shared<std::vector<float>>(weight.values.begin(), weight.values.end());
      weights[name] = {weight.shape, *values, values};
      owners.emplace(name, std::move(values));
    }
  }
  Weights weights;
  std::map<std::string, std::shared_ptr<std::vector<float>>> owners;
};

// Weights of 16 bits, whose numbers float32 has, too: matrices stay where they are, vectors are widened.
TEST(BorrowedWeights, Of16BitsGiveALayerTheBitsOfFloats) {
  Engine engine({.threads = 1});
  Random random(9);
  const auto x = random.normal_tensor<2>({5, 12});
  const auto numbers = random.normal_tensor<2>({7, 12});
  const auto owner = std::make_shared<std::vector<BFloat16>>();
  std::vector<float> floats;
  for (const float number : numbers) floats.push_back(static_cast<float>(owner->emplace_back(number)));
  const WeightView weight = {.shape = {7, 12}, .owner = owner, .stored = {StorageFormat::bfloat16, owner->data(), 84}};
  const WeightView bias = {.shape = {7}, .stored = {StorageFormat::bfloat16, owner->data(), 7}};

  Linear lent(12, 7), copied(12, 7), converted(12, 7);
  lent.load({{"weight", weight}, {"bias", bias}});
  EXPECT_EQ(owner.use_count(), 3) << "of this test, of `weight` and of the layer";
  copied.load({{"weight", {.shape = {7, 12}, .stored = weight.stored}}, {"bias", bias}});
  EXPECT_EQ(owner.use_count(), 3);
  converted.load({{"weight", {{7, 12}, floats}}, {"bias", {{7}, std::span(floats).first(7)}}});
  Tensor<float, 2> expected({5, 7}), y({5, 7});
  for (const NumberType precision : kNumberTypes) {
    converted.set_precision(precision);
    converted.forward(engine, x, expected);
    for (Linear* layer : {&lent, &copied}) {
      layer->set_precision(precision);
      layer->forward(engine, x, y);
      EXPECT_TRUE(same_bits(y, expected)) << name(precision);
    }
  }
  for (const Linear* layer : {&lent, &copied}) {
    EXPECT_TRUE(std::ranges::equal(layer->weights().at("weight").values, floats));
    EXPECT_TRUE(std::ranges::equal(layer->weights().at("bias").values, std::span(floats).first(7)));
  }
}

TEST(BorrowedWeights, GiveALayerTheBitsOfACopy) {
  Engine engine({.threads = 1});
  Random random(7);
  const auto x = random.normal_tensor<3>({2, 5, 12}), memory = random.normal_tensor<3>({2, 4, 12});
  TransformerDecoderLayer copied({.width = 12, .heads = 3}), borrowed({.width = 12, .heads = 3});
  randomize(copied, random);
  const Owned source(copied);
  borrowed.load(source.weights);
  Tensor<float, 3> expected(x.shape()), y(x.shape());
  copied.forward(engine, x, memory, expected);
  borrowed.forward(engine, x, memory, y);
  EXPECT_TRUE(same_bits(y, expected));
  for (const auto& [name, weight] : borrowed.weights()) {
    EXPECT_TRUE(std::ranges::equal(weight.values, *source.owners.at(name))) << name;
    const bool is_matrix = weight.shape.size() == 2;
    EXPECT_EQ(weight.values.data() == source.owners.at(name)->data(), is_matrix) << name << " lies where it lay";
  }
}

TEST(BorrowedWeights, AreCopiedByWhoeverMayWrite) {
  Random random(8);
  Encoder from({.vocabulary = 11, .max_positions = 6, .width = 8, .heads = 2, .layers = 1});
  randomize(from, random);
  const Owned source(from);
  Encoder encoder(from.options());
  encoder.load(source.weights);
  const auto& table = source.owners.at("word_embeddings.weight");
  EXPECT_EQ(table.use_count(), 3) << "the list, the weights, the layer";
  for (const Parameter& parameter : encoder.parameters()) {
    EXPECT_TRUE(std::ranges::equal(parameter.values, *source.owners.at(parameter.name))) << parameter.name;
    parameter.values.front() += 1.0f;
  }
  EXPECT_EQ(table.use_count(), 2);
  EXPECT_EQ(source.owners.at("norm.weight")->front() + 1.0f, encoder.weights().at("norm.weight").values.front());
  // What somebody holds stays where it is: now a load copies.
  const float* const held = encoder.parameters().front().values.data();
  encoder.load(source.weights);
  EXPECT_EQ(encoder.parameters().front().values.data(), held);
  EXPECT_EQ(table.use_count(), 2);
}

TEST(BorrowedWeights, OfALayerInTrainingAreCopied) {
  Random random(9);
  Linear from(4, 3), to(4, 3);
  randomize(from, random);
  const Owned source(from);
  to.set_training(true);
  to.load(source.weights);
  EXPECT_EQ(source.owners.at("weight").use_count(), 2);
  EXPECT_TRUE(std::ranges::equal(to.weights().at("weight").values, *source.owners.at("weight")));
}

// What weights() showed stays readable, and holds the numbers until these change: wherever they lay, and whatever
// changed them.
TEST(BorrowedWeights, ShownBeforeAChangeStayReadable) {
  Random random(13);
  Linear first(4, 3), second(4, 3);
  randomize(first, random);
  randomize(second, random);
  const auto numbers = [](const WeightView& view) {
    return std::vector<float>(view.values.begin(), view.values.end());
  };
  const std::vector<float> old = numbers(first.weights().at("weight")), next = numbers(second.weights().at("weight"));
  const std::map<std::string, std::function<void(Linear&)>> changes = {
      {"load", [&](Linear& layer) { layer.load(second.weights()); }},
      {"initialize", [](Linear& layer) { layer.initialize(3); }},
      {"training", [](Linear& layer) { layer.set_training(true), layer.parameters().front().values.front() += 1; }}};
  for (const auto& [name, change] : changes) {
    Linear layer(4, 3);
    std::map<std::string, std::weak_ptr<std::vector<float>>> owners;
    {
      const Owned source(first);
      layer.load(source.weights);
      for (const auto& [parameter, owner] : source.owners) owners[parameter] = owner;
    }
    const WeightView shown = layer.weights().at("weight");
    EXPECT_EQ(numbers(shown), old) << name;
    change(layer);
    EXPECT_FALSE(owners.at("weight").expired()) << name;
    EXPECT_EQ(numbers(shown), old) << name << ": read where they were lent";
    EXPECT_NE(numbers(layer.weights().at("weight")), old) << name << ": asked again";
    if (name == "load") {
      EXPECT_EQ(numbers(layer.weights().at("weight")), next);
    }
  }
}

TEST(WeightMatrix, ThatIsNoneTakesEveryCall) {
  Engine engine({.threads = 1});
  WeightMatrix none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.rows() + none.columns(), 0);
  EXPECT_EQ(none.packed(engine, none.all()), nullptr);
  EXPECT_EQ(none.plain().data, nullptr);
  EXPECT_EQ(none.shown().data, nullptr);
  EXPECT_EQ(none.own().data, nullptr);
  EXPECT_EQ(none.own_for_good().data, nullptr);
  EXPECT_TRUE(none.may_move());
  none.borrow({});
  EXPECT_FALSE(none.is_borrowed());
  none.read(none.all(), nullptr);
  none.set_open(true);
  none.make_gradient(true);
  EXPECT_EQ(none.gradient().data, nullptr);
}

// weights() of a layer that borrowed, given back to it.
TEST(BorrowedWeights, LoadFromThemselves) {
  Random random(10);
  Linear from(4, 3), to(4, 3);
  randomize(from, random);
  const std::vector<float> expected(from.weights().at("weight").values.begin(),
                                    from.weights().at("weight").values.end());
  to.load(Owned(from).weights);
  to.load(to.weights());
  EXPECT_TRUE(std::ranges::equal(to.weights().at("weight").values, expected));
}

}  // namespace headlight::test::weight_matrix_test
