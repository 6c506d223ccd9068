#include "headlight/layers/weight_matrix.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "headlight/out_of_memory.h"
#include "headlight/storage_types.h"
#include "headlight/tensor.h"
#include "layers/lent_rows.h"
#include "ops/gemm/internal.h"
#include "ops/gemm/row_source.h"

namespace headlight {

namespace {

using Rows = WeightMatrix::Rows;

bool contains(const Rows& outer, const Rows& inner) noexcept {
  return outer.first <= inner.first && inner.first + inner.count <= outer.first + outer.count;
}

// Rows of a matrix's own, shared with whoever packs them while others let them go. Zeros at first: pages of a large
// matrix take no memory before somebody writes there, and a layer that is made only to be loaded from a mapped file
// never does.
using OwnRows = std::shared_ptr<float[]>;

OwnRows zeros(const std::array<std::int64_t, 2>& shape) {
  constexpr std::size_t kLine = 64;
  std::int64_t count = 0;
  if (shape[0] < 0 || shape[1] < 0 || __builtin_mul_overflow(shape[0], shape[1], &count) || count > INT64_MAX / 8) {
    throw OutOfMemory(shape, SIZE_MAX);
  }
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  std::size_t space = bytes + kLine;
  void* const base = std::calloc(space, 1);
  if (base == nullptr) throw OutOfMemory(shape, bytes);
  void* rows = base;
  std::align(kLine, bytes, rows, space);
  try {
    return {static_cast<float*>(rows), [base](float*) { std::free(base); }};
  } catch (const std::bad_alloc&) {  // and base is free again
    throw OutOfMemory(shape, bytes);
  }
}

// Whether panels of that type hold those numbers to the bit. A NaN may be another one there.
bool holds(NumberType type, std::span<const float> values) noexcept {
  if (type == NumberType::float32) return true;
  const auto are_all = [&](auto stored) {
    using Stored = decltype(stored);
    return std::all_of(values.begin(), values.end(), [](float value) {
      const auto again = static_cast<float>(Stored(value));
      return std::bit_cast<std::uint32_t>(again) == std::bit_cast<std::uint32_t>(value) && !std::isnan(value);
    });
  };
  if (type == NumberType::bfloat16) return are_all(BFloat16());
  return type == NumberType::float16 && are_all(Float16());
}

}  // namespace

// With a name, because State, which has linkage, holds it.
namespace weight_copies {

// The panels of some rows for one instruction set.
struct Copy {
  Copy(Engine& engine, Rows which, View<const float, 2> weights, NumberType type)
      : rows(which),
        matrix(engine, weights, Transpose::yes, type),
        is_exact(holds(type, {weights.data, static_cast<std::size_t>(weights.size())})) {}
  Copy(Engine& engine, Rows which, const ops::RowSource& weights, NumberType type, bool exact)
      : rows(which), matrix(engine, weights, type), is_exact(exact) {}

  [[nodiscard]] bool is(Isa isa, const Rows& which) const noexcept {
    return matrix.isa() == isa && rows.first == which.first && rows.count == which.count;
  }

  Rows rows;
  PackedMatrix matrix;
  bool is_exact;  // and so rows can be read back from it
  Copy* next = nullptr;
};

}  // namespace weight_copies

using weight_copies::Copy;

struct WeightMatrix::State {
  explicit State(const std::array<std::int64_t, 2>& shape) : rows(shape[0]), columns(shape[1]), own(zeros(shape)) {}
  ~State() { forget_copies(); }

  // Copies are only ever added while others compute, each behind its memory: whoever finds one needs no lock.
  [[nodiscard]] const Copy* find(Isa isa, const Rows& which) const noexcept {
    const Copy* copy = first.load(std::memory_order_acquire);
    while (copy != nullptr && !copy->is(isa, which)) copy = copy->next;
    return copy;
  }

  void forget_copies() noexcept {
    Copy* copy = first.exchange(nullptr);
    while (copy != nullptr) delete std::exchange(copy, copy->next);
  }

  // An exact copy of one instruction set that holds that row, and goes on from it the furthest.
  [[nodiscard]] const Copy* copy_of_row(Isa isa, std::int64_t row) const noexcept {
    const Copy* best = nullptr;
    for (const Copy* copy = first.load(std::memory_order_acquire); copy != nullptr; copy = copy->next) {
      if (copy->matrix.isa() != isa || !copy->is_exact || !contains(copy->rows, {row, 1})) continue;
      if (best == nullptr || copy->rows.first + copy->rows.count > best->rows.first + best->rows.count) best = copy;
    }
    return best;
  }

  // Whether the copies of one instruction set hold every row to the bit.
  [[nodiscard]] bool is_covered(Isa isa) const noexcept {
    std::int64_t row = 0;
    while (row < rows) {
      const Copy* copy = copy_of_row(isa, row);
      if (copy == nullptr) return false;
      row = copy->rows.first + copy->rows.count;
    }
    return true;
  }

