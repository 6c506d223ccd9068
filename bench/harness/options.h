// The command line of a suite.
#pragma once

#include <string>
#include <vector>

#include "headlight/engine.h"

namespace headlight::bench {

struct Options {
  std::vector<Isa> isas;                       // --isa=best,avx2 or --isa=all; the best one
  std::vector<int> threads;                    // --threads=1,2; one, and all cores
  Numerics numerics = Numerics::reproducible;  // --numerics=fast
  double seconds = 0.5;                        // --seconds=0.1: what a case may take
  bool peers = true;                           // --no-peers
  bool quick = false;                          // --quick: fewer cases, less time
  bool smoke = false;                          // --smoke: one small case, one round, for tests
  std::string model;                           // --model=FOLDER: a published model's files
};

// Takes ours out of the arguments and leaves Google Benchmark's. Throws std::invalid_argument naming the option.
[[nodiscard]] Options parse_options(int& argc, char** argv);

// For --help.
extern const char* const kOptionsHelp;

}  // namespace headlight::bench
