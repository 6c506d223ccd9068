// Exponentials, logarithm and GELU of lib/simd over arrays in the first and second cache and in memory, on one thread:
// elements a nanosecond beside what the multiply-add units could do of their operations.
#include <algorithm>
#include <cmath>
#include <memory>

#include "harness/case_name.h"
#include "harness/inputs.h"
#include "harness/spans.h"
#include "harness/suite.h"
#include "reference/activation.h"
#include "runtime/isa_list.h"
#include "vector_functions_kernel.h"

#define HEADLIGHT_DECLARE(isa)                                    \
  namespace headlight::isa {                                      \
  extern const VectorFunction vector_functions[kVectorFunctions]; \
  }
HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_DECLARE)
#undef HEADLIGHT_DECLARE

namespace headlight::bench {
namespace {

const VectorFunction* functions_of(Isa isa) {
  switch (isa) {
#define HEADLIGHT_CASE(name) \
  case Isa::name:            \
    return headlight::name::vector_functions;
    HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_CASE)
#undef HEADLIGHT_CASE
    default:
      break;
  }
  __builtin_unreachable();
}

double exact(const std::string& function, double x) {
  if (function == "exp") return std::exp(x);
  if (function == "log") return std::log(x);
  if (function == "gelu") return reference::gelu(x);
  if (function == "gelu_tanh") return reference::gelu_tanh(x);
  if (function == "silu") return reference::silu(x);
  return std::exp2(x);
}

struct Operands {
  explicit Operands(std::int64_t count) : x(filled<1>({count}, 1)), y({count}) {}
  Tensor<float, 1> x, y;
};

Work function_work(int index, std::int64_t count, const CaseContext& context) {
  const VectorFunction& function = functions_of(context.engine.isa())[index];
  const std::string name = function.name;
  const auto operands = std::make_shared<Operands>(count);
  for (float& x : operands->x)
    x = name == "exp2_nonpositive" ? -8 * std::abs(x) : name == "log" ? x * x + 0.01f : 4 * x;
  Work work;
  work.run = [operands, run = function.run] { run(operands->x.data(), operands->y.data(), operands->x.size()); };
  work.is_right = [operands, name] {
    for (std::int64_t n = 0; n < operands->x.size(); n += 97) {
      const double expected = exact(name, operands->x(n));
      if (!(std::abs(operands->y(n) - expected) <= 1e-5 * std::abs(expected) + 1e-6)) return false;
    }
    return true;
  };
  work.elements = static_cast<double>(count);
  work.element_operations = function.operations;
  work.reads = reads_of(operands->x);
  work.bound_by_reading = true;
  work.writes = writes_of(operands->y);
  return work;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int index = 0; index < kVectorFunctions; ++index) {
    const char* name = functions_of(Isa::scalar)[index].name;
    for (const std::int64_t count : {4096, 131072, 33554432}) {
      all.push_back({case_name(name, "/", count),
                     [index, count](const CaseContext& context) { return function_work(index, count, context); },
                     index == 0 && count == 4096, count == 4096});
    }
  }
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  return headlight::bench::run_suite("vector_functions", headlight::bench::cases(), argc, argv, {.one_thread = true});
}
