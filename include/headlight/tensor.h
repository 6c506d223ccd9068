// The one owning tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "headlight/out_of_memory.h"
#include "headlight/view.h"

namespace headlight {

// A contiguous tensor that owns its elements: 64-byte aligned, zero on creation. A convenience for programs and tests;
// the operations themselves ask for views, to which it converts.
template <class T, int Rank>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>, "a tensor holds plain numbers");

 public:
  // The extent of each axis.
  using Shape = typename View<T, Rank>::Shape;

  Tensor() = default;  // without memory
  // Throws OutOfMemory, which names the shape and the bytes, when the memory cannot be had; std::bad_array_new_length
  // (a std::bad_alloc as well) for a negative extent or more bytes than memory has addresses.
  explicit Tensor(const Shape& shape) : view_(nullptr, shape) {
    for (const std::int64_t extent : shape) {
      if (extent < 0) throw std::bad_array_new_length();
    }
    const auto count = static_cast<std::size_t>(view_.size());
    if (count > (PTRDIFF_MAX - kAlignment) / sizeof(T)) throw std::bad_array_new_length();
    const std::size_t bytes = count * sizeof(T);
    storage_.reset(static_cast<T*>(::operator new[](bytes + kAlignment, std::align_val_t{kAlignment}, std::nothrow)));
    if (!storage_) throw OutOfMemory(shape, bytes);
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

  // The elements, one after another in C order: where they begin and end, how many there are, and how far neighbours
  // along each axis lie apart.
  [[nodiscard]] T* data() noexcept { return storage_.get(); }
  [[nodiscard]] const T* data() const noexcept { return storage_.get(); }
  [[nodiscard]] const Shape& shape() const noexcept { return view_.shape; }
  [[nodiscard]] const Shape& strides() const noexcept { return view_.strides; }
  [[nodiscard]] std::int64_t size() const noexcept { return storage_ ? view_.size() : 0; }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + size(); }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + size(); }

  // The view that operations take.
  [[nodiscard]] View<T, Rank> view() noexcept { return view_; }
  [[nodiscard]] View<const T, Rank> view() const noexcept { return view_; }
  operator View<T, Rank>() noexcept { return view_; }              // NOLINT(runtime/explicit)
  operator View<const T, Rank>() const noexcept { return view_; }  // NOLINT(runtime/explicit)
  operator View<const T, Rank>() noexcept { return view_; }        // NOLINT(runtime/explicit)

  // The element at (i0, i1, …); as many indices as axes, unchecked.
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
