#include <cstdlib>

#include "native_peers/best_setting.h"
#include "native_peers/fortran_blas.h"
#include "native_peers/loaders.h"
#include "native_peers/shared_library.h"

namespace headlight::bench {
namespace {

class OpenBlas : public SgemmPeer {
 public:
  OpenBlas()
      : library_({"libopenblas.so.0", "libopenblas.so"}),
        blas_(library_),
        set_threads_(library_.find<void(int)>("openblas_set_num_threads")),
        config_(library_.find<const char*()>("openblas_get_config")),
        core_(library_.find<const char*()>("openblas_get_corename")) {}

  [[nodiscard]] bool complete() const { return blas_.complete() && set_threads_ && config_ && core_; }
  [[nodiscard]] std::string name() const override { return "OpenBLAS"; }
  [[nodiscard]] std::string version() const override {
    // "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64"
    const std::string config = config_();
    const std::size_t begin = config.find(' ') + 1;
    return config.substr(begin, config.find(' ', begin) - begin) + " " + core_();
  }
  void set_threads(int threads) override { set_threads_(threads); }
  void multiply(const SgemmCall& call) override { blas_.multiply(call); }

 private:
  SharedLibrary library_;
  FortranBlas blas_;
  void (*set_threads_)(int);
  const char* (*config_)();
  const char* (*core_)();
};

std::unique_ptr<SgemmPeer> load() {
  auto peer = std::make_unique<OpenBlas>();
  if (!peer->complete()) return nullptr;
  return peer;
}

}  // namespace

std::unique_ptr<SgemmPeer> load_openblas() {
  // Its idle workers spin for 2²⁶ cycles, far into what comes next; 2²⁰ are enough to meet the next call of a series.
  ::setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
  // It takes the kernels of the newest CPU that it knows by name, so on newer ones its default may be half as fast.
  choose_best_setting("OPENBLAS_CORETYPE", {"", "Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"}, load);
  return load();
}

}  // namespace headlight::bench
