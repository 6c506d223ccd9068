// The weights of a product: wherever they came from, in the form that products read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/gemm.h"
#include "headlight/number_type.h"
#include "headlight/storage_format.h"
#include "headlight/typed_view.h"
#include "headlight/view.h"

namespace headlight {

// A matrix [N, K] of parameters, as nn.Linear has them: y = x Wᵀ. Its numbers lie in one of three places:
//
//   rows of its own   where somebody writes them, or has asked to see them;
//   rows elsewhere    that were lent to it: a mapped file, in any storage format. They are read there, a few of them
//                     widened at a time, and never copied as a whole;
//   panels            what products read, made on first use for an engine's instruction set. Once panels hold all of
//                     the matrix its own rows go, unless somebody was shown them: whoever asks again gets them anew.
//
// So a model that only computes has its weights in memory once. Panels may be of a narrower type than float32, whose
// numbers are rounded: then rows of the matrix's own stay beside them, for whoever asks is given the numbers that were
// put in. They go where rounding changed none of them, as with the weights of a file in that type; and rows elsewhere
// are nobody's memory here. Rows elsewhere that are integers with scales as panels of the type have them
// (StorageFormatInfo::panels) become those panels as they are: the same integers, and the same scales, which of int4
// are bfloat16 numbers, and rounded to such where they are not. Any number of threads may compute with a matrix at the
// same time (the const functions); all others need it to themselves.
class HEADLIGHT_API WeightMatrix {
 public:
  // Rows first … first + count − 1.
  struct Rows {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  // Rows that lie elsewhere, side by side; `owner` keeps their memory, and `let_go` may be told of what panels hold
  // (WeightView).
  struct Lent {
    Rows rows;
    StoredNumbers numbers;
    std::shared_ptr<const void> owner;
    void (*let_go)(const void* from, std::size_t bytes) noexcept = nullptr;
  };

  // No matrix, of size 0.
  WeightMatrix() noexcept;
  // [N, K] zeros, in rows of its own. Throws OutOfMemory.
  explicit WeightMatrix(const std::array<std::int64_t, 2>& shape);
  WeightMatrix(WeightMatrix&&) noexcept;
  WeightMatrix& operator=(WeightMatrix&&) noexcept;
  ~WeightMatrix();

  // N, K, all rows, and whether there is a matrix.
  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] std::int64_t columns() const noexcept;
  [[nodiscard]] Rows all() const noexcept { return {0, rows()}; }
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

  // The panels of those rows for the engine's instruction set, made now if there are none. Threads that find none at
  // the same time each make them, and all but one throw theirs away: a program that starts many threads on one layer
  // calls its reserve() first. A matrix that is read by different groups of rows keeps the panels of each. Null for an
  // open matrix, whose own rows may change at any time. Throws OutOfMemory.
  [[nodiscard]] const PackedMatrix* packed(Engine& engine, Rows rows) const;
  // The type of the panels, float32 at first. A new one forgets those of the old, and throws OutOfMemory where numbers
  // lie in them alone and there is no memory for rows: then nothing has changed.
  [[nodiscard]] NumberType type() const noexcept;
  void set_type(NumberType type);
  // Whether packed() is null, as that of no matrix is.
  [[nodiscard]] bool is_open() const noexcept;
  // All rows of a matrix that is open, or was never packed and has none but floats.
  [[nodiscard]] View<const float, 2> plain() const noexcept;
  // All rows of a matrix that was never packed and never lent in parts, such as a table of embeddings, in the type that
  // they lie in; without memory, but of their shape, where that is blocks(), which is empty otherwise.
  [[nodiscard]] TypedView<2> table() const noexcept;
  [[nodiscard]] StoredNumbers blocks() const noexcept;
  // Those rows where they lie, of a matrix that was lent them in one piece; none of another.
  [[nodiscard]] StoredNumbers stored(Rows rows) const noexcept;
  // All rows of any matrix. Their memory stays readable as long as the matrix lives, and holds its numbers until these
  // change: whoever needs the new ones asks again. Throws OutOfMemory.
  [[nodiscard]] View<const float, 2> shown() const;

  // All rows to write, in memory of its own; forgets the panels. They stay where they are until the matrix is packed.
  // Throws OutOfMemory, and then nothing has changed.
  View<float, 2> own();
  // All rows to write, as own() gives them, but they stay where they are as long as the matrix lives.
  View<float, 2> own_for_good();
  // Whether its rows may lie anywhere: nobody was shown them, and it has no gradient.
  [[nodiscard]] bool may_move() const noexcept;
  // From now on reads these parts, which cover the matrix, where they lie. Only where it may move.
  void borrow(std::vector<Lent> parts) noexcept;
  // Whether its rows lie elsewhere.
  [[nodiscard]] bool is_borrowed() const noexcept;
  // Copies some rows out, wherever they lie.
  void read(Rows rows, float* to) const noexcept;
  // From now on its rows stay beside panels: those of a table that products read, too.
  void keep_rows() noexcept;
  // Open: whoever holds what own() gave may write there, so that no panels are made.
  void set_open(bool open) noexcept;

  // [N, K], zeros at first; or none. Own rows come with it. Throws OutOfMemory.
  void make_gradient(bool wanted);
  [[nodiscard]] View<float, 2> gradient() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headlight
