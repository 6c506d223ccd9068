// What a subcommand wrote, held against what it should have written.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/models/npy.h"
#include "headlight/tensor.h"
#include "support/compare.h"

namespace headlight::test {

// The float32 array at `path` has the shape and the bits of `expected`; or another shape of as many elements.
template <int Rank>
void expect_npy(const std::string& path, const Tensor<float, Rank>& expected,
                const std::optional<std::vector<std::int64_t>>& shape = std::nullopt) {
  const models::Array<float> found = models::read_npy<float>(path);
  ASSERT_EQ(found.shape, shape.value_or(std::vector(expected.shape().begin(), expected.shape().end()))) << path;
  EXPECT_TRUE(same_bits(View<const float, Rank>(found.values.data(), expected.shape()), expected.view())) << path;
}

}  // namespace headlight::test
