// headlight-mpi study scale: what is measured, what is foretold, and how it is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/mpi.h"
#include "tools/headlight/studies/study.h"
#include "tools/headlight_mpi/ranks.h"

namespace headlight::program::scale_study {

struct Arguments {
  StudyArguments study;
  RankArguments ranks;
  std::int64_t length = 0;  // 0: by --quick
  std::int64_t heads = 4;
  std::int64_t head_dim = 64;
  std::int64_t far_length = 1 << 20;  // of what is foretold
  int repeats = 3;
  bool all_ranks_alone = false;
  std::string type = "float32";

  [[nodiscard]] NumberType number_type() const { return *parse_number_type(type); }
  [[nodiscard]] mpi::Spread spread() const {
    mpi::Spread spread = ranks.spread();
    spread.bytes_per_number = static_cast<double>(bytes_of(number_type()));
    return spread;
  }
};

// Of the slowest rank.
struct Pass {
  double seconds = 0;
  double waiting = 0;  // of them, for rows to come
  double megabytes = 0;
  double late = 0;       // of them, what was not there when it was wanted
  double transfers = 0;  // seconds of the same call without its products, behind which transfers would be hidden
  double memory = 0;     // megabytes: the most that was resident beyond what was before there were any tensors

  [[nodiscard]] double hidden() const { return megabytes <= 0 ? 1 : 1 - late / megabytes; }
};

struct Point {
  int ranks = 0;
  Pass forward, backward;
  std::string plan;
  double resident = 0;  // megabytes: the most that was, with the program and MPI
};

// So many ranks on a network, by what mpi::plan() reckons with.
struct Forecast {
  int ranks = 0;
  double seconds = 0;
  double products = 0;   // of them, without transfers
  double transfers = 0;  // and what of transfers is longer than the products, or waited for
};
struct Network {
  double gigabits = 0;  // a second, into a rank and out of it
  std::vector<Forecast> forecasts{};
  // The number of ranks from which on more of them do not help: a tenth less time at most for twice as many.
  [[nodiscard]] const Forecast& last_worthwhile() const;
};

struct Study {
  Arguments arguments;
  AttentionShape whole;
  int threads = 1;
  std::string isa;
  std::optional<Pass> one_process_forward{}, one_process_backward{};
  std::vector<Point> points{};
  AttentionShape far{};              // what is foretold
  double operations_per_second = 0;  // of a rank, as measured
  std::vector<Network> networks{};
};

// Every number of ranks up to all of them, and one process.
void measure(Study& study);
// Causal attention of study.far over 1, 2, 4 … 1024 ranks that are as fast as those measured.
void foretell(Study& study);

[[nodiscard]] std::string as_text(const Study& study);
[[nodiscard]] std::string as_json(const Study& study);
[[nodiscard]] std::string as_svg(const Study& study);

}  // namespace headlight::program::scale_study
