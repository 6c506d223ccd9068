// Which row sees which key, drawn. With queries of zero every key seen has the same weight, and with values e_j (a 1 at
// j) that weight shows in column j: '#' is seen, '.' is not.
#include <algorithm>
#include <limits>

#include "support/attention_routes.h"

namespace headlight::attention_semantics_visible_test {

using Picture = std::vector<std::string>;

class AttentionVisibleTest : public test::EachRoute {
 protected:
  // What the rows of sample b see of head h.
  static Picture seen(std::int64_t query_length, std::int64_t key_length, const AttentionOptions& options,
                      std::int64_t batch = 1, std::int64_t b = 0, std::int64_t heads = 1, std::int64_t h = 0) {
    Tensor<float, 4> query({batch, query_length, heads, 3});
    Tensor<float, 4> key({batch, key_length, heads, 3});
    Tensor<float, 4> value({batch, key_length, heads, key_length});
    for (std::int64_t n = 0; n < batch * key_length * heads; ++n) {
      value.data()[n * key_length + n / heads % key_length] = 1;
    }
    Tensor<float, 4> out({batch, query_length, heads, key_length});
    GetParam()(query, key, value, out, options);

    Picture picture;
    for (std::int64_t i = 0; i < query_length; ++i) {
      std::string row;
      std::int64_t visible = 0;
      for (std::int64_t j = 0; j < key_length; ++j) {
        row += out(b, i, h, j) != 0 ? '#' : '.';
        visible += out(b, i, h, j) != 0;
      }
      for (std::int64_t j = 0; j < key_length; ++j) {
        const double weight = row[static_cast<std::size_t>(j)] == '#' ? 1.0 / static_cast<double>(visible) : 0;
        EXPECT_NEAR(out(b, i, h, j), weight, 4 * 0x1p-24);
      }
      picture.push_back(row);
    }
    return picture;
  }
};

TEST_P(AttentionVisibleTest, EveryRowSeesEveryKeyUnlessToldOtherwise) {
  EXPECT_EQ(seen(2, 3, {}), (Picture{"###", "###"}));
}

TEST_P(AttentionVisibleTest, CausalSeesTheKeysUpToItsPosition) {
  EXPECT_EQ(seen(4, 4, {.causal = Causal::top_left}), (Picture{"#...", "##..", "###.", "####"}));
  EXPECT_EQ(seen(4, 4, {.causal = Causal::bottom_right}), (Picture{"#...", "##..", "###.", "####"}));
}

TEST_P(AttentionVisibleTest, CausalTopLeftCountsFromTheFirstKey) {
  EXPECT_EQ(seen(2, 4, {.causal = Causal::top_left}), (Picture{"#...", "##.."}));
  EXPECT_EQ(seen(4, 2, {.causal = Causal::top_left}), (Picture{"#.", "##", "##", "##"}));
}

TEST_P(AttentionVisibleTest, CausalBottomRightLetsTheLastRowSeeTheLastKey) {
  EXPECT_EQ(seen(2, 4, {.causal = Causal::bottom_right}), (Picture{"###.", "####"}));
  EXPECT_EQ(seen(4, 2, {.causal = Causal::bottom_right}), (Picture{"..", "..", "#.", "##"}));
}

TEST_P(AttentionVisibleTest, WindowReachesLeftAndRightOfThePosition) {
  EXPECT_EQ(seen(5, 5, {.window = {.left = 1, .right = 2}}), (Picture{"###..", "####.", ".####", "..###", "...##"}));
  EXPECT_EQ(seen(3, 3, {.window = {.left = 0, .right = 0}}), (Picture{"#..", ".#.", "..#"}));
  EXPECT_EQ(seen(3, 3, {.window = {.left = -1, .right = 1}}), (Picture{"##.", "###", "###"}));
  EXPECT_EQ(seen(3, 3, {.window = {.left = 1, .right = -1}}), (Picture{"###", "###", ".##"}));
}

TEST_P(AttentionVisibleTest, WindowMayBeWiderThanAnything) {
  constexpr std::int64_t kWidest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(seen(2, 3, {.window = {.left = kWidest, .right = kWidest}}), (Picture{"###", "###"}));
  EXPECT_EQ(seen(3, 2, {.causal = Causal::bottom_right, .window = {.left = kWidest, .right = kWidest}}),
            (Picture{"..", "#.", "##"}));
  EXPECT_EQ(seen(2, 3, {.chunk = kWidest}), (Picture{"###", "###"}));
}

TEST_P(AttentionVisibleTest, WindowStandsTopLeftUnlessToldOtherwise) {
  EXPECT_EQ(seen(2, 4, {.window = {.left = 0, .right = 1}}), (Picture{"##..", ".##."}));
  EXPECT_EQ(seen(2, 4, {.align = Align::bottom_right, .window = {.left = 0, .right = 1}}), (Picture{"..##", "...#"}));
  EXPECT_EQ(seen(4, 2, {.align = Align::bottom_right, .window = {.left = 0, .right = 1}}),
            (Picture{"..", "#.", "##", ".#"}));
}

TEST_P(AttentionVisibleTest, WindowStandsAsCausalDoes) {
  EXPECT_EQ(seen(2, 4, {.causal = Causal::bottom_right, .window = {.left = 1, .right = 1}}), (Picture{".##.", "..##"}));
}

TEST_P(AttentionVisibleTest, WindowMayStandElsewhereThanCausal) {
  EXPECT_EQ(seen(2, 4, {.causal = Causal::bottom_right, .align = Align::top_left, .window = {.left = 1, .right = 3}}),
            (Picture{"###.", "####"}));
  EXPECT_EQ(seen(2, 4, {.causal = Causal::top_left, .align = Align::bottom_right, .window = {.left = 2, .right = 0}}),
            (Picture{"#...", ".#.."}));
}

TEST_P(AttentionVisibleTest, ChunkSeesItsOwnChunkOfKeysCountedFromKeyZero) {
  EXPECT_EQ(seen(5, 5, {.chunk = 2}), (Picture{"##...", "##...", "..##.", "..##.", "....#"}));
  EXPECT_EQ(seen(2, 5, {.align = Align::bottom_right, .chunk = 2}), (Picture{"..##.", "....#"}));
  EXPECT_EQ(seen(4, 2, {.align = Align::bottom_right, .chunk = 3}), (Picture{"..", "..", "##", "##"}));
  EXPECT_EQ(seen(4, 4, {.causal = Causal::top_left, .chunk = 2}), (Picture{"#...", "##..", "..#.", "..##"}));
}

TEST_P(AttentionVisibleTest, LengthsCutPaddingKeysAndPaddingRows) {
  const std::vector<std::int64_t> rows{2, 3};
  const std::vector<std::int64_t> keys{3, 0};
  EXPECT_EQ(seen(3, 4, {.query_lengths = rows, .key_lengths = keys}, 2, 0), (Picture{"###.", "###.", "...."}));
  EXPECT_EQ(seen(3, 4, {.query_lengths = rows, .key_lengths = keys}, 2, 1), (Picture{"....", "....", "...."}));
  EXPECT_EQ(seen(3, 4, {.key_lengths = keys}, 2, 0), (Picture{"###.", "###.", "###."}));
  EXPECT_EQ(seen(3, 4, {.query_lengths = rows}, 2, 0), (Picture{"####", "####", "...."}));
}

TEST_P(AttentionVisibleTest, BottomRightIsThatOfTheSamplesOwnLengths) {
  const std::vector<std::int64_t> rows{2, 3};
  const std::vector<std::int64_t> keys{3, 2};
  const AttentionOptions options{.causal = Causal::bottom_right, .query_lengths = rows, .key_lengths = keys};
  EXPECT_EQ(seen(3, 4, options, 2, 0), (Picture{"##..", "###.", "...."}));
  EXPECT_EQ(seen(3, 4, options, 2, 1), (Picture{"....", "#...", "##.."}));
  EXPECT_EQ(seen(3, 4, {.causal = Causal::bottom_right, .key_lengths = keys}, 2, 0), (Picture{"#...", "##..", "###."}));
}

TEST_P(AttentionVisibleTest, PackedSequencesSeeOnlyThemselves) {
  const std::vector<std::int64_t> offsets{0, 2, 2, 5};
  EXPECT_EQ(seen(5, 5, {.query_offsets = offsets}), (Picture{"##...", "##...", "..###", "..###", "..###"}));
  EXPECT_EQ(seen(5, 5, {.causal = Causal::top_left, .query_offsets = offsets}),
            (Picture{"#....", "##...", "..#..", "..##.", "..###"}));
}

TEST_P(AttentionVisibleTest, PackedSequencesMayHaveOtherKeyLengths) {
  const std::vector<std::int64_t> rows{0, 2, 3};
  const std::vector<std::int64_t> keys{0, 1, 4};
  EXPECT_EQ(seen(3, 4, {.query_offsets = rows, .key_offsets = keys}), (Picture{"#...", "#...", ".###"}));
  EXPECT_EQ(seen(3, 4, {.causal = Causal::bottom_right, .query_offsets = rows, .key_offsets = keys}),
            (Picture{"....", "#...", ".###"}));
  EXPECT_EQ(seen(3, 4, {.causal = Causal::top_left, .query_offsets = rows, .key_offsets = keys}),
            (Picture{"#...", "#...", ".#.."}));
  EXPECT_EQ(seen(3, 4, {.chunk = 2, .query_offsets = rows, .key_offsets = keys}), (Picture{"#...", "#...", ".##."}));
}

TEST_P(AttentionVisibleTest, BooleanMaskSaysWhatTrueMeans) {
  const std::uint8_t entries[] = {1, 0, 1, /**/ 0, 0, 7};
  const View<const std::uint8_t, 4> mask(entries, {1, 1, 2, 3});
  EXPECT_EQ(seen(2, 3, {.mask = BooleanMask{mask, MaskMeans::attend}}), (Picture{"#.#", "..#"}));
  EXPECT_EQ(seen(2, 3, {.mask = BooleanMask{mask, MaskMeans::ignore}}), (Picture{".#.", "##."}));
}

TEST_P(AttentionVisibleTest, BooleanMaskIsBroadcastByAnExtentOfOneOrAStrideOfZero) {
  const std::uint8_t keys[] = {1, 0, 1};
  const View<const std::uint8_t, 4> by_extent(keys, {1, 1, 1, 3});
  EXPECT_EQ(seen(2, 3, {.mask = BooleanMask{by_extent, MaskMeans::attend}}, 2, 1, 2, 1), (Picture{"#.#", "#.#"}));
  const View<const std::uint8_t, 4> by_stride(keys, {2, 2, 2, 3}, {0, 0, 0, 1});
  EXPECT_EQ(seen(2, 3, {.mask = BooleanMask{by_stride, MaskMeans::attend}}, 2, 1, 2, 1), (Picture{"#.#", "#.#"}));
  const View<const std::uint8_t, 4> rows(keys, {1, 1, 3, 1});
  EXPECT_EQ(seen(3, 2, {.mask = BooleanMask{rows, MaskMeans::attend}}), (Picture{"##", "..", "##"}));
  const std::uint8_t heads[] = {0, 1};
  const View<const std::uint8_t, 4> of_head(heads, {1, 2, 1, 1});
  EXPECT_EQ(seen(1, 2, {.mask = BooleanMask{of_head, MaskMeans::attend}}, 1, 0, 2, 0), (Picture{".."}));
  EXPECT_EQ(seen(1, 2, {.mask = BooleanMask{of_head, MaskMeans::attend}}, 1, 0, 2, 1), (Picture{"##"}));
}

TEST_P(AttentionVisibleTest, SeveralMasksTogetherShowOnlyWhatAllAllow) {
  const std::uint8_t entries[] = {1, 1, 0, 1, 1, 1};
  const View<const std::uint8_t, 4> mask(entries, {1, 1, 1, 6});
  const std::vector<std::int64_t> keys{5};
  EXPECT_EQ(seen(6, 6,
                 {.causal = Causal::top_left,
                  .window = {.left = 2, .right = -1},
                  .chunk = 4,
                  .key_lengths = keys,
                  .mask = BooleanMask{mask, MaskMeans::attend}}),
            (Picture{"#.....", "##....", "##....", ".#.#..", "....#.", "....#."}));
}

HEADLIGHT_ON_EVERY_ROUTE(AttentionVisibleTest, test::all_routes());

}  // namespace headlight::attention_semantics_visible_test
