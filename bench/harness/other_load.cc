#include "harness/other_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace headlight::bench {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

double OtherLoad::share() const {
  const double cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(0.0, (others() - others_at_start_) / (seconds_since(start_) * cores));
}

double OtherLoad::others() {
  // "cpu user nice system idle iowait irq softirq steal …", in ticks.
  std::ifstream file("/proc/stat");
  std::string word;
  double busy = 0;
  file >> word;
  for (int column = 0; column < 8; ++column) {
    double ticks = 0;
    file >> ticks;
    if (column != 3 && column != 4) busy += ticks;
  }
  if (!file) return 0;
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);
  return busy / static_cast<double>(::sysconf(_SC_CLK_TCK)) - seconds_of(own.ru_utime) - seconds_of(own.ru_stime);
}

}  // namespace headlight::bench
