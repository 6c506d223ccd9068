// Attention by AMX's tile registers, whose instructions are plain C++ here (tile_instructions.h), so that machines
// without them run the test: a few rows swept where keys and values lie have the bits of the same rows against packed
// keys, a short head those of a sweep, and none touches anything beyond the operands.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/storage_types.h"
#include "kernels/attention/amx_shapes.h"
#include "kernels/kernels.h"
#include "support/compare.h"
#include "support/guarded.h"
#include "support/random.h"

namespace headlight::amx_bf16 {
extern const kernels::AttentionKernels pair_attention_kernels;
}

namespace headlight::test::amx_attention_test {

const kernels::AttentionKernels& table = amx_bf16::pair_attention_kernels;
constexpr float kScale = 0.3f;

// What rows of softmax are rounded with.
bool has_vectors() { return available_features(Isa::avx512).has(InstructionFeature::avx512_bf16); }

struct Case {
  std::int64_t rows, heads, keys, head_dim, value_dim;
  [[nodiscard]] std::string text() const {
    return std::to_string(rows) + " rows of " + std::to_string(heads) + " heads, " + std::to_string(keys) + " keys, " +
           std::to_string(head_dim) + " and " + std::to_string(value_dim);
  }
};

// Rows of keys or values against a page that nobody may touch: heads side by side at each key, or each by itself.
struct Rows {
  Guarded<std::uint16_t> numbers;
  std::int64_t stride;
  std::int64_t head_stride;

  Rows(const Case& one, std::int64_t columns, bool side_by_side, Against side, Random& random)
      : numbers(one.heads * one.keys * columns, side),
        stride(side_by_side ? one.heads * columns : columns),
        head_stride(side_by_side ? columns : one.keys * columns) {
    std::generate_n(numbers.data(), one.heads * one.keys * columns, [&] { return BFloat16(random.normal()).bits; });
  }
  [[nodiscard]] kernels::Operand head(std::int64_t h) const {
    return {.type = NumberType::bfloat16, .stride = stride, .data = numbers.data() + h * head_stride};
  }
};

// What rows see: all, fewer keys the later, any part or none.
enum class Seen : std::uint8_t { all, causal, parts };
struct Intervals {
  std::vector<std::int32_t> begin, end;
  Intervals(const Case& one, Seen seen, Random& random)
      : begin(static_cast<std::size_t>(one.rows), 0),
        end(static_cast<std::size_t>(one.rows), static_cast<std::int32_t>(one.keys)) {
    for (std::size_t r = 0; r < begin.size(); ++r) {
      if (seen == Seen::causal) end[r] = std::max(end[r] - 2 * static_cast<std::int32_t>(r), 1);
      if (seen != Seen::parts) continue;
      begin[r] = static_cast<std::int32_t>(random.integer(0, one.keys));
      end[r] = static_cast<std::int32_t>(random.integer(begin[r], one.keys));
    }
  }
};

// The room that both ways need, and where they end.
struct Room {
  std::vector<float> scores, maximum, sums, state, value_sums, tile_room;
  Tensor<float, 2> out, sum;
  std::int64_t stride;

  Room(const Case& one, std::int64_t words)
      : maximum(count(one.heads * one.rows)),
        sums(count(one.heads * one.rows * 16)),
        out({one.heads * one.rows, one.value_dim}),
        sum({one.heads, one.rows}),
        stride((one.value_dim + 15) / 16 * 16) {
    scores.resize(count(one.heads * one.rows * kScores));
    state.resize(count(one.heads * one.rows * stride));
    value_sums.resize(state.size());
    tile_room.resize(count(kernels::floats_of_tile_sweep(one.heads * one.rows, words)));
  }
  static constexpr std::int64_t kScores = 144;
  static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }
};

kernels::AttentionBlock block_of(const Case& one, const Intervals& seen, Room& room, std::int64_t head) {
  kernels::AttentionBlock block{};
  block.keys.count = one.keys;
  block.keys.head_dim = one.head_dim;
  block.keys.value_dim = one.value_dim;
  block.seen = {seen.begin.data(), seen.end.data(), false};
  block.modifiers.exponent_scale = kScale;
  block.scores = room.scores.data() + head * one.rows * Room::kScores;
  block.scores_stride = Room::kScores;
  block.state = {true,
                 false,
                 room.maximum.data() + head * one.rows,
                 room.sums.data() + head * one.rows * 16,
                 room.state.data() + head * one.rows * room.stride,
                 room.stride};
  block.ends = {&room.out(head * one.rows, 0), one.value_dim, &room.sum(head, 0)};
  return block;
}

