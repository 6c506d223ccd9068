// The names and shapes of headlight::Network's parameters, before there is one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headlight/layers/network_spec.h"

namespace headlight::models {

// Takes "blocks.3.attention.query.weight" and [H · D, E].
using TakeParameter = std::function<void(const std::string& name, const std::vector<std::int64_t>& shape)>;

// Calls take() for each, block by block: nothing is kept of those that come after one for which it throws. Every size
// of the specification is set.
void for_each_parameter(const NetworkSpec& spec, const TakeParameter& take);

}  // namespace headlight::models
