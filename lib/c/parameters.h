// Parameters by number and by name: those of layers, and what optimisers keep of them.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/c/engine.h"
#include "headlight/parameters.h"

namespace headlight::c {

// Name, rank and shape of number `index`, where they are asked.
void tell(const char* operation, std::span<const Parameter> list, std::int64_t index, const char** name,
          std::int32_t* rank, const std::int64_t** shape);

// The parameter (or moment) of that name; the caller's tensor has its shape, and no gaps.
[[nodiscard]] const Parameter& matching(const char* operation, std::span<const Parameter> list, const char* name,
                                        const headlight_tensor* values);

}  // namespace headlight::c
