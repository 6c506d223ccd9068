// A block of C from tiles in tile registers: how it is worked through. The columns of C go by strips of two vectors,
// and a strip by pieces of K (amx_plan-inl.h). A piece of B comes from the first-level cache to all tiles of rows but
// the first, and A's words from the second-level cache. What the next piece reads of B and what the strip writes to is
// fetched into that cache meanwhile: from the third it comes at half of the speed at which tiles take it.
//
// Sums lie in scratch between pieces, as tile registers hold them, so that an element's sum is the same however K is
// cut.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/gemm/amx-inl.h"
#include "kernels/gemm/amx_plan-inl.h"
#include "kernels/gemm/finish-inl.h"
#include "kernels/gemm/numbers.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {  // of the one file that includes this

template <class Numbers>
class AmxBlock;

#if defined(HEADLIGHT_AMX_PRODUCT)

template <class Numbers>
class AmxBlock {
 public:
  explicit AmxBlock(const GemmBlock& block) noexcept
      : block_(block),
        plan_(block),
        sums_(block.scratch),
        sections_(sums_ + plan_.sums),
        a_tail_(sections_ + plan_.sections),
        b_tail_(a_tail_ + plan_.a_tail),
        unpacked_(b_tail_ + plan_.b_tail) {}

  void run() noexcept {
    copy_tail_of_a();
    for (std::int64_t first = 0; first < plan_.words; first += plan_.section_words) {
      const WordRange section{first, smaller(first + plan_.section_words, plan_.words)};
      for (std::int64_t column = 0; column < block_.columns; column += kGroupColumns) {
        if (!run_group(section, column)) return;
      }
    }
  }

 private:
  using Finish = typename Numbers::Finish;

  // Two vectors of columns, or one.
  struct Strip {
    std::int64_t column;
    std::int64_t columns;  // valid ones
    std::int64_t vectors;
    float* sums;

    [[nodiscard]] std::int64_t width() const noexcept { return vectors * kLanes; }
  };

  // Words of a strip within a block of K of the panels.
  struct Words {
    const float* left;
    const float* right;
    std::int64_t stride;
    std::int64_t end;  // of K
  };

  // What the tiles of a piece share.
  struct Piece {
    WordRange section;
    WordRange words;
    Words b;
    AmxAhead ahead;  // for all tiles of rows
    std::int64_t b_rows_of_tile;
    std::int64_t b_rows_at_once;
    std::int64_t c_rows_at_once;

    [[nodiscard]] bool is_first() const noexcept { return words.first == section.first; }
    [[nodiscard]] bool is_last() const noexcept { return words.end == section.end; }
  };

  [[nodiscard]] std::int64_t panel_width(std::int64_t column) const noexcept {
    const std::int64_t panel = column / kGemmPanelWidth * kGemmPanelWidth;
    return smaller(kGemmPanelWidth, block_.b.stride - panel);
  }
  // Where a vector of the block's columns has that word of K.
  [[nodiscard]] const float* b_at(std::int64_t column, std::int64_t word) const noexcept {
    column += block_.b_column;
    const std::int64_t of_panel = column % kGemmPanelWidth;
    const WordRange block = plan_.block_of(word);
    return block_.b.words() + block.first * block_.b.stride + (column - of_panel) * block.count() +
           (word - block.first) * panel_width(column) + of_panel;
  }

  // As many vectors as lie alike, of two, before the end of the group.
  [[nodiscard]] Strip strip_at(std::int64_t column, std::int64_t group, std::int64_t end) const noexcept {
    const std::int64_t left = end - column, in_b = block_.b_column + column;
    const bool is_pair = left > kLanes && panel_width(in_b + kLanes) == panel_width(in_b);
    Strip strip;
    strip.column = column;
    strip.columns = smaller(left, is_pair ? 2 * kLanes : kLanes);
    strip.vectors = is_pair ? 2 : 1;
    strip.sums = sums_ + (plan_.span_words < plan_.section_words ? (column - group) * block_.rows : 0);
    return strip;
  }

  [[nodiscard]] Words words_at(const Strip& strip, std::int64_t word, std::int64_t end) const noexcept {
    const float* const left = b_at(strip.column, word);
    return {left, strip.vectors == 2 ? b_at(strip.column + kLanes, word) : left,
            panel_width(block_.b_column + strip.column), smaller(plan_.block_of(word).end, end)};
  }