// attend_short() of every head.
void expect_bits_of_sweep(const Case& one, const Rows& keys, const Rows& values, const Guarded<float>& queries,
                          std::int64_t query_words, const Intervals& seen, const Room& swept) {
  const auto sees_all = [&](std::size_t r) { return seen.begin[r] == 0 && seen.end[r] == one.keys; };
  bool all_seen = true;
  for (std::size_t r = 0; r < seen.begin.size(); ++r) all_seen = all_seen && sees_all(r);
  std::vector<float> columns(Room::count(std::max<std::int64_t>(query_words, table.short_keys) * 16));
  Tensor<float, 2> out(swept.out.shape()), sum(swept.sum.shape());
  for (std::int64_t head = 0; head < one.heads; ++head) {
    float maxima[16], sums[16];
    kernels::AttentionShort call{};
    call.query = {queries.data() + head * one.rows * query_words, query_words, one.rows, one.head_dim / 2};
    call.keys.key = keys.head(head);
    call.keys.value = values.head(head);
    call.keys.count = one.keys;
    call.keys.head_dim = one.head_dim;
    call.keys.value_dim = one.value_dim;
    call.seen = {seen.begin.data(), seen.end.data(), false};
    call.all_seen = all_seen;
    call.exponent_scale = kScale;
    call.out = &out(head * one.rows, 0);
    call.out_stride = one.value_dim;
    call.columns = columns.data();
    call.maximum = maxima;
    call.sum = sums;
    table.attend_short(call);
    std::copy_n(sums, one.rows, &sum(head, 0));
  }
  EXPECT_TRUE(same_bits(sum.view(), swept.sum.view()));
  EXPECT_TRUE(same_bits(out.view(), swept.out.view()));
}

void expect_bits_of_packed_keys(const Case& one, bool side_by_side, Seen what, Against side, Random& random) {
  SCOPED_TRACE(one.text());
  const std::int64_t words = kernels::filled_up(one.head_dim / 2, table.words_at_once);
  const Rows keys(one, one.head_dim, side_by_side, side, random),
      values(one, one.value_dim, side_by_side, side, random);
  const Guarded<float> queries(one.heads * one.rows * words, side);
  for (std::int64_t row = 0; row < one.heads * one.rows; ++row) {
    auto* const numbers = reinterpret_cast<std::uint16_t*>(queries.data() + row * words);
    std::generate_n(numbers, one.head_dim, [&] { return BFloat16(random.normal()).bits; });
  }
  const Intervals seen(one, what, random);

  Room swept(one, words), packed(one, words);
  kernels::AttentionSweep sweep{};
  sweep.block = block_of(one, seen, swept, 0);
  sweep.block.query = {queries.data(), words, one.rows, words};
  sweep.block.keys.key = keys.head(0);
  sweep.block.keys.value = values.head(0);
  sweep.heads = one.heads;
  sweep.query_head_stride = one.rows * words;
  sweep.key_head_stride = keys.head_stride;
  sweep.value_head_stride = values.head_stride;
  sweep.out_head_stride = one.rows * one.value_dim;
  sweep.state_head_stride = one.rows;
  sweep.mask_head_stride = one.rows;
  sweep.value_sums = swept.value_sums.data();
  sweep.tile_room = swept.tile_room.data();
  sweep.from_memory = sweep.from_far_memory = side_by_side;
  table.attend_sweep(sweep);
  if (one.keys <= table.short_keys) expect_bits_of_sweep(one, keys, values, queries, words, seen, swept);

  const std::int64_t filled = kernels::filled_up(one.keys, table.keys_at_once);
  const std::int64_t panel = filled / 2 * table.value_panel;
  std::vector<float> key_panels(Room::count(filled * words)),
      value_panels(Room::count((one.value_dim + 15) / 16 * panel));
  std::vector<float> block_room(Room::count(kernels::tile_block_floats(words, one.value_dim)));
  for (std::int64_t head = 0; head < one.heads; ++head) {
    table.pack_keys(keys.head(head), one.keys, one.head_dim, key_panels.data());
    table.pack_values(values.head(head), one.keys, one.value_dim, value_panels.data(), panel);
    kernels::AttentionBlock block = block_of(one, seen, packed, head);
    block.scores = block_room.data();
    block.query = {queries.data() + head * one.rows * words, words, one.rows, words};
    block.keys.key = {.layout = kernels::OperandLayout::panels, .data = key_panels.data()};
    block.keys.value = {.layout = kernels::OperandLayout::panels, .data = value_panels.data()};
    table.attend_block(block);
  }
  EXPECT_TRUE(same_bits(swept.sum.view(), packed.sum.view()));
  EXPECT_TRUE(same_bits(swept.out.view(), packed.out.view()));
}

TEST(AmxAttention, AFewRowsHaveTheBitsOfMany) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-BF16 here";
  Random random(1);
  for (const std::int64_t rows : {1, 2, 4, 5, 16}) {
    for (const Case& one :
         {Case{rows, 1, 1, 2, 1}, Case{rows, 3, 15, 30, 17}, Case{rows, 2, 32, 32, 32}, Case{rows, 2, 5, 4, 4},
          Case{rows, 2, 33, 64, 64}, Case{rows, 3, 64, 66, 70}, Case{rows, 2, 113, 130, 130}}) {
      for (const Seen seen : {Seen::all, Seen::causal, Seen::parts}) {
        for (const Against side : kBothSides) {
          for (const bool side_by_side : {false, true})
            expect_bits_of_packed_keys(one, side_by_side, seen, side, random);
        }
      }
    }
  }
}

