// Lists in messages and documents: "query, key, value".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headlight::runtime {

// One more at the end. Items are not empty: the list begins with the first that is not.
inline void append_item(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

// All of a range of strings.
template <class Items>
[[nodiscard]] std::string list_text(const Items& items) {
  std::string list;
  for (const std::string_view item : items) append_item(list, item);
  return list;
}

// A shape: "[2, 5, 3, 64]".
[[nodiscard]] inline std::string describe(std::span<const std::int64_t> shape) {
  std::string extents;
  for (const std::int64_t extent : shape) append_item(extents, std::to_string(extent));
  return "[" + extents + "]";
}

}  // namespace headlight::runtime
