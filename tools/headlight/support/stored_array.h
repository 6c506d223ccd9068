// Arrays of float32, bfloat16 or float16, whichever the user names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headlight/storage_types.h"
#include "headlight/tensor.h"
#include "headlight/typed_view.h"

namespace headlight::program {

// A contiguous array of numbers of one of these types, read and written as floats.
class StoredArray {
 public:
  StoredArray() = default;
  // Of zeros.
  StoredArray(NumberType type, const MutableTypedView<4>::Shape& shape)
      : words_({(View<const float, 4>(nullptr, shape).size() * static_cast<std::int64_t>(bytes_of(type)) + 3) / 4}),
        view_(type, words_.data(), shape) {}
  // Of those numbers, rounded; none, of a view without memory.
  StoredArray(NumberType type, const View<const float, 4>& from) : view_(type, nullptr, from.shape) {
    if (!from) return;
    *this = StoredArray(type, from.shape);
    for (std::int64_t n = 0; n < from.size(); ++n) set(n, from.data[n]);
  }

  [[nodiscard]] const MutableTypedView<4>& view() const noexcept { return view_; }
  [[nodiscard]] std::int64_t size() const noexcept { return view_.size(); }
  void set(std::int64_t n, float number) noexcept {
    if (view_.type == NumberType::bfloat16) return put(n, BFloat16(number));
    if (view_.type == NumberType::float16) return put(n, Float16(number));
    put(n, number);
  }
  [[nodiscard]] float operator[](std::int64_t n) const noexcept {
    if (view_.type == NumberType::bfloat16) return static_cast<float>(get<BFloat16>(n));
    if (view_.type == NumberType::float16) return static_cast<float>(get<Float16>(n));
    return get<float>(n);
  }
  void widen_into(const View<float, 4>& to) const noexcept {
    for (std::int64_t n = 0; n < to.size(); ++n) to.data[n] = (*this)[n];
  }

 private:
  template <class T>
  void put(std::int64_t n, T number) noexcept {
    std::memcpy(static_cast<std::byte*>(view_.data) + static_cast<std::size_t>(n) * sizeof(T), &number, sizeof(T));
  }
  template <class T>
  [[nodiscard]] T get(std::int64_t n) const noexcept {
    T number;
    std::memcpy(&number, static_cast<const std::byte*>(view_.data) + static_cast<std::size_t>(n) * sizeof(T),
                sizeof(T));
    return number;
  }

  Tensor<float, 1> words_;
  MutableTypedView<4> view_;
};

}  // namespace headlight::program
