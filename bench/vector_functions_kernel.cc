// Compiled once per instruction set: the functions of one vector over an array, four vectors in flight.
#include "vector_functions_kernel.h"

#include "harness/element_operations.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

template <Vec (*kFunction)(Vec)>
void apply(const float* x, float* y, std::int64_t count) noexcept {
  for (std::int64_t at = 0; at < count; at += 4 * kLanes) {
    Vec vectors[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) vectors[i] = load(x + at + i * kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) vectors[i] = kFunction(vectors[i]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) store(vectors[i], y + at + i * kLanes);
  }
}

}  // namespace

extern const VectorFunction vector_functions[kVectorFunctions];
const VectorFunction vector_functions[kVectorFunctions] = {
    {"exp2_nonpositive", apply<exp2_nonpositive>, bench::kExp2NonpositiveOperations},
    {"exp2", apply<exp2>, bench::kExp2Operations},
    {"exp", apply<exp>, bench::kExpOperations},
    {"log", apply<log>, bench::kLogOperations},
    {"gelu", apply<gelu>, bench::kGeluOperations},
    {"gelu_tanh", apply<gelu_tanh>, bench::kGeluTanhOperations},
    {"silu", apply<silu>, bench::kSiluOperations}};

}  // namespace headlight::HEADLIGHT_TARGET
