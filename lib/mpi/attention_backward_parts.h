// The gradients of a call whose rows, or whose keys, come piece by piece. One process sums the query gradient over
// blocks of keys, and the gradients of keys and values over blocks of rows, head of the group by head, each in
// ascending order; whoever holds the rows, or the keys, and takes the others in that order has the same bits. Sums are
// of floats: where a gradient is of 16 bits they lie apart from it, in memory of the caller's, and are rounded once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headlight/tensor.h"
#include "ops/attention/masks.h"
#include "ops/attention_backward/block.h"
#include "ops/attention_backward/kernels.h"

namespace headlight::mpi {

// What both kinds of part are made of: a BackwardCall and what it looks into.
class BackwardPart {
 public:
  // sizes: those of the whole call, but for the heads, which are those here. `heads` says which they are, `options`
  // hold their slopes alone. Rows are those from first_query on.
  struct Whole {
    ops::AttentionSizes sizes;
    AttentionOptions options;
    ops::HeadNumbers heads;
    ops::BackwardKernels kernels;
  };
  BackwardPart(const Engine& engine, const Whole& whole, std::int64_t first_query, std::int64_t queries,
               std::int64_t keys) noexcept;
  BackwardPart(const BackwardPart&) = delete;
  BackwardPart& operator=(const BackwardPart&) = delete;

 protected:
  ~BackwardPart() = default;
  // f(sequence, first key, keys, first row, behind the last row), all counted in the sequence, for each block of keys,
  // on the sequence's grid, that ends behind key `from` and at or before key `to`, and those of rows [first, last) that
  // may see some of its keys.
  template <class Function>
  void for_each_block(std::int64_t sample, std::int64_t first, std::int64_t last, std::int64_t from, std::int64_t to,
                      const Function& f) const noexcept {
    const std::int64_t size = call_.plan.key_block;
    for (std::int64_t s = call_.sequences.of_query(first); s < call_.sequences.count(); ++s) {
      const ops::AttentionSequence sequence = call_.sequences(sample, s);
      if (sequence.first_query >= last) return;
      const ops::RowInterval here = {std::max<std::int64_t>(first - sequence.first_query, 0),
                                     std::min(last - sequence.first_query, sequence.queries)};
      const ops::IntervalRule rule(call_.options, sequence);
      const std::int64_t last_key = std::min(to - sequence.first_key, sequence.keys);
      for (std::int64_t key = std::max<std::int64_t>(from - sequence.first_key, 0) / size * size; key < last_key;
           key += size) {
        const std::int64_t end = std::min(key + size, sequence.keys);
        const ops::RowInterval rows = rule.rows_that_see(key, end);
        const std::int64_t first_row = std::max(rows.first, here.first), last_row = std::min(rows.last, here.last);
        if (end > last_key || end <= from - sequence.first_key || first_row >= last_row) continue;
        f(sequence, key, end - key, first_row, last_row);
      }
    }
  }
  // How many workers so many tasks are for.
  void plan_workers(const Engine& engine, std::int64_t tasks) noexcept;

  Whole whole_;
  ops::AttentionBackwardOperands operands_{};
  TypedAttentionGradients gradients_{};
  ops::BackwardCall call_;
};

// Some rows, whose keys come.
class QueryGradientRows : public BackwardPart {
 public:
  // Of the operands, those of queries are read, which hold the rows from first_query on, as does the gradient; without
  // one δ is all that is wanted. Throws OutOfMemory.
  QueryGradientRows(Engine& engine, const Whole& whole, std::int64_t first_query,
                    const ops::AttentionBackwardOperands& rows, const MutableTypedView<4>& gradient);

  // Works out δ, and clears a gradient in which the sums lie, which may lie where `out` does.
  void begin(Engine& engine) noexcept;
  // Floats of the sums that lie apart from the gradient; none where that is of floats.
  [[nodiscard]] std::int64_t room() const noexcept;
  // Before the first attend(): where they lie until finish(), which are cleared.
  void begin_sums(float* room) noexcept;
  // Goes on with the blocks of keys, on each sequence's grid, that end behind key `from` and at or before key `to`; the
  // views hold keys from first_key on.
  void attend(Engine& engine, const TypedView<4>& key, const TypedView<4>& value, std::int64_t first_key,
              std::int64_t from, std::int64_t to);
  // Sums that lie apart are rounded to the gradient.
  void finish(Engine& engine) noexcept;

