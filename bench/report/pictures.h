// Which pictures a report has.
#pragma once

#include <string>
#include <vector>

#include "report/rows.h"

namespace headlight::bench::report {

struct Picture {
  std::string title;  // "suite: …"
  std::string file;   // "gemm-1.svg"
  std::string svg;
};

// For each suite and number of threads the shares of peak or of reading, ours and the others', on the best instruction
// set; for each case of the latencies a histogram.
[[nodiscard]] std::vector<Picture> pictures_of(const Measured& measured);

}  // namespace headlight::bench::report
