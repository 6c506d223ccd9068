#include <memory>
#include <new>
#include <utility>

#include "headlight/layers/layer.h"
#include "headlight/out_of_memory.h"

namespace headlight {

PackedCopies::PackedCopies(PackedCopies&& other) noexcept { *this = std::move(other); }

PackedCopies& PackedCopies::operator=(PackedCopies&& other) noexcept {
  if (this == &other) return *this;
  for (std::size_t isa = 0; isa < kIsas; ++isa) delete copies_[isa].exchange(other.copies_[isa].exchange(nullptr));
  open_ = other.open_;
  return *this;
}

PackedCopies::~PackedCopies() {
  for (const auto& copy : copies_) delete copy.load();
}

const PackedMatrix* PackedCopies::get(Engine& engine, View<const float, 2> weight) const {
  if (open_) return nullptr;
  std::atomic<const PackedMatrix*>& place = copies_[static_cast<std::size_t>(engine.isa())];
  const PackedMatrix* found = place.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  std::unique_ptr<const PackedMatrix> made(new (std::nothrow) PackedMatrix(engine, weight, Transpose::yes));
  if (made == nullptr) throw OutOfMemory("PackedMatrix", sizeof(PackedMatrix));
  if (place.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
    return made.release();
  }
  return found;
}

void PackedCopies::set_open(bool open) noexcept {
  for (auto& copy : copies_) delete copy.exchange(nullptr);
  open_ = open;
}

}  // namespace headlight
