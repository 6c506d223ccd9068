#include <cstdlib>

#include "native_peers/loaders.h"
#include "native_peers/onednn_packed.h"
#include "native_peers/shared_library.h"

namespace headlight::bench {
namespace {

using DnnlSgemm = int(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                      const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                      std::int64_t ldc);

// The head of dnnl_version_t.
struct DnnlVersion {
  int major;
  int minor;
  int patch;
};

class OneDnn : public SgemmPeer {
 public:
  OneDnn()
      : library_({"libdnnl.so.2", "libdnnl.so.3", "libdnnl.so"}),
        openmp_({"libgomp.so.1"}),
        sgemm_(library_.find<DnnlSgemm>("dnnl_sgemm")),
        version_(library_.find<const DnnlVersion*()>("dnnl_version")),
        set_threads_(openmp_.find<void(int)>("omp_set_num_threads")) {}

  [[nodiscard]] bool complete() const { return sgemm_ && version_ && set_threads_; }
  [[nodiscard]] std::string name() const override { return "oneDNN"; }
  [[nodiscard]] std::string version() const override {
    const DnnlVersion& version = *version_();
    return std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
  }
  void set_threads(int threads) override { set_threads_(threads); }
  void multiply(const SgemmCall& call) override {
    sgemm_(call.transpose_a ? 'T' : 'N', call.transpose_b ? 'T' : 'N', call.m, call.n, call.k, call.alpha, call.a,
           call.lda, call.b, call.ldb, call.beta, call.c, call.ldc);
  }
  [[nodiscard]] std::function<void()> packed(const SgemmCall& call, int threads, NumberType type) override {
    set_threads(threads);
    const std::function<void()> product = onednn_packed_product(library_, call, type);
    if (!product) return {};
    return [this, product, threads] {
      set_threads(threads);
      product();
    };
  }

 private:
  SharedLibrary library_;
  SharedLibrary openmp_;
  DnnlSgemm* sgemm_;
  const DnnlVersion* (*version_)();
  void (*set_threads_)(int);
};

}  // namespace

std::unique_ptr<SgemmPeer> load_onednn() {
  // OpenMP's idle workers spin for milliseconds by default, far into what comes next; these are some tenths.
  ::setenv("GOMP_SPINCOUNT", "10000", 0);
  auto peer = std::make_unique<OneDnn>();
  if (!peer->complete()) return nullptr;
  return peer;
}

}  // namespace headlight::bench
