#include "runtime/caches.h"

#include <unistd.h>

#include <fstream>

namespace headlight::runtime {
namespace {

// "48K", "2M", "512": the kernel writes K, others are allowed for.
std::int64_t read_size(const std::string& file) {
  std::int64_t number = 0;
  char unit = 0;
  std::ifstream stream(file);
  if (!(stream >> number) || number < 0) return 0;
  stream >> unit;
  const int shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
  return number > (INT64_MAX >> shift) ? 0 : number << shift;
}

#if defined(_SC_LEVEL1_DCACHE_SIZE)
std::int64_t ask_c_library(int name) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : 0;
}
#endif

}  // namespace

CacheSizes read_cache_sizes(const std::string& cache_directory) {
  CacheSizes sizes;
  for (int index = 0;; ++index) {
    const std::string directory = cache_directory + "/index" + std::to_string(index);
    int level = 0;
    if (!(std::ifstream(directory + "/level") >> level)) return sizes;
    std::string type;
    std::ifstream(directory + "/type") >> type;
    if (type != "Data" && type != "Unified") continue;
    const std::int64_t bytes = read_size(directory + "/size");
    if (level == 1) sizes.l1_data = bytes;
    if (level == 2) sizes.l2 = bytes;
    if (level == 3) sizes.l3 = bytes;
  }
}

CacheSizes cache_sizes() {
  CacheSizes sizes = read_cache_sizes("/sys/devices/system/cpu/cpu0/cache");
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (sizes.l1_data == 0) sizes.l1_data = ask_c_library(_SC_LEVEL1_DCACHE_SIZE);
  if (sizes.l2 == 0) sizes.l2 = ask_c_library(_SC_LEVEL2_CACHE_SIZE);
  if (sizes.l3 == 0) sizes.l3 = ask_c_library(_SC_LEVEL3_CACHE_SIZE);
#endif
  if (sizes.l1_data == 0) sizes.l1_data = 32 << 10;
  if (sizes.l2 == 0) sizes.l2 = 512 << 10;
  return sizes;
}

}  // namespace headlight::runtime
