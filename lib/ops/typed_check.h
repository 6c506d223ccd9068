// What check.h asks of views, asked of those whose type the program learns as it runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headlight/typed_view.h"
#include "ops/check.h"
#include "runtime/built_types.h"

namespace headlight::ops {

// As messages name a type, or what is none.
inline std::string type_name(NumberType type) {
  const std::string_view named = name(type);
  return named.empty() ? std::to_string(static_cast<int>(type)) : std::string(named);
}

// Checks that kernels of that type are in this build.
inline void check_built_type(std::string_view operation, std::string_view argument, NumberType type) {
  if (runtime::is_built(type)) return;
  fail(operation, argument, " is ", type_name(type), ", which this build lacks: HEADLIGHT_TYPES is ",
       runtime::kBuiltTypes);
}

// Checks that numbers of that type can be widened to float32 by themselves.
[[noreturn, gnu::cold]] void fail_widened_type(std::string_view operation, std::string_view argument, NumberType type);
inline void check_widened_type(std::string_view operation, std::string_view argument, NumberType type) {
  if (type == NumberType::float32 || type == NumberType::bfloat16 || type == NumberType::float16) return;
  fail_widened_type(operation, argument, type);
}

// The same where kernels of their own read and write them.
inline void check_stored_type(std::string_view operation, std::string_view argument, NumberType type) {
  check_widened_type(operation, argument, type);
  check_built_type(operation, argument, type);
}

// The same where rows of int8 may stand for floats, with their scales.
inline void check_cached_type(std::string_view operation, std::string_view argument, NumberType type) {
  if (type <= NumberType::int8) return check_built_type(operation, argument, type);
  fail(operation, argument, " has type ", type_name(type), ", expected float32, bfloat16, float16 or int8");
}

// Scales of rows, as a view whose last stride is 1.
template <class T>
[[nodiscard]] View<T, 4> each_scale(const View<T, 3>& scales) noexcept {
  const auto& [batch, length, heads] = scales.shape;
  const auto& [of_batch, of_length, of_head] = scales.strides;
  return {scales.data, {batch, length, heads, 1}, {of_batch, of_length, of_head, 1}};
}

// Of any sizes. Apart from check_view(), which has no frame then.
template <int Rank, class Pointer>
[[gnu::noinline]] Extent check_any_view(std::string_view operation, std::string_view argument,
                                        const AnyTypedView<Rank, Pointer>& view) {
  return check_view(operation, argument, static_cast<const void*>(view.data), bytes_of(view.type),
                    std::span<const std::int64_t>(view.shape), std::span<const std::int64_t>(view.strides));
}
template <int Rank, class Pointer>
Extent check_view(std::string_view operation, std::string_view argument, const AnyTypedView<Rank, Pointer>& view) {
  const std::size_t bytes = bytes_of(view.type);
  const std::uintptr_t end = plain_end(view.data, bytes, view.shape, view.strides);
  if (end != 0)
    return {reinterpret_cast<std::uintptr_t>(view.data),
            end,
            view.shape.data(),
            view.strides.data(),
            Rank,
            static_cast<std::int32_t>(bytes)};
  return check_any_view(operation, argument, view);
}

template <int Rank>
Extent check_output(std::string_view operation, std::string_view argument, const MutableTypedView<Rank>& view) {
  const Extent extent = check_view(operation, argument, view);
  check_no_self_overlap(operation, argument, view.shape, view.strides);
  return extent;
}
template <int Rank>
Extent check_output(std::string_view operation, std::string_view argument, const MutableTypedView<Rank>& view,
                    std::span<const std::int64_t> expected, std::string_view meaning) {
  check_shape(operation, argument, view.shape, expected, meaning);
  return check_output(operation, argument, view);
}

}  // namespace headlight::ops
