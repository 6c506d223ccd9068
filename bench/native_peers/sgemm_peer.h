// Other libraries' matrix products, loaded at run time: nothing of ours links them, and one that is absent is a row
// less.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headlight/number_type.h"

namespace headlight::bench {

// C [m, n] = α · op(A) · op(B) + β · C, row by row in memory; lda, ldb, ldc are the distances between rows.
struct SgemmCall {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  bool transpose_a = false;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  bool transpose_b = false;
  float* c = nullptr;
  std::int64_t ldc = 0;
  float alpha = 1;
  float beta = 0;
};

class SgemmPeer {
 public:
  virtual ~SgemmPeer() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  // With the setting that was found to be the fastest: "0.3.21 SkylakeX".
  [[nodiscard]] virtual std::string version() const = 0;
  // For calls of the calling thread from now on, before each series of calls: it may cost something.
  virtual void set_threads(int threads) = 0;
  virtual void multiply(const SgemmCall& call) = 0;
  // The same product with B packed ahead, on as many threads; of bfloat16 or int8, A and B are made such ahead, too.
  // Empty where the library cannot. The memory of `call` must outlive the function.
  [[nodiscard]] virtual std::function<void()> packed(const SgemmCall& /*call*/, int /*threads*/, NumberType /*type*/) {
    return {};
  }
};

// What of OpenBLAS, BLIS and oneDNN this machine has, in this order, each loaded once in this process.
[[nodiscard]] const std::vector<std::unique_ptr<SgemmPeer>>& sgemm_peers();

}  // namespace headlight::bench
