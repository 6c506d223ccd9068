// Every way to combine heads.
#pragma once

#include <array>

#include "headlight/merge_kind.h"

namespace headlight::test {

inline constexpr std::array kMerges = {Merge::concatenate,       Merge::average,       Merge::weighted,
                                       Merge::weighted_by_input, Merge::gated_by_head, Merge::gated_by_element};

}  // namespace headlight::test