  // Words behind the last whole iteration, each row's with zeros behind them.
  void copy_tail_of_a() const noexcept {
    if (plan_.a_tail == 0) return;
    const auto count = static_cast<int>(plan_.words % Numbers::iteration_words);
    const float* from = static_cast<const float*>(block_.a) + plan_.words - count;
    for (std::int64_t row = 0; row < block_.rows; ++row, from += block_.a_row_stride) {
      store(load_partial(from, count), a_tail_ + row * Numbers::iteration_words);
    }
  }
  void copy_tail_of_b(const Strip& strip) const noexcept {
    if (plan_.a_tail == 0) return;
    const std::int64_t count = plan_.words % Numbers::iteration_words, first = plan_.words - count;
    for (std::int64_t v = 0; v < strip.vectors; ++v) {
      const float* const from = b_at(strip.column + v * kLanes, first);
      const std::int64_t stride = panel_width(block_.b_column + strip.column);
      for (std::int64_t k = 0; k < Numbers::iteration_words; ++k) {
        store(k < count ? load(from + k * stride) : zero(), b_tail_ + (2 * k + v) * kLanes);
      }
    }
  }

  // False once the call shall end.
  [[nodiscard]] bool run_group(const WordRange& section, std::int64_t group) const noexcept {
    for (std::int64_t first = section.first; first < section.end; first += plan_.span_words) {
      run_span(section, {first, smaller(first + plan_.span_words, section.end)}, group);
      if (block_.is_cancelled != nullptr && block_.is_cancelled()) return false;
    }
    return true;
  }
  void run_span(const WordRange& section, const WordRange& span, std::int64_t group) const noexcept {
    const std::int64_t end = smaller(group + kGroupColumns, block_.columns);
    // Released before the question whether the call shall end, which may multiply, too.
    AmxRegisters registers;
    bool is_upward = false;
    for (std::int64_t column = group; column < end;) {
      const Strip strip = strip_at(column, group, end);
      column += strip.columns;
      if (span.end == plan_.words) copy_tail_of_b(strip);
      for (std::int64_t word = span.first; word < span.end;) {
        Piece piece{section, plan_.piece(span, word), {}, {}, 0, 0, 0};
        piece.b = words_at(strip, word, piece.words.end);
        if constexpr (Numbers::unpacked != 0) unpack(strip, piece);
        word = piece.words.end;
        const bool is_strip_done = word == span.end;
        look_ahead(is_strip_done ? column : strip.column, is_strip_done ? span.first : word, piece);
        run_rows(strip, piece, is_upward, registers);
        is_upward = !is_upward;
      }
    }
  }

  // A piece of B as tiles read it, with the scales of its columns.
  void unpack(const Strip& strip, const Piece& piece) const noexcept {
    const std::int64_t groups = divide_up(plan_.words, Numbers::iteration_words);
    const auto scales_at = [&](std::int64_t column) {
      column += block_.b_column;
      const std::int64_t of_panel = column % kGemmPanelWidth;
      return block_.b.group_scales(block_.depth) + (column - of_panel) * groups + of_panel +
             piece.words.first / Numbers::iteration_words * panel_width(column);
    };
    const std::uint16_t* const left = scales_at(strip.column);
    if (strip.vectors == 2) {
      Numbers::template unpack<2>({piece.b.left, piece.b.right}, {left, scales_at(strip.column + kLanes)},
                                  piece.b.stride, piece.words.count(), unpacked_);
    } else {
      Numbers::template unpack<1>({piece.b.left, piece.b.left}, {left, left}, piece.b.stride, piece.words.count(),
                                  unpacked_);
    }
  }

  // As many words of what comes next as this piece has. A single tile of rows is no faster with it.
  void look_ahead(std::int64_t column, std::int64_t word, Piece& piece) const noexcept {
    const std::int64_t iterations = larger(piece.words.count() / Numbers::iteration_words, 1);
    piece.c_rows_at_once = divide_up(Numbers::tile_rows, iterations);
    if (plan_.tiles == 1 || column >= block_.columns) return;
    piece.ahead.left = b_at(column, word);
    const bool is_pair = block_.b_column + column + kLanes < block_.b.stride;
    piece.ahead.right = is_pair ? b_at(column + kLanes, word) : piece.ahead.left;
    piece.ahead.b_stride = panel_width(block_.b_column + column);
    piece.ahead.b_rows = piece.words.count();
    piece.b_rows_of_tile = divide_up(piece.ahead.b_rows, plan_.tiles);
    piece.b_rows_at_once = divide_up(piece.b_rows_of_tile, iterations);
  }