// Many rows and several blocks of keys in one call, everything against a page that nobody may touch, beside sweeps of a
// few rows over one block after the other, in any state.
void expect_bits_of_sweeps(const Case& one, Seen what, bool has_states, Against side, Random& random) {
  SCOPED_TRACE(one.text());
  const std::int64_t words = kernels::filled_up(one.head_dim / 2, table.words_at_once);
  const Rows keys(one, one.head_dim, false, side, random), values(one, one.value_dim, false, side, random);
  const Guarded<float> queries(one.rows * words, side);
  for (std::int64_t row = 0; row < one.rows; ++row) {
    auto* const numbers = reinterpret_cast<std::uint16_t*>(queries.data() + row * words);
    std::generate_n(numbers, one.head_dim, [&] { return BFloat16(random.normal()).bits; });
  }
  const Intervals seen(one, what, random);
  Room swept(one, words), packed(one, words);
  for (std::size_t n = 0; n < swept.maximum.size(); ++n) swept.maximum[n] = random.normal();
  std::generate(swept.sums.begin(), swept.sums.end(), [&] { return random.normal(); });
  std::generate(swept.state.begin(), swept.state.end(), [&] { return random.normal(); });
  packed.maximum = swept.maximum;
  packed.sums = swept.sums;
  packed.state = swept.state;

  for (std::int64_t row = 0; row < one.rows; row += table.sweep_rows) {
    for (std::int64_t key = 0; key < one.keys; key += table.key_block) {
      const std::int64_t count = std::min<std::int64_t>(table.key_block, one.keys - key);
      kernels::AttentionSweep sweep{};
      sweep.block = block_of(one, seen, swept, 0);
      kernels::AttentionBlock& block = sweep.block;
      block.query = {queries.data() + row * words, words, std::min<std::int64_t>(table.sweep_rows, one.rows - row),
                     words};
      Intervals in_block = seen;
      for (std::size_t r = 0; r < in_block.begin.size(); ++r) {
        for (std::int32_t* const end : {&in_block.begin[r], &in_block.end[r]}) {
          *end = static_cast<std::int32_t>(std::clamp<std::int64_t>(*end - key, 0, count));
        }
      }
      block.seen = {in_block.begin.data() + row, in_block.end.data() + row, false};
      block.keys.count = count;
      block.keys.key = keys.head(0).from_row(key);
      block.keys.value = values.head(0).from_row(key);
      block.state.first = !has_states && key == 0;
      block.state.maximum += row;
      block.state.sums += row * 16;
      block.state.out += row * block.state.out_stride;
      block.ends.out = key + count < one.keys ? nullptr : block.ends.out + row * block.ends.out_stride;
      block.ends.sum += row;
      sweep.heads = 1;
      sweep.value_sums = swept.value_sums.data();
      sweep.tile_room = swept.tile_room.data();
      table.attend_sweep(sweep);
    }
  }

  const std::int64_t filled = kernels::filled_up(one.keys, table.keys_at_once);
  const std::int64_t panel = filled / 2 * table.value_panel;
  const Guarded<float> key_panels(filled * words, side), value_panels((one.value_dim + 15) / 16 * panel, side),
      room(kernels::tile_block_floats(words, one.value_dim), side);
  table.pack_keys(keys.head(0), one.keys, one.head_dim, key_panels.data());
  table.pack_values(values.head(0), one.keys, one.value_dim, value_panels.data(), panel);
  kernels::AttentionBlock block = block_of(one, seen, packed, 0);
  block.query = {queries.data(), words, one.rows, words};
  block.keys.key = {.layout = kernels::OperandLayout::panels, .data = key_panels.data()};
  block.keys.value = {.layout = kernels::OperandLayout::panels, .data = value_panels.data()};
  block.state.first = !has_states;
  block.scores = room.data();
  table.attend_block(block);
  EXPECT_TRUE(same_bits(swept.sum.view(), packed.sum.view()));
  EXPECT_TRUE(same_bits(swept.out.view(), packed.out.view()));
}

TEST(AmxAttention, ManyRowsAndBlocksHaveTheBitsOfAFewAndOne) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-BF16 here";
  Random random(2);
  for (const Case& one : {Case{17, 1, 1, 2, 1}, Case{33, 1, 129, 30, 17}, Case{70, 1, 300, 64, 64},
                          Case{100, 1, 512, 66, 33}, Case{32, 1, 256, 128, 130}}) {
    for (const Seen seen : {Seen::all, Seen::causal, Seen::parts}) {
      for (const Against side : kBothSides) {
        for (const bool has_states : {false, true}) expect_bits_of_sweeps(one, seen, has_states, side, random);
      }
    }
  }
}

}  // namespace headlight::test::amx_attention_test
