// Keys or values [B, L, H, D] as int8 with a scale for each row and head, each between guard pages, by the twin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "headlight/typed_view.h"
#include "reference/number_types.h"
#include "support/guarded.h"

namespace headlight::test {

class CachedRows {
 public:
  enum class Layout : std::uint8_t { by_position, by_head };

  explicit CachedRows(const Tensor<float, 4>& from, Layout layout = Layout::by_position, Against side = Against::back)
      : memory_(from.size(), side), scale_memory_(from.shape()[0] * from.shape()[1] * from.shape()[2], side) {
    const std::int64_t batch = from.shape()[0], length = from.shape()[1], heads = from.shape()[2];
    const std::int64_t dim = from.shape()[3];
    const bool by_head = layout == Layout::by_head;
    numbers_ = {memory_.data(),
                from.shape(),
                {length * heads * dim, by_head ? dim : heads * dim, by_head ? length * dim : dim, 1}};
    scales_ = {scale_memory_.data(),
               {batch, length, heads},
               {length * heads, by_head ? 1 : heads, by_head ? length : std::int64_t{1}}};
    for_each_row([&](std::int64_t b, std::int64_t l, std::int64_t h) {
      const auto* const row = dim == 0 ? nullptr : &from(b, l, h, 0);
      const reference::Int8Numbers made = reference::symmetric_int8({row, static_cast<std::size_t>(dim)});
      scales_(b, l, h) = made.scale;
      for (std::int64_t d = 0; d < dim; ++d) {
        numbers_(b, l, h, d) = static_cast<std::int8_t>(made.integers[static_cast<std::size_t>(d)]);
      }
    });
  }

  [[nodiscard]] const View<std::int8_t, 4>& numbers() const { return numbers_; }
  [[nodiscard]] const View<float, 3>& scales() const { return scales_; }
  // What attention() takes them for.
  [[nodiscard]] Tensor<float, 4> floats() const {
    Tensor<float, 4> tensor(numbers_.shape);
    for_each_row([&](std::int64_t b, std::int64_t l, std::int64_t h) {
      for (std::int64_t d = 0; d < numbers_.extent(3); ++d) {
        tensor(b, l, h, d) = scales_(b, l, h) * static_cast<float>(numbers_(b, l, h, d));
      }
    });
    return tensor;
  }
  [[nodiscard]] float largest_scale() const {
    float largest = 0;
    for_each_row(
        [&](std::int64_t b, std::int64_t l, std::int64_t h) { largest = std::max(largest, scales_(b, l, h)); });
    return largest;
  }

 private:
  template <class Function>
  void for_each_row(const Function& f) const {
    for (std::int64_t b = 0; b < numbers_.extent(0); ++b) {
      for (std::int64_t l = 0; l < numbers_.extent(1); ++l) {
        for (std::int64_t h = 0; h < numbers_.extent(2); ++h) f(b, l, h);
      }
    }
  }

  Guarded<std::int8_t> memory_;
  Guarded<float> scale_memory_;
  View<std::int8_t, 4> numbers_;
  View<float, 3> scales_;
};

}  // namespace headlight::test
