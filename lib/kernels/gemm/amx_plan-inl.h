// What a block of C takes before any of it is computed in tile registers: how K is cut, what lies in scratch and where.
//
//   section  what one sum goes over: all of K, or a block of K of the panels where its sum is rounded by itself
//   span     of a section, what A's rows stay in the second-level cache with
//   piece    of a span, within a block of K of the panels: what two vectors of columns of B stay in the first-level
//            cache with, half of it, for all rows
#pragma once

#include <cstdint>

#include "kernels/gemm/kernels.h"
#include "kernels/gemm/plan-inl.h"
#include "kernels/gemm/tile-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {  // of the one file that includes this

// Words of K, from the first one on.
struct WordRange {
  std::int64_t first;
  std::int64_t end;

  [[nodiscard]] std::int64_t count() const noexcept { return end - first; }
};

// Columns whose sums wait in scratch from one span to the next.
constexpr std::int64_t kGroupColumns = 1024;

// Rows of A, those of a tile, from its first word on.
struct AmxRows {
  const float* a;
  std::int64_t stride;
  std::int64_t count;
  std::int64_t depth;  // numbers of a row
};

// `Numbers` says what AmxNumbers does (table-inl.h).
template <class Numbers>
struct AmxPlan {
  std::int64_t words;        // of K
  std::int64_t block_words;  // those of a block of K of the panels
  std::int64_t section_words;
  std::int64_t span_words;
  std::int64_t tiles;  // of rows
  bool sums_in_c;      // C holds what sections before have left, where it may
  // Floats of scratch. Each begins with a cache line.
  std::int64_t sums;      // from piece to piece
  std::int64_t sections;  // from section to section, where C does not hold it
  std::int64_t a_tail;    // words of A behind the last whole iteration
  std::int64_t b_tail;    // and those of a strip of B
  std::int64_t unpacked;  // a piece of B

  explicit AmxPlan(const GemmBlock& block) noexcept
      : words(divide_up(block.depth, Numbers::of_word)),
        block_words(divide_up(depth_block(Numbers::longest, Numbers::depth_unit, block.depth), Numbers::of_word)),
        section_words(Numbers::joins_blocks ? words : block_words),
        tiles(divide_up(block.rows, Numbers::tile_rows)),
        sums_in_c(block.c_type == NumberType::float32 && block.epilogue.beta == 0.0f &&
                  block.epilogue.residual != block.c) {
    span_words = section_words;
    if (tiles > 1 && section_words > Numbers::most_span_words) {
      const std::int64_t unit = Numbers::joins_blocks ? block_words : Numbers::iteration_words;
      span_words = Numbers::most_span_words / unit * unit;
    }
    const std::int64_t columns = round_up(block.columns, kLanes);
    const bool has_pieces = section_words > piece({0, smaller(span_words, words)}, 0).count();
    const bool has_spans = span_words < section_words;
    sums = has_pieces ? block.rows * smaller(columns, has_spans ? kGroupColumns : 2 * kLanes) : 0;
    sections = section_words < words ? block.rows * section_stride(block) : 0;
    a_tail =
        Numbers::unpacked == 0 && words % Numbers::iteration_words != 0 ? block.rows * Numbers::iteration_words : 0;
    b_tail = a_tail != 0 ? 2 * kLanes * Numbers::iteration_words : 0;
    unpacked = Numbers::unpacked;
  }

  [[nodiscard]] std::int64_t scratch_floats() const noexcept { return sums + sections + a_tail + b_tail + unpacked; }

  // Columns of what sections leave: those of a strip with part of a vector, or all.
  [[nodiscard]] std::int64_t section_stride(const GemmBlock& block) const noexcept {
    const std::int64_t columns = round_up(block.columns, kLanes);
    return sums_in_c ? smaller(columns, 2 * kLanes) : columns;
  }

  // The block of K of the panels in which a word lies.
  [[nodiscard]] WordRange block_of(std::int64_t word) const noexcept {
    const std::int64_t first = word - word % block_words;
    return {first, smaller(first + block_words, words)};
  }

  // The piece that begins with that word of a span, pieces of one length in each block. A single tile of rows takes all
  // of the span, where it reads B as it lies: it does so once.
  [[nodiscard]] WordRange piece(const WordRange& span, std::int64_t word) const noexcept {
    if (tiles == 1 && Numbers::unpacked == 0) return span;
    const WordRange block = block_of(word);
    const WordRange shared{larger(block.first, span.first), smaller(block.end, span.end)};
    const std::int64_t pieces = divide_up(shared.count(), Numbers::most_piece_words);
    return {word, smaller(word + round_up(divide_up(shared.count(), pieces), Numbers::iteration_words), shared.end)};
  }
};

}  // namespace
}  // namespace headlight::HEADLIGHT_TARGET
