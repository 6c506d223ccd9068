// A program of benchmarks: cases × instruction sets × numbers of threads, run under Google Benchmark.
#pragma once

#include <string>
#include <vector>

#include "harness/case.h"

namespace headlight::bench {

// The main() of a suite. Benchmarks are named suite/case/isa/threads:N. Each makes its engine and its case, checks the
// result, then times it in alternation with peers and yardsticks (harness/paired_timing.h), and writes what it found
// into counters (harness/counters.h) that tools/bench makes a report of. Returns 1 when a result was wrong or an option
// bad.
struct SuiteOptions {
  // Whatever the threads asked for, one: the cases have no engine's work.
  bool one_thread = false;
};
int run_suite(const std::string& suite, const std::vector<Case>& cases, int argc, char** argv,
              const SuiteOptions& suite_options = {});

}  // namespace headlight::bench
