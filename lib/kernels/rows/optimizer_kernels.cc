// Compiled once per instruction set.
#include "kernels/rows/optimizer_kernels.h"

#include "kernels/rows/sweep-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

template <bool kMomentum>
void sgd_run(const kernels::SgdArguments& a) {
  sweep_row(a.count, [&](auto some, int, std::int64_t at) {
    const Vec value = some.get(a.values + at);
    const Vec scaled = mul(some.get(a.gradient + at), broadcast(a.scale));
    Vec step = fma(value, broadcast(a.weight_decay), scaled);
    if constexpr (kMomentum) {
      step = fma(some.get(a.momentum + at), broadcast(a.decay), step);
      some.put(step, a.momentum + at);
    }
    some.put(fnma(step, broadcast(a.rate), value), a.values + at);
  });
}

void sgd(const kernels::SgdArguments& arguments) noexcept {
  arguments.momentum != nullptr ? sgd_run<true>(arguments) : sgd_run<false>(arguments);
}

void adamw(const kernels::AdamWArguments& a) noexcept {
  sweep_row(a.count, [&](auto some, int, std::int64_t at) {
    const Vec gradient = mul(some.get(a.gradient + at), broadcast(a.scale));
    const Vec before = some.get(a.first + at);
    const Vec first = fma(sub(gradient, before), broadcast(a.first_weight), before);
    const Vec squares = mul(mul(gradient, gradient), broadcast(a.second_weight));
    const Vec second = fma(some.get(a.second + at), broadcast(a.second_decay), squares);
    some.put(first, a.first + at);
    some.put(second, a.second + at);
    const Vec distance = add(div(sqrt(second), broadcast(a.root)), broadcast(a.epsilon));
    const Vec kept = mul(some.get(a.values + at), broadcast(a.keep));
    some.put(fnma(div(first, distance), broadcast(a.rate), kept), a.values + at);
  });
}

}  // namespace

extern const kernels::OptimizerKernels optimizer_kernels;
const kernels::OptimizerKernels optimizer_kernels = {sgd, adamw};

}  // namespace headlight::HEADLIGHT_TARGET
