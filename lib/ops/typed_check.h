// What check.h asks of views, asked of those whose type the program learns as it runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headlight/typed_view.h"
#include "ops/check.h"

namespace headlight::ops {

// Checks that numbers of that type can be widened to float32 by themselves.
inline void check_stored_type(std::string_view operation, std::string_view argument, NumberType type) {
  if (type == NumberType::float32 || type == NumberType::bfloat16 || type == NumberType::float16) return;
  const std::string_view named = name(type);
  fail(operation, std::string(argument) + " has type " +
                      (named.empty() ? std::to_string(static_cast<int>(type)) : std::string(named)) +
                      ", expected float32, bfloat16 or float16");
}

template <int Rank, class Pointer>
Extent check_view(std::string_view operation, std::string_view argument, const AnyTypedView<Rank, Pointer>& view) {
  if (reinterpret_cast<std::uintptr_t>(view.data) % bytes_of(view.type) != 0) {
    fail(operation, std::string(argument) + " lies at an address that is no multiple of a number's " +
                        std::to_string(bytes_of(view.type)) + " bytes");
  }
  return check_view(operation, argument, static_cast<const void*>(view.data), bytes_of(view.type), view.shape,
                    view.strides);
}

template <int Rank>
Extent check_output(std::string_view operation, std::string_view argument, const MutableTypedView<Rank>& view,
                    std::span<const std::int64_t> expected, std::string_view meaning) {
  check_shape(operation, argument, view.shape, expected, meaning);
  check_no_self_overlap(operation, argument, view.shape, view.strides);
  return check_view(operation, argument, view);
}

}  // namespace headlight::ops
