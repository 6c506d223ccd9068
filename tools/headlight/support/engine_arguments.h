// The options that every computing subcommand shares: --threads, --isa and --numerics.
#pragma once

#include <string>

#include "headlight/engine.h"
#include "tools/headlight/support/command.h"

namespace headlight::program {

struct EngineArguments {
  int threads = 0;  // 0: what the machine grants
  std::string isa;  // empty: HEADLIGHT_ISA, else the best
  std::string numerics = "reproducible";

  void add_to(Command& command);
  [[nodiscard]] EngineOptions options() const;
};

}  // namespace headlight::program
