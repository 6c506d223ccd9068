#include "headlight/layers/weight_matrix.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "headlight/out_of_memory.h"
#include "headlight/tensor.h"
#include "ops/gemm_unpack.h"

namespace headlight {

namespace {

using Rows = WeightMatrix::Rows;

bool contains(const Rows& outer, const Rows& inner) noexcept {
  return outer.first <= inner.first && inner.first + inner.count <= outer.first + outer.count;
}

// Zeros at first: pages of a large matrix take no memory before somebody writes there, and a layer that is made only to
// be loaded from a mapped file never does.
struct Free {
  void operator()(float*) const noexcept { std::free(base); }
  void* base = nullptr;
};
using OwnRows = std::unique_ptr<float[], Free>;

OwnRows zeroed(std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  if (bytes > PTRDIFF_MAX) return {nullptr, Free{nullptr}};
  std::size_t space = bytes + kLine;
  void* const base = std::calloc(space, 1);
  void* aligned = base;
  return {static_cast<float*>(base == nullptr ? nullptr : std::align(kLine, bytes, aligned, space)), Free{base}};
}

// The panels of some rows for one instruction set.
struct Copy {
  Copy(Engine& engine, Rows which, View<const float, 2> weights)
      : rows(which), matrix(engine, weights, Transpose::yes) {}

  [[nodiscard]] bool is(Isa isa, const Rows& which) const noexcept {
    return matrix.isa() == isa && rows.first == which.first && rows.count == which.count;
  }

  Rows rows;
  PackedMatrix matrix;
  Copy* next = nullptr;
};

}  // namespace

struct WeightMatrix::State {
  explicit State(const std::array<std::int64_t, 2>& shape) : rows(shape[0]), columns(shape[1]) { own = zeros(); }
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

  // A copy of one instruction set that holds that row, and goes on from it the furthest.
  [[nodiscard]] const Copy* copy_of_row(Isa isa, std::int64_t row) const noexcept {
    const Copy* best = nullptr;
    for (const Copy* copy = first.load(std::memory_order_acquire); copy != nullptr; copy = copy->next) {
      if (copy->matrix.isa() != isa || !contains(copy->rows, {row, 1})) continue;
      if (best == nullptr || copy->rows.first + copy->rows.count > best->rows.first + best->rows.count) best = copy;
    }
    return best;
  }

  // Whether the copies of one instruction set hold every row.
  [[nodiscard]] bool is_covered(Isa isa) const noexcept {
    std::int64_t row = 0;
    while (row < rows) {
      const Copy* copy = copy_of_row(isa, row);
      if (copy == nullptr) return false;
      row = copy->rows.first + copy->rows.count;
    }
    return true;
  }

  // Those rows where they lie side by side already, or null.
  [[nodiscard]] const float* find_plain(const Rows& which) const noexcept {
    if (own != nullptr) return own.get() + which.first * columns;
    for (const Lent& part : lent) {
      if (contains(part.rows, which)) return part.values + (which.first - part.rows.first) * columns;
    }
    return nullptr;
  }

  // Those rows one after another, wherever they lie.
  void copy_rows(const Rows& which, float* to) const noexcept {
    const std::int64_t end = which.first + which.count;
    for (std::int64_t row = which.first; row < end;) {
      const Rows one = {row, 1};
      const auto part = std::ranges::find_if(lent, [&](const Lent& some) { return contains(some.rows, one); });
      Rows found = {row, end - row};
      if (own != nullptr || part != lent.end()) {
        if (own == nullptr) found.count = std::min(found.count, part->rows.first + part->rows.count - row);
        std::copy_n(find_plain(found), found.count * columns, to);
      } else {
        const Copy* copy = copy_of_row(covered_by, row);
        found.count = std::min(found.count, copy->rows.first + copy->rows.count - row);
        ops::unpack_columns(copy->matrix, row - copy->rows.first, found.count, to);
      }
      row += found.count;
      to += found.count * columns;
    }
  }

