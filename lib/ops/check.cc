#include "ops/check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "ops/typed_check.h"
#include "runtime/list_text.h"

namespace headlight::ops {

namespace {
// The most axes that a view of ours has, and some to spare.
constexpr std::size_t kMaxRank = 8;

// check_no_self_overlap() where axes lie in another order than that of memory.
void check_axes_in_any_order(std::string_view operation, std::string_view output, std::span<const std::int64_t> shape,
                             std::span<const std::int64_t> strides) {
  std::array<std::pair<std::int64_t, std::int64_t>, kMaxRank> axes{};  // stride, extent; ascending, without the heap
  std::size_t count = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    std::size_t place = count++;
    for (; place > 0 && axes[place - 1].first > strides[axis]; --place) axes[place] = axes[place - 1];
    axes[place] = {strides[axis], shape[axis]};
  }
  std::int64_t reach = 0;
  for (std::size_t axis = 0; axis < count; ++axis) {
    const auto [stride, extent] = axes[axis];
    if (stride <= reach) {
      fail(operation, output, " of shape ", shape, " and strides ", strides, " overlaps itself in memory");
    }
    reach += stride * (extent - 1);
  }
}

// Bytes from the first to the last that a view touches without a stride of whole periods: it lies in the first so many
// of some periods, counted from its own begin, if they are no more than one.
std::int64_t bytes_within(const Extent& extent, std::int64_t period) noexcept {
  if (extent.rank == 0) return static_cast<std::int64_t>(extent.end - extent.begin);
  std::int64_t bytes = extent.element_size;
  for (std::int32_t axis = 0; axis < extent.rank; ++axis) {
    if (extent.shape[axis] == 1) continue;  // a stride that no index takes may be any
    const std::int64_t stride = extent.strides[axis] * extent.element_size;
    if (stride % period != 0) bytes += (extent.shape[axis] - 1) * stride;
  }
  return bytes;
}

// Whether two views lie in different parts of each period.
bool lie_apart(const Extent& a, const Extent& b, std::int64_t period) noexcept {
  const auto distance = static_cast<std::int64_t>(b.begin) - static_cast<std::int64_t>(a.begin);
  const std::int64_t b_begins = (distance % period + period) % period;
  return bytes_within(a, period) <= b_begins && bytes_within(b, period) <= period - b_begins;
}

}  // namespace

// A period that shows it, if there is one, is a stride of one of the two: of the rows of their buffer, say.
bool share_a_byte(const Extent& a, const Extent& b) noexcept {
  for (const Extent& of : {a, b}) {
    for (std::int32_t axis = 0; axis < of.rank; ++axis) {
      if (of.shape[axis] == 1) continue;
      const std::int64_t stride = of.strides[axis] * of.element_size;
      if (stride > 0 && lie_apart(a, b, stride)) return false;
    }
  }
  return true;
}

std::string text_of(float number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

void fail(std::string_view operation, const std::string& message) {
  throw std::invalid_argument(std::string(operation) + ": " + message);
}

void MessagePart::add_to(std::string& message) const {
  switch (kind_) {
    case Kind::literal:
      message += text_;
      break;
    case Kind::text:
      message.append(text_, count_);
      break;
    case Kind::integer:
      message += std::to_string(integer_);
      break;
    case Kind::count:
      message += std::to_string(count_);
      break;
    case Kind::number:
      message += std::to_string(number_);
      break;
    case Kind::shape:
      message += describe({shape_, count_});
      break;
  }
}

void fail_with(std::string_view operation, const MessagePart* parts, std::size_t count) {
  std::string message;
  for (std::size_t part = 0; part < count; ++part) parts[part].add_to(message);
  fail(operation, message);
}

std::string describe(std::span<const std::int64_t> shape) { return runtime::describe(shape); }

Extent check_view(std::string_view operation, std::string_view argument, const void* data, std::size_t element_size,
                  std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  std::int64_t count = 1;
  std::int64_t last = 0;
  bool empty = false;
  if (!is_number_address(data, element_size)) {
    fail(operation, argument, " lies at an address that is no multiple of a number's ", element_size, " bytes");
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 0) fail(operation, argument, " has the negative extent ", shape[axis], " on axis ", axis);
    if (strides[axis] < 0) fail(operation, argument, " has the negative stride ", strides[axis], " on axis ", axis);
    empty = empty || shape[axis] == 0;
  }
  if (empty) return {};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(count, shape[axis], &count) ||
        __builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach) || __builtin_add_overflow(last, reach, &last)) {
      fail(operation, argument, " of shape ", shape, " and strides ", strides,
           " has more elements than 64 bits address");
    }
  }
  std::int64_t reached = 0;
  std::int64_t bytes = 0;
  if (__builtin_add_overflow(last, 1, &reached) ||
      __builtin_mul_overflow(std::max(count, reached), static_cast<std::int64_t>(element_size), &bytes)) {
    fail(operation, argument, " of shape ", shape, " and strides ", strides, " has more bytes than 64 bits address");
  }
  if (data == nullptr) fail(operation, argument, " of shape ", shape, " has no memory (a null pointer)");
  if (!shape.empty() && shape.back() > 1 && strides.back() != 1) {
    fail(operation, argument, " has the last stride ", strides.back(), ", expected 1");
  }
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(data);
  std::uintptr_t end = 0;
  if (__builtin_add_overflow(begin, static_cast<std::uintptr_t>(reached) * element_size, &end)) {
    fail(operation, argument, " of shape ", shape, " and strides ", strides, " reaches beyond the last address");
  }
  return {begin,
          end,
          shape.data(),
          strides.data(),
          static_cast<std::int32_t>(shape.size()),
          static_cast<std::int32_t>(element_size)};
}

void fail_shape(std::string_view operation, std::string_view argument, std::span<const std::int64_t> shape,
                std::span<const std::int64_t> expected, std::string_view meaning) {
  std::string wanted = describe(expected);
  for (std::size_t at = wanted.find("-1"); at != std::string::npos; at = wanted.find("-1"))
    wanted.replace(at, 2, "any");
  fail(operation, argument, " has shape ", shape, ", expected ", wanted, " (", meaning, ")");
}

void fail_widened_type(std::string_view operation, std::string_view argument, NumberType type) {
  fail(operation, argument, " has type ", type_name(type), ", expected float32, bfloat16 or float16");
}

void fail_overlap(std::string_view operation, std::string_view output, std::string_view input) {
  fail(operation, output, " overlaps ", input, " in memory");
}

void check_probability(std::string_view operation, std::string_view argument, float probability) {
  if (probability >= 0.0f && probability < 1.0f) return;
  fail(operation, argument, " is ", probability, ", expected a probability in [0, 1)");
}

void check_no_self_overlap(std::string_view operation, std::string_view output, std::span<const std::int64_t> shape,
                           std::span<const std::int64_t> strides) {
  // Axes in the order of memory, the last one innermost, as most views have them, need no sorting.
  for (const std::int64_t extent : shape) {
    if (extent == 0) return;
  }
  std::int64_t row = 0;
  bool in_order = true;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 1) continue;
    in_order = in_order && strides[axis] > row;
    row += strides[axis] * (shape[axis] - 1);
  }
  if (!in_order) check_axes_in_any_order(operation, output, shape, strides);
}

}  // namespace headlight::ops
