// Checks at the public edge, and the one way in which they speak: "attention: key has shape [2, 5, 3, 64], expected …".
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "headlight/tensor.h"
#include "ops/message_part.h"
#include "runtime/inner_api.h"

namespace headlight::ops {

// Throws std::invalid_argument("operation: message"), with the message in one piece, or in parts of any kind in order.
[[noreturn]] HEADLIGHT_INNER_API void fail(std::string_view operation, const std::string& message);
[[noreturn, gnu::cold]] HEADLIGHT_INNER_API void fail_with(std::string_view operation, const MessagePart* parts,
                                                           std::size_t count);
template <class First, class Second, class... More>
[[noreturn, gnu::always_inline]] inline void fail(std::string_view operation, const First& first, const Second& second,
                                                  const More&... more) {
  const MessagePart parts[] = {MessagePart(first), MessagePart(second), MessagePart(more)...};
  fail_with(operation, parts, std::size(parts));
}

// "[2, 5, 3, 64]"
[[nodiscard]] HEADLIGHT_INNER_API std::string describe(std::span<const std::int64_t> shape);

// As short as it can be read back: a soft cap of 1e-40 is not "0.000000".
[[nodiscard]] std::string text_of(float number);

// What a view touches: a half-open range of addresses – as numbers, empty for a view without elements; and which of
// them, by the shape and strides of the view, which it must not outlive. Without axes: all of them.
struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  const std::int64_t* shape = nullptr;
  const std::int64_t* strides = nullptr;  // in elements
  std::int32_t rank = 0;
  std::int32_t element_size = 1;

  // Of a view that was checked: whether it has no elements.
  [[nodiscard]] bool is_empty() const noexcept { return begin == end; }
};

// Whether all elements of a view of that shape lie as far from its first by either strides: that of an axis of one
// element leads nowhere.
template <std::size_t kAxes>
[[nodiscard]] bool are_same_places(const std::array<std::int64_t, kAxes>& shape,
                                   const std::array<std::int64_t, kAxes>& a,
                                   const std::array<std::int64_t, kAxes>& b) noexcept {
  bool same = true;
  for (std::size_t axis = 0; axis < kAxes; ++axis) same = same && (shape[axis] <= 1 || a[axis] == b[axis]);
  return same;
}

// Whether the ranges overlap. Most views that share nothing lie so far apart.
[[nodiscard]] inline bool ranges_overlap(const Extent& a, const Extent& b) noexcept {
  return !a.is_empty() && !b.is_empty() && a.begin < b.end && b.begin < a.end;
}

// Of views whose ranges overlap, whether they share a byte. Views of one buffer whose elements lie between each other's
// (query, key and value side by side in each row, heads in turns) do not; yes where that cannot be seen.
[[nodiscard, gnu::cold]] bool share_a_byte(const Extent& a, const Extent& b) noexcept;

// That of a list; empty for one without entries. Before its size is checked there may be no such addresses.
template <class T>
[[nodiscard]] Extent extent_of(std::span<T> list) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(list.data());
  return {begin, begin + list.size() * sizeof(T)};
}

// Checks that the address is a multiple of a number's bytes, that every extent is ≥ 0, that sizes and strides address
// less than 2⁶³ bytes, that the pointer is given when there are elements, that the last stride is 1 (when the last axis
// has more than one element) and that strides are ≥ 0. Returns the addresses touched.
HEADLIGHT_INNER_API Extent check_view(std::string_view operation, std::string_view argument, const void* data,
                                      std::size_t element_size, std::span<const std::int64_t> shape,
                                      std::span<const std::int64_t> strides);

// Whether it is a multiple of a number's bytes, which are a power of two.
[[nodiscard]] inline bool is_number_address(const void* data, std::size_t bytes) noexcept {
  return (reinterpret_cast<std::uintptr_t>(data) & (bytes - 1)) == 0;
}

