// Views of strided memory, and the one owning tensor. Every operation of headlight takes views: it never owns,
// copies or frees what the caller hands in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace headlight {

// A tensor of `Rank` axes in somebody else's memory: element (i0, i1, …) lies at data[i0·strides[0] + i1·strides[1] +
// …]. Strides count elements, not bytes, and may be 0 (broadcast) on inputs. The operations ask for a last stride of 1
// unless they say otherwise. A view with a null pointer means "not given" wherever an operand is optional.
template <class T, int Rank>
struct View {
  using Shape = std::array<std::int64_t, static_cast<std::size_t>(Rank)>;

  T* data = nullptr;
  Shape shape{};
  Shape strides{};

  View() = default;

  // Contiguous, C order: the last axis is the fastest.
  View(T* data_, const Shape& shape_) : data(data_), shape(shape_), strides(contiguous_strides(shape_)) {}

  View(T* data_, const Shape& shape_, const Shape& strides_) : data(data_), shape(shape_), strides(strides_) {}

  // A view that writes is also one that only reads.
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  View(const View<U, Rank>& other)
      : data(other.data), shape(other.shape), strides(other.strides) {}  // NOLINT(runtime/explicit)

  [[nodiscard]] static Shape contiguous_strides(const Shape& shape) noexcept {
    Shape strides{};
    std::int64_t step = 1;
    for (int axis = Rank - 1; axis >= 0; --axis) {
      strides[static_cast<std::size_t>(axis)] = step;
      step = bounded_product(step, shape[static_cast<std::size_t>(axis)]);
    }
    return strides;
  }

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

// A contiguous tensor that owns its elements: 64-byte aligned, zero on creation. A convenience for programs and tests;
// the operations themselves ask for views, to which it converts.
template <class T, int Rank>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>, "a tensor holds plain numbers");

 public:
  using Shape = typename View<T, Rank>::Shape;

  Tensor() = default;
  // Throws std::bad_alloc when the memory cannot be had, std::bad_array_new_length (one of its kind) for a negative
  // extent or more bytes than memory has addresses.
  explicit Tensor(const Shape& shape) : view_(nullptr, shape) {
    for (const std::int64_t extent : shape) {
      if (extent < 0) throw std::bad_array_new_length();
    }
    const auto count = static_cast<std::size_t>(view_.size());
    if (count > (PTRDIFF_MAX - kAlignment) / sizeof(T)) throw std::bad_array_new_length();
    storage_.reset(static_cast<T*>(::operator new[](count * sizeof(T) + kAlignment, std::align_val_t{kAlignment})));
    std::uninitialized_value_construct_n(storage_.get(), count);
    view_.data = storage_.get();
  }
  // What was moved from is a tensor without memory, whose view is not given.
  Tensor(Tensor&& other) noexcept
      : storage_(std::move(other.storage_)), view_(std::exchange(other.view_, View<T, Rank>())) {}
  Tensor& operator=(Tensor&& other) noexcept {
    storage_ = std::move(other.storage_);
    view_ = std::exchange(other.view_, View<T, Rank>());
    return *this;
  }

  [[nodiscard]] T* data() noexcept { return storage_.get(); }
  [[nodiscard]] const T* data() const noexcept { return storage_.get(); }
  [[nodiscard]] const Shape& shape() const noexcept { return view_.shape; }
  [[nodiscard]] std::int64_t size() const noexcept { return storage_ ? view_.size() : 0; }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + size(); }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + size(); }

  [[nodiscard]] View<T, Rank> view() noexcept { return view_; }
  [[nodiscard]] View<const T, Rank> view() const noexcept { return view_; }
  operator View<T, Rank>() noexcept { return view_; }              // NOLINT(runtime/explicit)
  operator View<const T, Rank>() const noexcept { return view_; }  // NOLINT(runtime/explicit)
  operator View<const T, Rank>() noexcept { return view_; }        // NOLINT(runtime/explicit)

  template <class... Index>
  [[nodiscard]] T& operator()(Index... index) noexcept {
    return view_(index...);
  }
  template <class... Index>
  [[nodiscard]] const T& operator()(Index... index) const noexcept {
    return view_(index...);
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(T* pointer) const noexcept { ::operator delete[](pointer, std::align_val_t{kAlignment}); }
  };

  std::unique_ptr<T[], Free> storage_;
  View<T, Rank> view_;
};

}  // namespace headlight