  // Where numbers lie at this moment, and stay for as long as somebody holds it.
  struct Source {
    OwnRows own;
    Isa covered_by;
  };
  [[nodiscard]] Source source() const {
    const std::scoped_lock lock(mutex);
    return {own, covered_by};
  }

  // Those rows where they lie side by side as floats already, or null.
  [[nodiscard]] const float* find_plain(const OwnRows& from, const Rows& which) const noexcept {
    return from != nullptr ? from.get() + which.first * columns : lent.find_floats(which);
  }

  // Those rows one after another, wherever they lie.
  void copy_rows(const Source& from, const Rows& which, float* to) const noexcept {
    if (from.own != nullptr) {
      std::copy_n(from.own.get() + which.first * columns, which.count * columns, to);
    } else if (!lent.empty()) {
      lent.copy(which, to);
    } else {
      unpack_rows(from.covered_by, which, to);
    }
  }
  void unpack_rows(Isa isa, const Rows& which, float* to) const noexcept {
    const std::int64_t end = which.first + which.count;
    for (std::int64_t row = which.first; row < end;) {
      const Copy* copy = copy_of_row(isa, row);
      const std::int64_t count = std::min(end, copy->rows.first + copy->rows.count) - row;
      ops::unpack_columns(copy->matrix, row - copy->rows.first, count, to);
      row += count;
      to += count * columns;
    }
  }

  // The panels of some rows.
  [[nodiscard]] std::unique_ptr<Copy> pack(Engine& engine, const Rows& which) const {
    const Source from = source();
    // Integers that were lent are taken as they are, whether or not somebody was shown rows of floats meanwhile.
    const Reading reading = {*this, from, which, lent.scales_of_row(which, type)};
    const float* const values = reading.scales_of_row == 0 ? find_plain(from.own, which) : nullptr;
    std::unique_ptr<Copy> made;
    if (values != nullptr) {
      made.reset(new (std::nothrow) Copy(engine, which, {values, {which.count, columns}}, type));
    } else {
      // What other panels hold to the bit, these do. Of what is lent nobody asks: it is read where it lies.
      made.reset(new (std::nothrow) Copy(
          engine, which, {which.count, columns, Reading::read, &reading, reading.scales_of_row}, type, lent.empty()));
    }
    if (made == nullptr) throw OutOfMemory("PackedMatrix", sizeof(Copy));
    return made;
  }

  // Rows on their way into panels.
  struct Reading {
    const State& state;
    const Source& from;
    Rows which;
    std::int64_t scales_of_row;

    static void read(const void* context, std::int64_t first, std::int64_t count, float* to, float* scales) noexcept {
      const auto& self = *static_cast<const Reading*>(context);
      const Rows rows = {self.which.first + first, count};
      if (scales == nullptr) return self.state.copy_rows(self.from, rows, to);
      self.state.lent.copy_integers(rows, to, scales, self.scales_of_row);
    }
  };

  // All rows in memory of the matrix's own: those that it has, or a copy of what lies elsewhere.
  [[nodiscard]] OwnRows own_or_copy(const Source& from) const {
    if (from.own != nullptr) return from.own;
    OwnRows made = zeros({rows, columns});
    copy_rows(from, {0, rows}, made.get());
    return made;
  }

