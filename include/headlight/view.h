// Views of strided memory: what every operation of headlight takes. It never owns, copies or frees what the caller
// hands in.
#pragma once

#if __cplusplus < 202002L
#error "headlight's C++ interface needs C++20 (-std=c++20); headlight/headlight.h is plain C"
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace headlight {

// A tensor of `Rank` axes in somebody else's memory: element (i0, i1, …) lies at data[i0·strides[0] + i1·strides[1] +
// …]. Strides count elements, not bytes, and may be 0 (broadcast) on inputs. The operations ask for a last stride of 1
// unless they say otherwise. A view with a null pointer means "not given" wherever an operand is optional.
template <class T, int Rank>
struct View {
  // A number for each axis.
  using Shape = std::array<std::int64_t, static_cast<std::size_t>(Rank)>;

  // The first element, the extent of each axis, and how many elements lie between two neighbours along it.
  T* data = nullptr;
  Shape shape{};
  Shape strides{};

  View() = default;

  // Contiguous, C order: the last axis is the fastest.
  View(T* data_, const Shape& shape_) : data(data_), shape(shape_), strides(contiguous_strides(shape_)) {}

  // With any strides.
  View(T* data_, const Shape& shape_, const Shape& strides_) : data(data_), shape(shape_), strides(strides_) {}

  // A view that writes is also one that only reads.
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  View(const View<U, Rank>& other)
      : data(other.data), shape(other.shape), strides(other.strides) {}  // NOLINT(runtime/explicit)

  // Those of C order.
  [[nodiscard]] static Shape contiguous_strides(const Shape& shape) noexcept {
    Shape strides{};
    std::int64_t stride = 1;
    for (int axis = Rank - 1; axis >= 0; --axis) {
      strides[static_cast<std::size_t>(axis)] = stride;
      stride = bounded_product(stride, shape[static_cast<std::size_t>(axis)]);
    }
    return strides;
  }

  // Of that axis, from 0; and whether the view is given.
  [[nodiscard]] std::int64_t extent(int axis) const noexcept { return shape[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::int64_t stride(int axis) const noexcept { return strides[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] explicit operator bool() const noexcept { return data != nullptr; }

  // Elements; 0 when an extent is negative.
  [[nodiscard]] std::int64_t size() const noexcept {
    std::int64_t count = 1;
    for (const std::int64_t extent_of_axis : shape) count = bounded_product(count, extent_of_axis);
    return count;
  }

  // The element at (i0, i1, …); as many indices as axes, unchecked.
  template <class... Index>
  [[nodiscard]] T& operator()(Index... index) const noexcept {
    static_assert(sizeof...(Index) == static_cast<std::size_t>(Rank), "one index for each axis");
    std::int64_t offset = 0;
    std::size_t axis = 0;
    ((offset += static_cast<std::int64_t>(index) * strides[axis++]), ...);
    return data[offset];
  }

 private:
  // A view takes any shape, and the operation that it is handed to refuses it: until then a product that passes 64 bits
  // stays at their end, which nothing addresses, and a negative extent counts as none.
  [[nodiscard]] static constexpr std::int64_t bounded_product(std::int64_t count, std::int64_t extent) noexcept {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (extent <= 0) return 0;
    return count > kMost / extent ? kMost : count * extent;
  }
};

}  // namespace headlight
