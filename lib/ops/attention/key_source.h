// Keys and values of a call, wherever they lie: whoever computes asks for blocks, and does not know.
#pragma once

#include <cstdint>

#include "headlight/typed_view.h"
#include "headlight/view.h"
#include "kernels/attention/kernels.h"
#include "ops/rows/typed.h"

namespace headlight::ops {

class KeySource {
 public:
  KeySource() = default;
  // key [B, n, Hkv, Dqk] and value [B, n, Hkv, Dv] hold the keys first … first + n − 1: all there are of a tensor, or
  // those that have just come.
  KeySource(const View<const float, 4>& key, const View<const float, 4>& value, std::int64_t first = 0) noexcept
      : key_(rows_of(key, NumberType::float32)),
        value_(rows_of(value, NumberType::float32)),
        head_dim_(key.extent(3)),
        value_dim_(value.extent(3)),
        first_(first) {}
  KeySource(const TypedView<4>& key, const TypedView<4>& value, std::int64_t first) noexcept
      : KeySource(key, value, {}, {}, first) {}
  // Rows of int8 have scales [B, n, Hkv].
  KeySource(const TypedView<4>& key, const TypedView<4>& value, const View<const float, 3>& key_scales = {},
            const View<const float, 3>& value_scales = {}, std::int64_t first = 0) noexcept
      : key_(rows_of(key, key.type)),
        value_(rows_of(value, value.type)),
        head_dim_(key.extent(3)),
        value_dim_(value.extent(3)),
        first_(first) {
    if (key.type == NumberType::int8) key_.set_scales(key_scales);
    if (value.type == NumberType::int8) value_.set_scales(value_scales);
  }

  // Keys first … first + count − 1 of a head, all of one key block, as rows.
  [[nodiscard]] kernels::KeyValueBlock block(std::int64_t sample, std::int64_t head, std::int64_t first,
                                             std::int64_t count) const noexcept {
    return {.key = key_.rows(sample, first - first_, head),
            .value = value_.rows(sample, first - first_, head),
            .count = count,
            .head_dim = head_dim_,
            .value_dim = value_dim_,
            .values_not_finite = false};
  }
  // From a block of one head to the same block of the next, in numbers.
  [[nodiscard]] std::int64_t key_head_stride() const noexcept { return key_.head_stride; }
  [[nodiscard]] std::int64_t value_head_stride() const noexcept { return value_.head_stride; }
  // The same in scales, 0 where there are none.
  [[nodiscard]] std::int64_t key_scale_head_stride() const noexcept { return key_.scales.strides[2]; }
  [[nodiscard]] std::int64_t value_scale_head_stride() const noexcept { return value_.scales.strides[2]; }

 private:
  struct Rows {
    NumberType type;
    const void* data;
    std::int64_t sample_stride;
    std::int64_t stride;
    std::int64_t head_stride;
    View<const float, 3> scales;  // strides alone matter

    // From a single key no stride leads to another, as below.
    void set_scales(const View<const float, 3>& given) noexcept {
      scales = given;
      if (given.extent(1) <= 1) scales.strides[1] = 0;
    }
    [[nodiscard]] kernels::Operand rows(std::int64_t sample, std::int64_t row, std::int64_t head) const noexcept {
      const std::int64_t at = sample * sample_stride + row * stride + head * head_stride;
      kernels::Operand operand{.type = type, .stride = stride, .data = kernels::numbers_behind(data, at, type)};
      if (scales) {
        operand.scales = &scales(sample, row, head);
        operand.scale_stride = scales.strides[1];
      }
      return operand;
    }
  };
  // From a single key no stride leads to another: any is allowed, and kernels that ask for memory ahead would multiply
  // it.
  template <class AnyView>
  [[nodiscard]] static Rows rows_of(const AnyView& view, NumberType type) noexcept {
    return {type, view.data, view.stride(0), view.extent(1) > 1 ? view.stride(1) : 0, view.stride(2), {}};
  }

  Rows key_{};
  Rows value_{};
  std::int64_t head_dim_ = 0;
  std::int64_t value_dim_ = 0;
  std::int64_t first_ = 0;
};

}  // namespace headlight::ops