  std::int64_t rows;
  std::int64_t columns;
  // Numbers lie in the first of these three that is there.
  OwnRows own;
  layers::LentRows lent;
  std::atomic<Copy*> first{nullptr};
  Isa covered_by = Isa::scalar;           // the instruction set whose copies hold every row, where nothing else does
  NumberType type = NumberType::float32;  // of all copies
  bool is_shown = false;
  bool keeps_rows = false;     // of its own, whatever panels hold
  layers::LentRows once_lent;  // where somebody may look still, though the matrix has rows of its own now
  bool is_open = false;        // and so with rows of its own
  Tensor<float, 2> gradient;
  // Held while const functions look at or change where numbers lie, but never while they copy or pack any: an executor
  // may run another call on the thread that waits for it.
  mutable std::mutex mutex;
};

WeightMatrix::WeightMatrix() noexcept = default;
WeightMatrix::WeightMatrix(WeightMatrix&&) noexcept = default;
WeightMatrix& WeightMatrix::operator=(WeightMatrix&&) noexcept = default;
WeightMatrix::~WeightMatrix() = default;

WeightMatrix::WeightMatrix(const std::array<std::int64_t, 2>& shape) : state_(new (std::nothrow) State(shape)) {
  if (state_ == nullptr) throw OutOfMemory(shape, sizeof(State));
}

std::int64_t WeightMatrix::rows() const noexcept { return state_ == nullptr ? 0 : state_->rows; }
std::int64_t WeightMatrix::columns() const noexcept { return state_ == nullptr ? 0 : state_->columns; }

bool WeightMatrix::is_open() const noexcept { return state_ == nullptr || state_->is_open; }

const PackedMatrix* WeightMatrix::packed(Engine& engine, Rows which) const {
  if (is_open()) return nullptr;
  assert(contains(all(), which));
  State& state = *state_;
  const Isa isa = engine.isa();
  if (const Copy* found = state.find(isa, which)) return &found->matrix;

  std::unique_ptr<Copy> made = state.pack(engine, which);
  if (!state.keeps_rows) state.lent.let_go(which);
  const std::scoped_lock lock(state.mutex);
  if (const Copy* found = state.find(isa, which)) return &found->matrix;  // another thread was faster
  made->next = state.first.load(std::memory_order_relaxed);
  state.first.store(made.get(), std::memory_order_release);
  if (state.own != nullptr && !state.keeps_rows && may_move() && state.is_covered(isa)) {
    state.covered_by = isa;
    state.own = nullptr;
  }
  return &made.release()->matrix;
}

NumberType WeightMatrix::type() const noexcept { return state_ == nullptr ? NumberType::float32 : state_->type; }

void WeightMatrix::set_type(NumberType type) {
  if (state_ == nullptr || state_->type == type) return;
  if (state_->lent.empty()) state_->own = state_->own_or_copy(state_->source());
  state_->forget_copies();
  state_->type = type;
}

View<const float, 2> WeightMatrix::plain() const noexcept {
  if (state_ == nullptr) return {};
  return {state_->find_plain(state_->own, all()), {rows(), columns()}};
}

TypedView<2> WeightMatrix::table() const noexcept {
  if (state_ == nullptr) return {};
  // Lent rows stay what they are while shown() makes others of the matrix's own: no lock is needed to find them.
  const Lent* const part = state_->lent.find(all());
  if (part == nullptr) return plain();
  const std::optional<NumberType> type = info(part->numbers.format).plain;
  return {type.value_or(NumberType::float32), type ? part->numbers.data : nullptr, {rows(), columns()}};
}

StoredNumbers WeightMatrix::blocks() const noexcept {
  const Lent* const part = state_ == nullptr ? nullptr : state_->lent.find(all());
  return part == nullptr || info(part->numbers.format).plain ? StoredNumbers() : part->numbers;
}

StoredNumbers WeightMatrix::stored(Rows which) const noexcept {
  const Lent* const part = state_ == nullptr ? nullptr : state_->lent.find(which);
  return part == nullptr ? StoredNumbers()
                         : some_rows(part->numbers, columns(), which.first - part->rows.first, which.count);
}

View<const float, 2> WeightMatrix::shown() const {
  if (state_ == nullptr) return {};
  const State::Source from = state_->source();
  OwnRows rows;
  if (state_->find_plain(nullptr, all()) == nullptr) rows = state_->own_or_copy(from);

  const std::scoped_lock lock(state_->mutex);
  state_->is_shown = true;
  // Meanwhile another thread may have let go of what `from` holds, or have made a copy as well.
  if (state_->own == nullptr && rows != nullptr) state_->own = std::move(rows);
  return plain();
}

View<float, 2> WeightMatrix::own() {
  if (state_ == nullptr) return {};
  state_->own = state_->own_or_copy({state_->own, state_->covered_by});
  // What was shown may lie where lent rows do: they are kept, and read no more.
  if (state_->is_shown && !state_->lent.empty()) state_->once_lent = std::move(state_->lent);
  state_->lent = {};
  state_->forget_copies();
  return {state_->own.get(), {rows(), columns()}};
}

View<float, 2> WeightMatrix::own_for_good() {
  const View<float, 2> rows = own();
  if (state_ != nullptr) state_->is_shown = true;
  return rows;
}

void WeightMatrix::borrow(std::vector<Lent> parts) noexcept {
  if (state_ == nullptr) return;
  state_->lent = {std::move(parts), columns()};
  state_->own = nullptr;
  state_->forget_copies();
}

bool WeightMatrix::is_borrowed() const noexcept {
  return state_ != nullptr && state_->own == nullptr && !state_->lent.empty();
}

void WeightMatrix::read(Rows some, float* to) const noexcept {
  if (state_ != nullptr) state_->copy_rows(state_->source(), some, to);
}

bool WeightMatrix::may_move() const noexcept {
  return state_ == nullptr || (!state_->is_shown && state_->gradient.data() == nullptr);
}

void WeightMatrix::keep_rows() noexcept {
  if (state_ != nullptr) state_->keeps_rows = true;
}

void WeightMatrix::set_open(bool open) noexcept {
  if (state_ == nullptr) return;
  // Nobody holds rows that are not its own.
  state_->is_open = open && state_->own != nullptr;
  if (state_->is_open) state_->forget_copies();
}

void WeightMatrix::make_gradient(bool wanted) {
  if (state_ == nullptr) return;
  state_->gradient = {};
  if (!wanted) return;
  own();
  state_->gradient = Tensor<float, 2>({rows(), columns()});
}

View<float, 2> WeightMatrix::gradient() noexcept {
  return state_ == nullptr ? View<float, 2>() : View<float, 2>(state_->gradient);
}

}  // namespace headlight
