#include "headlight/system.h"

#include "headlight/version.h"
#include "runtime/caches.h"
#include "runtime/cores.h"
#include "runtime/cpu.h"

namespace headlight {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang++ " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
  return "g++ " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

}  // namespace

SystemInfo system_info() {
  SystemInfo info;
  info.version = std::to_string(HEADLIGHT_VERSION_MAJOR) + "." + std::to_string(HEADLIGHT_VERSION_MINOR) + "." +
                 std::to_string(HEADLIGHT_VERSION_PATCH);
  info.compiler = compiler();
  info.cpu_name = runtime::cpu_name();
  const runtime::CacheSizes caches = runtime::cache_sizes();
  info.l1_data_bytes = caches.l1_data;
  info.l2_bytes = caches.l2;
  info.l3_bytes = caches.l3;
  info.cores = runtime::granted_cores();
  return info;
}

}  // namespace headlight
