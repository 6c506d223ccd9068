// Parameters by number and by name: those of layers, and what optimisers keep of them.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/c/engine.h"
#include "headlight/layers/layer.h"
#include "headlight/parameters.h"

namespace headlight::c {

// Name, rank and shape of number `index`, where they are asked. An entry is a Parameter or a layers::ParameterPlace.
template <class Entry>
void tell(const char* operation, const std::vector<Entry>& list, std::int64_t index, const char** name,
          std::int32_t* rank, const std::int64_t** shape);

// The parameter (or moment) of that name; the caller's tensor has its shape, and no gaps.
template <class Entry>
[[nodiscard]] const Entry& matching(const char* operation, const std::vector<Entry>& list, const char* name,
                                    const headlight_tensor* values);

}  // namespace headlight::c
