// Attention by AMX's tile registers, whose instructions are plain C++ here (tile_instructions.h), so that machines
// without them run the test: a few rows swept where keys and values lie have the bits of the same rows against packed
// keys, and touch nothing beyond the operands.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/storage_types.h"
#include "kernels/kernels.h"
#include "support/compare.h"
#include "support/guarded.h"
#include "support/random.h"

namespace headlight::amx_bf16 {
extern const kernels::AttentionKernels pair_attention_kernels;
}

namespace headlight::test::amx_attention_test {

const kernels::AttentionKernels& table = amx_bf16::pair_attention_kernels;

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
      if (seen == Seen::causal) end[r] = static_cast<std::int32_t>(std::max<std::int64_t>(end[r] - 2 * r, 1));
      if (seen != Seen::parts) continue;
      begin[r] = static_cast<std::int32_t>(random.integer(0, one.keys));
      end[r] = static_cast<std::int32_t>(random.integer(begin[r], one.keys));
    }
  }
};

// The room that both ways need, and where they end.
struct Room {
  std::vector<float> scores, maximum, sums, state, value_sums, columns;
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
    columns.resize(count(one.heads * one.rows * words + 16));
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
  block.modifiers.exponent_scale = 0.3f;
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

void expect_bits_of_packed_keys(const Case& one, bool side_by_side, Seen what, Against side, Random& random) {
  SCOPED_TRACE(one.text());
  const std::int64_t words = kernels::filled_up(one.head_dim / 2, table.words_of_step);
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
  sweep.query_columns = swept.columns.data();
  sweep.from_memory = sweep.from_far_memory = side_by_side;
  table.attend_sweep(sweep);

  const std::int64_t filled = kernels::filled_up(one.keys, table.keys_of_step);
  const std::int64_t panel = filled / 2 * table.value_panel;
  std::vector<float> key_panels(Room::count(filled * words)),
      value_panels(Room::count((one.value_dim + 15) / 16 * panel));
  for (std::int64_t head = 0; head < one.heads; ++head) {
    table.pack_keys(keys.head(head), one.keys, one.head_dim, key_panels.data());
    table.pack_values(values.head(head), one.keys, one.value_dim, value_panels.data(), panel);
    kernels::AttentionBlock block = block_of(one, seen, packed, head);
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
    for (const Case& one : {Case{rows, 1, 1, 2, 1}, Case{rows, 3, 15, 30, 17}, Case{rows, 2, 32, 32, 32},
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

}  // namespace headlight::test::amx_attention_test