// Checks of four views are a large part of a small attention: those of plain sizes, whose products cannot overflow, end
// here. 0 for all others, and for whatever must be refused: they go the long way.
template <std::size_t kAxes>
[[gnu::always_inline]] inline std::uintptr_t plain_end(const void* data, std::size_t element_size,
                                                       const std::array<std::int64_t, kAxes>& shape,
                                                       const std::array<std::int64_t, kAxes>& of_strides) noexcept {
  constexpr int kExtentBits = 15;
  constexpr int kStrideBits = 40;
  static_assert(kAxes * kExtentBits <= 60 && kExtentBits + kStrideBits + 6 < 63);
  std::uint64_t extents = 0;
  std::uint64_t strides = 0;
  std::uint64_t last = 0;  // unsigned: of sizes that do not pass, it may wrap around
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const auto extent = static_cast<std::uint64_t>(shape[axis]);
    const auto stride = static_cast<std::uint64_t>(of_strides[axis]);
    extents |= extent | (extent - 1);  // an extent of 0 is none of plain size
    strides |= stride;
    last += (extent - 1) * stride;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t end = begin + (static_cast<std::uintptr_t>(last) + 1) * element_size;
  const bool plain = (extents >> kExtentBits | strides >> kStrideBits) == 0 && begin != 0 && begin < end &&
                     is_number_address(data, element_size) && (shape[kAxes - 1] == 1 || of_strides[kAxes - 1] == 1);
  return plain ? end : 0;
}
template <class T, int Rank>
Extent check_view(std::string_view operation, std::string_view argument, const View<T, Rank>& view) {
  const std::uintptr_t end = plain_end(view.data, sizeof(T), view.shape, view.strides);
  if (end != 0)
    return {reinterpret_cast<std::uintptr_t>(view.data), end, view.shape.data(), view.strides.data(), Rank, sizeof(T)};
  return check_view(operation, argument, static_cast<const void*>(view.data), sizeof(T),
                    std::span<const std::int64_t>(view.shape), std::span<const std::int64_t>(view.strides));
}

[[noreturn, gnu::cold]] HEADLIGHT_INNER_API void fail_shape(std::string_view operation, std::string_view argument,
                                                            std::span<const std::int64_t> shape,
                                                            std::span<const std::int64_t> expected,
                                                            std::string_view meaning);
[[noreturn, gnu::cold]] void fail_overlap(std::string_view operation, std::string_view output, std::string_view input);

// Where another argument does not fit the shape of this one, which has neither memory nor a shape: it was not given,
// and is to blame before what was.
template <class AnyView>
void check_given(std::string_view operation, std::string_view argument, const AnyView& view, bool other_fits) {
  if (other_fits || view || view.shape != typename AnyView::Shape{}) return;
  fail(operation, argument, " is not given (a view without memory or shape)");
}

// Checks `view` against the expected shape; −1 in `expected` allows any extent. `meaning` explains it: "[B, Lk, Hkv,
// Dqk]".
inline void check_shape(std::string_view operation, std::string_view argument, std::span<const std::int64_t> shape,
                        std::span<const std::int64_t> expected, std::string_view meaning) {
  bool same = shape.size() == expected.size();
  for (std::size_t axis = 0; same && axis < shape.size(); ++axis) {
    same = expected[axis] == -1 || shape[axis] == expected[axis];
  }
  if (!same) fail_shape(operation, argument, shape, expected, meaning);
}

// Checks that an output shares no byte with an input.
inline void check_disjoint(std::string_view operation, std::string_view output, const Extent& output_extent,
                           std::string_view input, const Extent& input_extent) {
  if (ranges_overlap(output_extent, input_extent) && share_a_byte(output_extent, input_extent)) {
    fail_overlap(operation, output, input);
  }
}

// Checks that no two elements of an output lie at the same address (a stride of 0, or axes that run into each other).
void check_no_self_overlap(std::string_view operation, std::string_view output, std::span<const std::int64_t> shape,
                           std::span<const std::int64_t> strides);

// An output: what every view must be, no two elements at one address, and of that shape.
template <class T, int Rank>
Extent check_output(std::string_view operation, std::string_view argument, const View<T, Rank>& view) {
  const Extent extent = check_view(operation, argument, view);
  check_no_self_overlap(operation, argument, view.shape, view.strides);
  return extent;
}
template <class T, int Rank>
Extent check_output(std::string_view operation, std::string_view argument, const View<T, Rank>& view,
                    std::span<const std::int64_t> expected, std::string_view meaning) {
  check_shape(operation, argument, view.shape, expected, meaning);
  return check_output(operation, argument, view);
}

// Checks the length of a list, which may be empty.
inline void check_length(std::string_view operation, std::string_view argument, std::size_t length,
                         std::int64_t expected, std::string_view meaning) {
  if (length == 0) return;
  const auto of_list = static_cast<std::int64_t>(length);
  check_shape(operation, argument, {&of_list, 1}, {&expected, 1}, meaning);
}

// Checks that it is in [0, 1), the range of dropout.
HEADLIGHT_INNER_API void check_probability(std::string_view operation, std::string_view argument, float probability);

}  // namespace headlight::ops
