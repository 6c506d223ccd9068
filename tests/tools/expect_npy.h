// What a subcommand wrote, held against what it should have written.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/models/npy.h"
#include "headlight/tensor.h"
#include "support/compare.h"

namespace headlight::test {

// The float32 array at `path` has the shape and the bits of `expected`.
template <int Rank>
void expect_npy(const std::string& path, const Tensor<float, Rank>& expected) {
  const models::Array<float> found = models::read_npy<float>(path);
  ASSERT_EQ(found.shape, std::vector<std::int64_t>(expected.shape().begin(), expected.shape().end())) << path;
  EXPECT_TRUE(same_bits(View<const float, Rank>(found.values.data(), expected.shape()), expected.view())) << path;
}

}  // namespace headlight::test
