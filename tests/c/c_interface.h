// What tests of the C interface against C++ share.
#pragma once

#include <gtest/gtest.h>

#include "c/handles.h"
#include "headlight/headlight.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/workers.h"

namespace headlight::same_bits_test {

using test::AllocationCounter;
using test::Random;
using test::same_bits;

// A tensor of the C++ interface as one of C.
template <int Rank>
headlight_tensor in_c(const Tensor<float, Rank>& tensor) {
  return {const_cast<float*>(tensor.data()), HEADLIGHT_FLOAT32, Rank, tensor.shape().data(), nullptr};
}

class CInterface : public testing::Test {
 protected:
  CInterface() {
    headlight_engine_options options = HEADLIGHT_OPTIONS(headlight_engine_options);
    options.threads = 2;
    EXPECT_EQ(headlight_engine_create(&options, &engine_, &error_), HEADLIGHT_OK);
    test::wait_for_workers(engine_->engine);
  }
  ~CInterface() override { headlight_engine_destroy(engine_); }

  // Allocations of the second of two calls.
  template <class Call>
  std::int64_t allocations(Call call) {
    EXPECT_EQ(call(), HEADLIGHT_OK) << error_.message;
    const AllocationCounter counter;
    const headlight_status status = call();
    const std::int64_t count = counter.count();
    EXPECT_EQ(status, HEADLIGHT_OK) << error_.message;
    return count;
  }

  headlight_engine* engine_ = nullptr;
  headlight_error error_{};
  Random random_{5};
};

}  // namespace headlight::same_bits_test
