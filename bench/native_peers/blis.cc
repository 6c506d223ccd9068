#include "native_peers/best_setting.h"
#include "native_peers/fortran_blas.h"
#include "native_peers/loaders.h"
#include "native_peers/shared_library.h"

namespace headlight::bench {
namespace {

class Blis : public SgemmPeer {
 public:
  Blis()
      : library_({"/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4", "libblis.so.4", "libblis.so"}),
        blas_(library_),
        // dim_t, which is an int of 32 or 64 bits by build: in a register both read the same.
        set_threads_(library_.find<void(std::int64_t)>("bli_thread_set_num_threads")),
        version_(library_.find<const char*()>("bli_info_get_version_str")),
        query_(library_.find<int()>("bli_arch_query_id")),
        arch_(library_.find<const char*(int)>("bli_arch_string")) {
    // Asked which kernels it took before it took any, it aborts.
    if (auto* const initialise = library_.find<void()>("bli_init")) initialise();
  }

  [[nodiscard]] bool complete() const { return blas_.complete() && set_threads_ && version_ && query_ && arch_; }
  [[nodiscard]] std::string name() const override { return "BLIS"; }
  [[nodiscard]] std::string version() const override { return std::string(version_()) + " " + arch_(query_()); }
  void set_threads(int threads) override { set_threads_(threads); }
  void multiply(const SgemmCall& call) override { blas_.multiply(call); }

 private:
  SharedLibrary library_;
  FortranBlas blas_;
  void (*set_threads_)(std::int64_t);
  const char* (*version_)();
  int (*query_)();
  const char* (*arch_)(int);
};

std::unique_ptr<SgemmPeer> load() {
  auto peer = std::make_unique<Blis>();
  if (!peer->complete()) return nullptr;
  return peer;
}

}  // namespace

std::unique_ptr<SgemmPeer> load_blis() {
  // Numbers of its own list of CPUs (skx, knl, knc, haswell, sandybridge, penryn, zen3, zen2, zen …); it takes the
  // plain C kernels on one that it does not know.
  choose_best_setting("BLIS_ARCH_TYPE", {"", "0", "3", "6", "7", "8"}, load);
  return load();
}

}  // namespace headlight::bench