  void run_rows(const Strip& strip, const Piece& piece, bool is_upward, AmxRegisters& registers) const noexcept {
    // Tile registers are configured anew, which takes long, where the last rows are fewer: every other piece begins
    // with them.
    AmxAhead ahead = piece.ahead;
    std::int64_t left = piece.ahead.b_rows;
    for (std::int64_t index = 0; index < plan_.tiles; ++index) {
      const std::int64_t row = (is_upward ? plan_.tiles - 1 - index : index) * Numbers::tile_rows;
      const GemmPart part{row, smaller(Numbers::tile_rows, block_.rows - row), strip.column, strip.columns};
      registers.configure(part.rows, Numbers::tile_words);
      ahead.b_rows = smaller(piece.b_rows_of_tile, left);
      run_tile(strip, piece, part, ahead);
      left -= ahead.b_rows;
      ahead.left += ahead.b_rows * ahead.b_stride;
      ahead.right += ahead.b_rows * ahead.b_stride;
    }
  }

  void run_tile(const Strip& strip, const Piece& piece, const GemmPart& part, AmxAhead ahead) const noexcept {
    alignas(64) float buffer[Numbers::tile_rows * 2 * kLanes];
    const AmxSums between{strip.sums + part.row * strip.width(), strip.width()};
    AmxSums to = between;
    const bool has_whole_vectors = plan_.sums_in_c && strip.columns == strip.width();
    const bool is_in_c = has_whole_vectors && is_plain(block_.epilogue);
    if (piece.is_last()) {
      to = {buffer, strip.width()};
      float* const c = static_cast<float*>(block_.c) + part.row * block_.c_row_stride + part.column;
      if (is_in_c && has_sums_of_products(piece) && keeps_to_lines(c)) to = {c, block_.c_row_stride};
      if (is_in_c) {
        ahead.c = reinterpret_cast<const char*>(c);
        ahead.c_bytes = AmxSums{c, block_.c_row_stride}.bytes();
        ahead.c_rows = part.rows;
      } else if (is_rounded_alone(strip)) {
        ahead.c = reinterpret_cast<const char*>(rounded_at(part.row, part.column));
        ahead.c_bytes = AmxSums{c, block_.c_row_stride}.bytes() / 2;
        ahead.c_rows = part.rows;
      } else if (piece.section.end == plan_.words) {
        ask_for_epilogue(block_, part);
      }
    }
    const AmxSums from = piece.is_first() ? AmxSums{nullptr, 0} : between;
    write_memory();
    if (part.rows > kAmxRows) {
      strip.vectors == 2 ? multiply<true, true>(strip, piece, part, ahead, from, to)
                         : multiply<true, false>(strip, piece, part, ahead, from, to);
    } else {
      strip.vectors == 2 ? multiply<false, true>(strip, piece, part, ahead, from, to)
                         : multiply<false, false>(strip, piece, part, ahead, from, to);
    }
    write_memory();
    if (to.at == buffer) end(strip, piece, part, buffer);
  }

  // Whether C is what the products sum up to, rounded to bfloat16, and whole vectors of it. The sums are normal numbers
  // or 0, as the instructions that round them take numbers for.
  [[nodiscard]] bool is_rounded_alone(const Strip& strip) const noexcept {
    if constexpr (!kFeature.dots_bfloat16) return false;
    return block_.c_type == NumberType::bfloat16 && is_plain(block_.epilogue) && block_.epilogue.alpha == 1.0f &&
           block_.epilogue.beta == 0.0f && strip.columns == 2 * kLanes;
  }
  [[nodiscard]] std::uint16_t* rounded_at(std::int64_t row, std::int64_t column) const noexcept {
    return static_cast<std::uint16_t*>(block_.c) + row * block_.c_row_stride + column;
  }
  void round_rows(const GemmPart& part, [[maybe_unused]] const float* sums) const noexcept {
    if constexpr (kFeature.dots_bfloat16) {
      std::uint16_t* to = rounded_at(part.row, part.column);
      for (std::int64_t r = 0; r < part.rows; ++r, sums += 2 * kLanes, to += block_.c_row_stride) {
        store(narrow_to_bf16(load(sums), load(sums + kLanes)), reinterpret_cast<float*>(to));
      }
    }
  }

  // Whether rows of C from there on cross no cache lines by 16 floats. A tile that is stored across lines takes four
  // times as long, and vectors from a copy do not; an array of NumPy's begins 16 bytes behind a page.
  [[nodiscard]] bool keeps_to_lines(const float* c) const noexcept {
    constexpr std::uintptr_t kLine = 64;
    return reinterpret_cast<std::uintptr_t>(c) % kLine == 0 && block_.c_row_stride % kLanes == 0;
  }

