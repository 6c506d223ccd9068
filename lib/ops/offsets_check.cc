#include "ops/offsets_check.h"

#include <cstddef>

#include "ops/check.h"

namespace headlight::ops {

void check_offsets(std::string_view operation, std::string_view name, std::span<const std::int64_t> offsets,
                   std::int64_t length, std::string_view axis) {
  if (offsets.empty()) fail(operation, name, " is empty, expected [n + 1] entries from 0 to ", axis);
  if (offsets.front() != 0) fail(operation, name, "[0] is ", offsets.front(), ", expected 0");
  for (std::size_t s = 1; s < offsets.size(); ++s) {
    if (offsets[s] < offsets[s - 1]) {
      fail(operation, name, "[", s, "] is ", offsets[s], ", less than the ", offsets[s - 1], " before it");
    }
  }
  if (offsets.back() != length) {
    fail(operation, name, " ends with ", offsets.back(), ", expected ", axis, " = ", length);
  }
}

}  // namespace headlight::ops
