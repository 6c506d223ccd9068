#include "tools/headlight/support/engine_arguments.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"

namespace headlight::program {

void EngineArguments::add_to(Command& command) {
  command.add_option("-t,--threads", threads, "Threads that compute, 1 to 4096 (default: what the machine grants)")
      .type_name("N")
      .check(between(1, 4096));
  command.add_option("--isa", isa, "Instruction set (default: HEADLIGHT_ISA, else the best)")
      .type_name("scalar|sse4|avx2|avx512|neon")
      .check([](const std::string& text) { return parse_isa(text) ? "" : "scalar, sse4, avx2, avx512 or neon"; });
  command
      .add_option("--numerics", numerics,
                  "fast: also instructions with which numbers may depend on the shape of a call, as neon_bf16")
      .type_name("reproducible|fast")
      .check(one_of({"reproducible", "fast"}));
}

EngineOptions EngineArguments::options() const {
  EngineOptions options;
  options.threads = threads;
  if (!isa.empty()) {
    options.isa = parse_isa(isa);
    const std::vector<Isa> available = available_isas();
    if (std::find(available.begin(), available.end(), *options.isa) == available.end()) {
      std::string names;
      for (const Isa one : available) runtime::append_item(names, name(one));
      throw std::runtime_error("--isa is " + models::in_quotes(isa) +
                               ", expected one that this build and CPU have: " + names);
    }
  }
  options.numerics = parse_numerics(numerics).value_or(Numerics::reproducible);
  return options;
}

}  // namespace headlight::program
