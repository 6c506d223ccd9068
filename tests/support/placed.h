// A tensor [B, L, H, D] between guard pages, laid out as callers have theirs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headlight/typed_view.h"
#include "support/guarded.h"
#include "support/stored.h"

namespace headlight::test {

enum class Layout : std::uint8_t {
  contiguous,   // [B, L, H, D]
  by_head,      // [B, H, L, D]
  interleaved,  // columns of a matrix thrice as wide, as a product for query, key and value leaves them
  gapped,       // with room between heads, rows and samples
};

// Where nothing of the tensor lies all bits are set, a NaN in every type: who reads there shows it, and who writes
// there is found by gaps_are_untouched().
class Placed {
 public:
  using Shape = View<float, 4>::Shape;

  Placed(NumberType type, const Tensor<float, 4>& from, Layout layout, Against side)
      : type_(type),
        shape_(from.shape()),
        strides_(strides_of(layout, shape_)),
        size_(from.size() == 0 ? 0 : offset_of_last() + 1),
        memory_(size_ * static_cast<std::int64_t>(bytes_of(type)), side) {
    fill_with_ones(memory_.data());
    for_each([&](std::int64_t n, std::int64_t offset) { put(memory_.data(), offset, from.data()[n], type_); });
  }

  [[nodiscard]] MutableTypedView<4> view() const { return {type_, memory_.data(), shape_, strides_}; }
  // Of float32.
  [[nodiscard]] View<float, 4> floats_view() const {
    return {reinterpret_cast<float*>(memory_.data()), shape_, strides_};
  }
  [[nodiscard]] Tensor<float, 4> floats() const {
    Tensor<float, 4> tensor(shape_);
    for_each([&](std::int64_t n, std::int64_t offset) { tensor.data()[n] = get(memory_.data(), offset, type_); });
    return tensor;
  }
  [[nodiscard]] bool gaps_are_untouched() const {
    std::vector<std::byte> gaps(bytes());
    std::copy_n(memory_.data(), gaps.size(), gaps.data());
    const std::size_t width = bytes_of(type_);
    for_each([&](std::int64_t, std::int64_t offset) {
      std::memset(gaps.data() + static_cast<std::size_t>(offset) * width, 0xFF, width);
    });
    return std::ranges::all_of(gaps, [](std::byte each) { return each == std::byte{0xFF}; });
  }

 private:
  static Shape strides_of(Layout layout, const Shape& shape) {
    const std::int64_t length = shape[1], heads = shape[2], dim = shape[3];
    switch (layout) {
      case Layout::contiguous:
        break;
      case Layout::by_head:
        return {heads * length * dim, dim, length * dim, 1};
      case Layout::interleaved:
        return {length * 3 * heads * dim, 3 * heads * dim, dim, 1};
      case Layout::gapped: {
        const std::int64_t row = heads * (dim + 3) + 5;
        return {length * row + 7, row, dim + 3, 1};
      }
    }
    return View<float, 4>::contiguous_strides(shape);
  }
  [[nodiscard]] std::int64_t offset_of_last() const {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) offset += (shape_[axis] - 1) * strides_[axis];
    return offset;
  }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(size_) * bytes_of(type_); }
  void fill_with_ones(std::byte* memory) const {
    if (bytes() != 0) std::memset(memory, 0xFF, bytes());
  }
  // f(n, offset) for element n in the order of [B, L, H, D].
  template <class Function>
  void for_each(Function f) const {
    std::int64_t n = 0;
    for (std::int64_t b = 0; b < shape_[0]; ++b) {
      for (std::int64_t i = 0; i < shape_[1]; ++i) {
        for (std::int64_t h = 0; h < shape_[2]; ++h) {
          const std::int64_t row = b * strides_[0] + i * strides_[1] + h * strides_[2];
          for (std::int64_t d = 0; d < shape_[3]; ++d) f(n++, row + d);
        }
      }
    }
  }

  NumberType type_;
  Shape shape_;
  Shape strides_;
  std::int64_t size_;  // numbers, gaps included
  Guarded<std::byte> memory_;
};

}  // namespace headlight::test
