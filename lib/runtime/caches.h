// The sizes of the CPU's data caches.
#pragma once

#include <cstdint>
#include <string>

namespace headlight::runtime {

// In bytes; each of one instance of the cache, however many cores share it. 0: there is none.
struct CacheSizes {
  std::int64_t l1_data = 0;
  std::int64_t l2 = 0;
  std::int64_t l3 = 0;
};

// What the kernel says under /sys, else what the C library says; where both are silent (some virtual machines),
// 32 KiB, 512 KiB and no third level, which nearly every CPU in use has at least. For choosing how much to work on at
// once, never for the order of a sum.
[[nodiscard]] CacheSizes cache_sizes();

// From …/cpu0/cache/index*/{level,type,size} under that folder; zeros for what is not there.
[[nodiscard]] CacheSizes read_cache_sizes(const std::string& cache_directory);

}  // namespace headlight::runtime
