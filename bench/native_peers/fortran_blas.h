// The BLAS's own sgemm_ and sgemv_, whose matrices lie column by column: (A·B)ᵀ = Bᵀ·Aᵀ turns ours into theirs.
#pragma once

#include "native_peers/sgemm_peer.h"
#include "native_peers/shared_library.h"

namespace headlight::bench {

class FortranBlas {
 public:
  explicit FortranBlas(const SharedLibrary& library)
      : sgemm_(library.find<Sgemm>("sgemm_")), sgemv_(library.find<Sgemv>("sgemv_")) {}

  [[nodiscard]] bool complete() const noexcept { return sgemm_ && sgemv_; }

  void multiply(const SgemmCall& call) const {
    const int m = static_cast<int>(call.m);
    const int n = static_cast<int>(call.n);
    const int k = static_cast<int>(call.k);
    const int lda = static_cast<int>(call.lda);
    const int ldb = static_cast<int>(call.ldb);
    const int ldc = static_cast<int>(call.ldc);
    if (m == 1) {  // a row by a matrix has a function of its own, and a faster one
      const int a_step = call.transpose_a ? lda : 1;
      const int one = 1;
      sgemv_(call.transpose_b ? "T" : "N", call.transpose_b ? &k : &n, call.transpose_b ? &n : &k, &call.alpha, call.b,
             &ldb, call.a, &a_step, &call.beta, call.c, &one);
      return;
    }
    sgemm_(call.transpose_b ? "T" : "N", call.transpose_a ? "T" : "N", &n, &m, &k, &call.alpha, call.b, &ldb, call.a,
           &lda, &call.beta, call.c, &ldc);
  }

 private:
  using Sgemm = void(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
                     const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                     const float* beta, float* c, const int* ldc);
  using Sgemv = void(const char* transpose, const int* m, const int* n, const float* alpha, const float* a,
                     const int* lda, const float* x, const int* x_step, const float* beta, float* y, const int* y_step);

  Sgemm* sgemm_;
  Sgemv* sgemv_;
};

}  // namespace headlight::bench