  [[nodiscard]] const Tensor<float, 3>& delta() const noexcept { return delta_; }  // [B, Hq, n]
  [[nodiscard]] std::int64_t first_query() const noexcept { return first_query_; }
  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return call_.plan.bytes(); }

 private:
  void attend_rows(std::int64_t sample, std::int64_t head, std::int64_t first, std::int64_t last, int worker,
                   std::int64_t from, std::int64_t to) noexcept;

  std::int64_t first_query_;
  MutableTypedView<4> gradient_;
  std::int64_t rows_of_task_;
  Tensor<float, 3> delta_;
};

// Some keys, whose rows come.
class KeyGradientKeys : public BackwardPart {
 public:
  // key, value and the gradients, of which one may be missing, hold keys from first_key on, which is a multiple of 64
  // within its sequence. Throws OutOfMemory.
  KeyGradientKeys(Engine& engine, const Whole& whole, std::int64_t first_key, const TypedView<4>& key,
                  const TypedView<4>& value, const MutableTypedView<4>& key_gradient,
                  const MutableTypedView<4>& value_gradient);

  // Of any attend(): as many workers as there are tiles for.
  [[nodiscard]] std::size_t scratch_bytes(const Engine& engine) const noexcept;

  // Whether the sums of such a gradient lie apart from it: it is of 16 bits, or its rows are no whole vectors.
  [[nodiscard]] static bool sums_lie_apart(const Whole& whole, const MutableTypedView<4>& gradient) noexcept;
  // Floats of the sums that do.
  [[nodiscard]] std::int64_t room() const noexcept { return key_.size() + value_.size(); }
  // Clears the gradients, and their sums, which lie there until finish().
  void begin_sums(float* room) noexcept;
  // Rows of query heads g, g + group, …, in this order: [B, n, Hkv, D], of which the first is row first_query.
  struct Rows {
    std::int64_t group_head;  // g
    std::int64_t first_query;
    TypedView<4> query;
    TypedView<4> out_gradient;
    View<const float, 3> log_sum_exp;  // [B, Hkv, n]
    float* delta;                      // [B, Hkv, n], contiguous
  };
  // Goes on with the blocks of rows, on each sequence's grid, that end behind row `from` and at or before row `to`: of
  // head g of the group all of them, before those of head g + 1.
  void attend(Engine& engine, const Rows& rows, std::int64_t from, std::int64_t to);
  // The last factor, and the rounding, in the gradients' places.
  void finish(Engine& engine) noexcept;

 private:
  // A gradient and where it is added up: in place, or apart from it in [B, Hkv, keys, padded dim].
  struct Sums {
    MutableTypedView<4> gradient;
    std::int64_t padded;  // 0: in place, or there is none
    float* room = nullptr;
    [[nodiscard]] std::int64_t size() const noexcept;
    void clear(float* in) noexcept;
    [[nodiscard]] kernels::Rows<float> from(std::int64_t sample, std::int64_t head, std::int64_t key) const noexcept;
  };
  [[nodiscard]] static Sums sums_of(const Whole& whole, const MutableTypedView<4>& gradient) noexcept;
  void find_tiles();
  void attend_tile(std::int64_t sample, std::int64_t head, const ops::KeyInterval& tile, int worker, std::int64_t from,
                   std::int64_t to) noexcept;

  std::int64_t first_key_;
  std::int64_t first_query_ = 0;  // of the rows that are here
  std::int64_t keys_;
  ops::HeadNumbers heads_;  // of the whole group
  std::int64_t group_;
  std::vector<float> all_slopes_;        // [Hq]
  std::vector<float> slopes_;            // [Hkv], of one head of the group
  View<const float, 4> all_biases_;      // of all heads and rows
  std::vector<ops::KeyInterval> tiles_;  // of one sequence each, counted from first_key
  Sums key_;
  Sums value_;
};

// How many keys, and rows, of a sequence's grid the sums go by.
struct BackwardBlocks {
  std::int64_t keys;
  std::int64_t rows;
};
[[nodiscard]] BackwardBlocks backward_blocks(const Engine& engine, const kernels::AttentionKernels& kernels,
                                             const ops::AttentionSizes& sizes) noexcept;

}  // namespace headlight::mpi