  // Whether C is what the products sum up to, with nothing more to do.
  [[nodiscard]] bool has_sums_of_products(const Piece& piece) const noexcept {
    if constexpr (std::is_same_v<Finish, GemmSums>) {
      return block_.epilogue.alpha == 1.0f && piece.section.count() == plan_.words;
    }
    return false;
  }

  template <bool kLower, bool kRight>
  void multiply(const Strip& strip, const Piece& piece, const GemmPart& part, AmxAhead ahead, const AmxSums& from,
                const AmxSums& to) const noexcept {
    const float* const a = static_cast<const float*>(block_.a) + part.row * block_.a_row_stride;
    if constexpr (Numbers::unpacked != 0) {
      const AmxRows rows{a, block_.a_row_stride, part.rows, block_.depth};
      return Numbers::template multiply<kLower, kRight>(rows, piece.words, unpacked_, ahead, piece.b_rows_at_once,
                                                        piece.c_rows_at_once, from, to);
    }
    amx_begin<kLower, kRight>(from);
    std::int64_t word = piece.words.first;
    for (Words b = piece.b;; b = words_at(strip, word, piece.words.end)) {
      AmxOperands at{a + word, block_.a_row_stride, b.left, b.right, b.stride};
      for (; word + Numbers::iteration_words <= b.end; word += Numbers::iteration_words) {
        amx_iteration<kLower, kRight>(at);
        ahead.fetch(piece.b_rows_at_once, piece.c_rows_at_once);
        at.a += Numbers::iteration_words;
        at.left += Numbers::iteration_words * b.stride;
        at.right += Numbers::iteration_words * b.stride;
      }
      if (word < b.end) {
        amx_iteration<kLower, kRight>({a_tail_ + part.row * Numbers::iteration_words, Numbers::iteration_words, b_tail_,
                                       b_tail_ + kLanes, 2 * kLanes});
      }
      word = b.end;
      if (word == piece.words.end) break;
    }
    amx_end<kLower, kRight>(to);
  }

  // From the sums of a section to floats, and from the last one's to C.
  void end(const Strip& strip, const Piece& piece, const GemmPart& part, float* buffer) const noexcept {
    if (is_rounded_alone(strip)) return round_rows(part, buffer);
    const bool is_last = piece.section.end == plan_.words;
    const bool is_in_c = plan_.sums_in_c && strip.columns == strip.width();
    const bool is_done = is_in_c && is_plain(block_.epilogue);
    kernels::GemmTile tile{};
    tile.a =
        static_cast<const float*>(block_.a) + part.row * block_.a_row_stride + piece.section.first * Numbers::a_of_word;
    tile.a_stride = block_.a_row_stride;
    tile.out = buffer;
    tile.out_stride = strip.width();
    if (is_done || (is_in_c && plan_.sections != 0)) {
      tile.out = static_cast<float*>(block_.c) + part.row * block_.c_row_stride + part.column;
      tile.out_stride = block_.c_row_stride;
    } else if (plan_.sections != 0) {
      tile.out_stride = plan_.section_stride(block_);
      tile.out = sections_ + part.row * tile.out_stride + (plan_.sums_in_c ? 0 : part.column);
    }
    tile.alpha = is_last && is_done ? block_.epilogue.alpha : 1.0f;
    tile.accumulate = piece.section.first > 0;
    if constexpr (Numbers::finds_scales) {
      Numbers::find_scales(block_, piece.section.first, piece.section.first / plan_.section_words, part.column, tile);
    }
    const float* const sums = tile.out;
    const bool is_same = std::is_same_v<Finish, GemmSums> && sums == buffer && tile.alpha == 1.0f;
    if (!is_same) {
      strip.vectors == 2 ? end_rows<2>(tile, part.rows, buffer) : end_rows<1>(tile, part.rows, buffer);
    }
    if (is_last && !is_done) finish_part(HEADLIGHT_EPILOGUE::gemm_finish, block_, part, sums, tile.out_stride);
  }

  // Row by row through the finish that tiles of vector registers have.
  template <int kVectors>
  static void end_rows(kernels::GemmTile row, std::int64_t rows, const float* sums) noexcept {
    for (std::int64_t r = 0; r < rows; ++r, sums += kVectors * kLanes) {
      Vec vectors[1][kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) vectors[0][v] = load(sums + v * kLanes);
      Finish(row).end(row.a, row.b, vectors);
      row.a += row.a_stride;
      row.out += row.out_stride;
    }
  }

  const GemmBlock& block_;
  const AmxPlan<Numbers> plan_;
  float* const sums_;
  float* const sections_;
  float* const a_tail_;
  float* const b_tail_;
  float* const unpacked_;
};

#endif

}  // namespace
}  // namespace headlight::HEADLIGHT_TARGET
