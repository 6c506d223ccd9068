// Calls whose result is known: the same bits on every engine of an instruction set, whoever calls beside.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headlight/engine.h"

namespace headlight::soak {

class Call {
 public:
  virtual ~Call() = default;
  // Any number of threads at once. Returns a digest of what was computed.
  [[nodiscard]] virtual std::uint64_t run(Engine& engine) const = 0;
  // Whether a child that was forked while others computed may make it: it takes no lock that one of them may have held.
  [[nodiscard]] virtual bool may_follow_fork() const { return true; }
};

using Calls = std::vector<std::unique_ptr<const Call>>;

// Attention with random masks and shapes, backward, streams, products of every type, layers and their training.
void add_engine_calls(Calls& calls);
// A model: texts in, vectors out.
void add_model_calls(Calls& calls);

}  // namespace headlight::soak
