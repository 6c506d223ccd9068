#include "reference/embedding.h"

#include <memory>
#include <vector>

#include "headlight/normalization.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::embedding_test {

using EmbeddingTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(EmbeddingTest);

TEST_P(EmbeddingTest, AddsTheRowsOfEveryTable) {
  Engine engine(options());
  Random random(1);
  constexpr std::int64_t kTokens = 11;
  for (const std::int64_t columns : kRowLengths) {
    for (std::size_t tables = 1; tables <= 8; ++tables) {
      const Against side = kBothSides[tables % 2];
      std::vector<std::unique_ptr<GuardedRows>> memory;
      std::vector<std::vector<std::int64_t>> ids(tables);
      std::vector<Tensor<double, 2>> memory64;
      std::vector<Embedding> embeddings;
      std::vector<reference::Embedding<double>> twins;
      for (std::size_t t = 0; t < tables; ++t) {
        const std::int64_t rows = random.integer(1, 9);
        memory.push_back(std::make_unique<GuardedRows>(rows, columns, random.integer(0, 3), side));
        memory.back()->fill(random);
        memory64.push_back(memory.back()->to<double>());
        for (std::int64_t n = 0; n < kTokens; ++n) ids[t].push_back(n == 0 ? rows - 1 : random.integer(0, rows - 1));
      }
      for (std::size_t t = 0; t < tables; ++t) {
        embeddings.push_back({memory[t]->const_view(), ids[t]});
        twins.push_back({std::as_const(memory64[t]).view(), ids[t]});
      }
      Tensor<double, 2> truth({kTokens, columns});
      reference::embed<double>(twins, truth.view());
      const GuardedRows out(kTokens, columns, random.integer(0, 3), side);
      embed(engine, embeddings, out.view());
      // Each element is a sum of `tables` numbers: tables − 1 roundings of sums no larger than the sum of the
      // magnitudes, 3.47 each.
      for (std::int64_t n = 0; n < kTokens; ++n) {
        for (std::int64_t e = 0; e < columns; ++e) {
          const auto count = static_cast<double>(tables);
          EXPECT_NEAR(out.view()(n, e), truth(n, e), (count - 1) * kUnitRoundoff * 3.47 * count);
        }
      }
      EXPECT_TRUE(out.gaps_are_untouched());
    }
  }
}

TEST_P(EmbeddingTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(2);
  const Tensor<float, 2> words = random.normal_tensor<2>({50, 384});
  const Tensor<float, 2> positions = random.normal_tensor<2>({700, 384});
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> places;
  for (std::int64_t n = 0; n < 700; ++n) {
    ids.push_back(random.integer(0, 49));
    places.push_back(n);
  }
  const std::array<Embedding, 2> embeddings = {Embedding{words.view(), ids}, Embedding{positions.view(), places}};
  Tensor<float, 2> once({700, 384});
  Engine one(options(1));
  embed(one, embeddings, once.view());
  for (const int threads : more_threads()) {
    Engine engine(options(threads));
    Tensor<float, 2> out({700, 384});
    embed(engine, embeddings, out.view());
    EXPECT_TRUE(same_bits(out.view(), once.view())) << threads << " threads";
  }
}

TEST(EmbeddingArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Tensor<float, 2> table({4, 6});
  Tensor<float, 2> out({2, 6});
  const auto with = [&](View<const float, 2> rows, std::vector<std::int64_t> ids) {
    return refusal([&] {
      const std::array<Embedding, 2> both = {Embedding{table.view(), {}}, Embedding{rows, ids}};
      embed(engine, std::span(both).subspan(1), out.view());
    });
  };
  EXPECT_EQ(with(table.view(), {0, 4}), "embed: id 1 of table 0 is 4, expected 0 to 3");
  EXPECT_EQ(with(table.view(), {-1, 0}), "embed: id 0 of table 0 is -1, expected 0 to 3");
  EXPECT_EQ(with(table.view(), {0}), "embed: ids of table 0 has 1 entries, expected 2 (one for each row of out)");
  EXPECT_EQ(with(View<const float, 2>(table.data(), {4, 5}), {0, 0}),
            "embed: table 0 has shape [4, 5], expected [any, 6] ([V, E])");
  EXPECT_EQ(with(out.view(), {0, 0}), "embed: out overlaps table 0 in memory");
  std::vector<std::int64_t> ids(6);
  const View<float, 2> over_ids(reinterpret_cast<float*>(ids.data()), {2, 6});
  EXPECT_EQ(refusal([&] {
              embed(engine, std::array{Embedding{table, std::span(ids).first(2)}}, over_ids);
            }),
            "embed: out overlaps ids of table 0 in memory");
  const View<float, 2> over_the_last(reinterpret_cast<float*>(ids.data() + 5), {2, 1});
  const std::array<Embedding, 2> narrow = {Embedding{{table.data(), {4, 1}}, std::span(ids).first(2)},
                                           Embedding{{table.data(), {4, 1}}, std::span(ids).last(2)}};
  EXPECT_EQ(refusal([&] { embed(engine, narrow, over_the_last); }), "embed: out overlaps ids of table 1 in memory");
  EXPECT_EQ(refusal([&] { embed(engine, {}, out.view()); }), "embed: 0 tables given, expected 1 to 8");
}

}  // namespace headlight::test::embedding_test