  [[nodiscard]] OwnRows zeros() const {
    const std::size_t bytes = static_cast<std::size_t>(rows * columns) * sizeof(float);
    OwnRows made = zeroed(bytes);
    if (made == nullptr) throw OutOfMemory(std::array{rows, columns}, bytes);
    return made;
  }

  // All rows in memory of the matrix's own.
  void make_own() {
    if (own != nullptr) return;
    OwnRows made = zeros();
    copy_rows({0, rows}, made.get());
    own = std::move(made);
  }

  std::int64_t rows;
  std::int64_t columns;
  // Numbers lie in the first of these three that is there.
  OwnRows own;
  std::vector<Lent> lent;
  std::atomic<Copy*> first{nullptr};
  Isa covered_by = Isa::scalar;  // the instruction set whose copies hold every row, where nothing else does
  bool is_shown = false;
  bool is_open = false;
  Tensor<float, 2> gradient;
  // Held while const functions change anything.
  std::mutex mutex;
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

bool WeightMatrix::is_open() const noexcept { return state_->is_open && state_->own != nullptr; }

const PackedMatrix* WeightMatrix::packed(Engine& engine, Rows which) const {
  if (is_open()) return nullptr;
  State& state = *state_;
  const Isa isa = engine.isa();
  if (const Copy* found = state.find(isa, which)) return &found->matrix;

  const std::scoped_lock lock(state.mutex);
  if (const Copy* found = state.find(isa, which)) return &found->matrix;
  const float* values = state.find_plain(which);
  Tensor<float, 2> gathered;
  if (values == nullptr) {
    gathered = Tensor<float, 2>({which.count, columns()});
    state.copy_rows(which, gathered.data());
    values = gathered.data();
  }
  Copy* made = new (std::nothrow) Copy(engine, which, {values, {which.count, columns()}});
  if (made == nullptr) throw OutOfMemory("PackedMatrix", sizeof(Copy));
  made->next = state.first.load(std::memory_order_relaxed);
  state.first.store(made, std::memory_order_release);
  if (state.own != nullptr && may_move() && state.is_covered(isa)) {
    state.covered_by = isa;
    state.own.reset();
  }
  return &made->matrix;
}

View<const float, 2> WeightMatrix::plain() const noexcept {
  if (state_ == nullptr) return {};
  return {state_->find_plain(all()), {rows(), columns()}};
}

View<const float, 2> WeightMatrix::shown() const {
  const std::scoped_lock lock(state_->mutex);
  if (state_->find_plain(all()) == nullptr) state_->make_own();
  state_->is_shown = true;
  return plain();
}

View<float, 2> WeightMatrix::own() {
  if (state_ == nullptr) return {};
  state_->make_own();
  // What was shown may lie where lent rows do.
  if (!state_->is_shown) state_->lent.clear();
  state_->forget_copies();
  return {state_->own.get(), {rows(), columns()}};
}

View<float, 2> WeightMatrix::hand_out() {
  const View<float, 2> rows = own();
  state_->is_shown = true;
  return rows;
}

void WeightMatrix::borrow(std::vector<Lent> parts) noexcept {
  state_->lent = std::move(parts);
  state_->own.reset();
  state_->forget_copies();
}

bool WeightMatrix::is_borrowed() const noexcept { return state_->own == nullptr && !state_->lent.empty(); }

void WeightMatrix::read(Rows some, float* to) const noexcept {
  const std::scoped_lock lock(state_->mutex);
  state_->copy_rows(some, to);
}

bool WeightMatrix::may_move() const noexcept { return !state_->is_shown && state_->gradient.data() == nullptr; }

void WeightMatrix::set_open(bool open) noexcept {
  if (state_ == nullptr) return;
  state_->is_open = open;
  if (is_open()) state_->forget_copies();
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
