#include <memory>
#include <new>
#include <utility>

#include "headlight/layers/layer.h"
#include "headlight/out_of_memory.h"

namespace headlight {

struct PackedCopies::Copy {
  Copy(Engine& engine, View<const float, 2> weight) : matrix(engine, weight, Transpose::yes) {}

  // The one of that instruction set, from `copy` on.
  static Copy* find(Copy* copy, Isa isa) noexcept {
    while (copy != nullptr && copy->matrix.isa() != isa) copy = copy->next;
    return copy;
  }

  PackedMatrix matrix;
  Copy* next = nullptr;
};

PackedCopies::PackedCopies(PackedCopies&& other) noexcept { *this = std::move(other); }

PackedCopies& PackedCopies::operator=(PackedCopies&& other) noexcept {
  if (this == &other) return *this;
  set_open(other.open_);
  first_ = other.first_.exchange(nullptr);
  return *this;
}

PackedCopies::~PackedCopies() { set_open(false); }

const PackedMatrix* PackedCopies::get(Engine& engine, View<const float, 2> weight) const {
  if (open_) return nullptr;
  Copy* first = first_.load(std::memory_order_acquire);
  if (const Copy* found = Copy::find(first, engine.isa())) return &found->matrix;
  std::unique_ptr<Copy> made(new (std::nothrow) Copy(engine, weight));
  if (made == nullptr) throw OutOfMemory("PackedMatrix", sizeof(Copy));
  do {
    if (const Copy* found = Copy::find(first, engine.isa())) return &found->matrix;
    made->next = first;
  } while (!first_.compare_exchange_weak(first, made.get(), std::memory_order_acq_rel, std::memory_order_acquire));
  return &made.release()->matrix;
}

void PackedCopies::set_open(bool open) noexcept {
  Copy* copy = first_.exchange(nullptr);
  while (copy != nullptr) delete std::exchange(copy, copy->next);
  open_ = open;
}

}  // namespace headlight
