// An operand [B, L, H, D] of any stored type, in memory between guard pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "headlight/typed_view.h"
#include "support/guarded.h"
#include "support/random.h"
#include "support/stored.h"

namespace headlight::test {

// Memory between guard pages, with gaps between rows that nobody may write to.
class GuardedOperand {
 public:
  GuardedOperand(NumberType type, const View<float, 4>::Shape& shape, Against side, Random& random)
      : view_(type, nullptr, shape) {
    const std::int64_t gap = random.integer(0, 5);
    view_.strides = {shape[1] * shape[2] * (shape[3] + gap), shape[2] * (shape[3] + gap), shape[3] + gap, 1};
    numbers_ = shape[0] * view_.strides[0] - gap;
    memory_ = std::make_unique<Guarded<std::byte>>(numbers_ * static_cast<std::int64_t>(bytes_of(type)), side);
    view_.data = memory_->data();
    for (std::int64_t n = 0; n < numbers_; ++n) put(view_.data, n, random.uniform(), type);
  }
  [[nodiscard]] const MutableTypedView<4>& view() const { return view_; }
  void mark_gaps() {
    for_each_gap([&](std::int64_t n) { put(view_.data, n, 5.0f, view_.type); });
  }
  void expect_gaps() const {
    for_each_gap([&](std::int64_t n) { ASSERT_EQ(get(view_.data, n, view_.type), 5.0f); });
  }

 private:
  template <class Function>
  void for_each_gap(const Function& f) const {
    for (std::int64_t n = 0; n < numbers_; ++n) {
      if (n % view_.strides[2] >= view_.shape[3]) f(n);
    }
  }
  MutableTypedView<4> view_;
  std::int64_t numbers_ = 0;
  std::unique_ptr<Guarded<std::byte>> memory_;
};

}  // namespace headlight::test
