// Tensors of any type that floats can be stored in, and what they hold.
#pragma once

#include <cstring>
#include <vector>

#include "headlight/typed_view.h"

namespace headlight::test {

// The bits of a float in that type, in the lower bytes.
[[nodiscard]] inline std::uint32_t stored_bits(float value, NumberType type) {
  if (type == NumberType::bfloat16) return BFloat16(value).bits;
  if (type == NumberType::float16) return Float16(value).bits;
  return std::bit_cast<std::uint32_t>(value);
}
[[nodiscard]] inline float widened(std::uint32_t bits, NumberType type) {
  if (type == NumberType::bfloat16) return static_cast<float>(BFloat16::from_bits(static_cast<std::uint16_t>(bits)));
  if (type == NumberType::float16) return static_cast<float>(Float16::from_bits(static_cast<std::uint16_t>(bits)));
  return std::bit_cast<float>(bits);
}
[[nodiscard]] inline float rounded_to(NumberType type, float value) { return widened(stored_bits(value, type), type); }

// Number n of memory of that type.
inline void put(void* memory, std::int64_t n, float value, NumberType type) {
  const std::uint32_t bits = stored_bits(value, type);
  const std::size_t size = bytes_of(type);
  std::memcpy(static_cast<std::byte*>(memory) + static_cast<std::size_t>(n) * size, &bits, size);
}
[[nodiscard]] inline float get(const void* memory, std::int64_t n, NumberType type) {
  std::uint32_t bits = 0;
  const std::size_t size = bytes_of(type);
  std::memcpy(&bits, static_cast<const std::byte*>(memory) + static_cast<std::size_t>(n) * size, size);
  return widened(bits, type);
}

// The numbers of a tensor, each as a float has it, stored anew.
class Stored {
 public:
  Stored(NumberType type, const View<float, 4>::Shape& shape)
      : type_(type),
        shape_(shape),
        memory_(static_cast<std::size_t>(View<float, 4>(nullptr, shape).size()) * bytes_of(type)) {}
  Stored(NumberType type, const Tensor<float, 4>& from) : Stored(type, from.shape()) {
    std::int64_t n = 0;
    for (const float number : from) put(memory_.data(), n++, number, type);
  }

  [[nodiscard]] MutableTypedView<4> view() { return {type_, memory_.data(), shape_}; }
  [[nodiscard]] const View<float, 4>::Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] Tensor<float, 4> floats() const {
    Tensor<float, 4> tensor(shape_);
    std::int64_t n = 0;
    for (float& number : tensor) number = get(memory_.data(), n++, type_);
    return tensor;
  }

 private:
  NumberType type_;
  View<float, 4>::Shape shape_;
  std::vector<std::byte> memory_;
};

// Every element of a tensor rounded.
[[nodiscard]] inline Tensor<float, 4> rounded_to(NumberType type, const Tensor<float, 4>& from) {
  return Stored(type, from).floats();
}

inline constexpr std::array kStoredTypes = {NumberType::float32, NumberType::bfloat16, NumberType::float16};

}  // namespace headlight::test
