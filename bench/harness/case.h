// A case of a suite: what is timed, how it is checked first, and what its figures are held against.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/options.h"
#include "headlight/engine.h"
#include "headlight/number_type.h"

namespace headlight::bench {

// Somebody else doing the same work, whose results lie where ours would.
struct Peer {
  std::string name;     // "OpenBLAS"
  std::string version;  // "0.3.21 SkylakeX"
  std::function<void()> run;
};

// One case on one engine, ready to run. The functions keep alive what they refer to.
struct Work {
  // Empty: there is nothing to time, only facts.
  std::function<void()> run;
  // Whether the results of a run are those of the reference; asked once, after the first run.
  std::function<bool()> is_right;
  // Arithmetic of a call, two for each multiply-add, over visible pairs only; 0: the case is not about that.
  double operations = 0;
  // What is multiplied: the peak that they are held against is that of its instructions.
  NumberType type = NumberType::float32;
  // Elements that a call makes, where operations mean little.
  double elements = 0;
  // Operations of the multiply-add units for an element, so that their peak limits elements too; 0: not known.
  double element_operations = 0;
  // The memory that a call cannot do without reading. Given, its read bandwidth is measured too.
  std::vector<std::span<const float>> reads{};
  // Bytes limit the case rather than arithmetic: the read bandwidth is measured around every few calls, else once
  // ahead.
  bool bound_by_reading = false;
  // The memory that a call, and those of peers, write.
  std::vector<std::span<float>> writes{};
  // Bytes that a call moves beside those.
  double other_bytes = 0;
  std::vector<Peer> peers{};
  // Figures that are not times: {"bytes", 700000}.
  std::vector<std::pair<std::string, double>> facts{};
  // What takes turns with it, as peers do, and is no peer; and figures that this found out, asked for at the end.
  std::vector<std::function<void()>> beside{};
  std::function<std::vector<std::pair<std::string, double>>()> found{};
};

struct CaseContext {
  Engine& engine;
  const Options& options;
};

struct Case {
  // "packed/512x512x512": unique in its suite, the same on every machine, without the characters of a regular
  // expression.
  std::string name;
  std::function<Work(const CaseContext&)> make;
  // Part of --quick.
  bool quick = true;
  // The one small case that --smoke runs.
  bool smoke = false;
};

}  // namespace headlight::bench
