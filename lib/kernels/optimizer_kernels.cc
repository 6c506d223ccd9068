// Compiled once per instruction set.
#include "kernels/optimizer_kernels.h"

#include "kernels/row_sweep-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

// Loads and stores of whole vectors, or of the last lanes.
struct Whole {
  HEADLIGHT_INLINE Vec get(const float* from) const { return load(from); }
  HEADLIGHT_INLINE void put(Vec v, float* to) const { store(v, to); }
};
struct Part {
  int count;
  HEADLIGHT_INLINE Vec get(const float* from) const { return load_partial(from, count); }
  HEADLIGHT_INLINE void put(Vec v, float* to) const { store_partial(v, to, count); }
};

template <bool kMomentum, class Lanes>
HEADLIGHT_INLINE void sgd_at(const kernels::SgdArguments& a, std::int64_t at, Lanes lanes) {
  const Vec value = lanes.get(a.values + at);
  const Vec scaled = mul(lanes.get(a.gradient + at), broadcast(a.scale));
  Vec step = fma(value, broadcast(a.weight_decay), scaled);
  if constexpr (kMomentum) {
    step = fma(lanes.get(a.momentum + at), broadcast(a.decay), step);
    lanes.put(step, a.momentum + at);
  }
  lanes.put(fnma(step, broadcast(a.rate), value), a.values + at);
}

template <bool kMomentum>
void sgd_run(const kernels::SgdArguments& a) {
  sweep_row(
      a.count, [&](int, std::int64_t at) { sgd_at<kMomentum>(a, at, Whole{}); },
      [&](std::int64_t at, int count) { sgd_at<kMomentum>(a, at, Part{count}); });
}

void sgd(const kernels::SgdArguments& arguments) noexcept {
  arguments.momentum != nullptr ? sgd_run<true>(arguments) : sgd_run<false>(arguments);
}

template <class Lanes>
HEADLIGHT_INLINE void adamw_at(const kernels::AdamWArguments& a, std::int64_t at, Lanes lanes) {
  const Vec gradient = mul(lanes.get(a.gradient + at), broadcast(a.scale));
  const Vec before = lanes.get(a.first + at);
  const Vec first = fma(sub(gradient, before), broadcast(a.first_weight), before);
  const Vec squares = mul(mul(gradient, gradient), broadcast(a.second_weight));
  const Vec second = fma(lanes.get(a.second + at), broadcast(a.second_decay), squares);
  lanes.put(first, a.first + at);
  lanes.put(second, a.second + at);
  const Vec distance = add(div(sqrt(second), broadcast(a.root)), broadcast(a.epsilon));
  const Vec kept = mul(lanes.get(a.values + at), broadcast(a.keep));
  lanes.put(fnma(div(first, distance), broadcast(a.rate), kept), a.values + at);
}

void adamw(const kernels::AdamWArguments& a) noexcept {
  sweep_row(
      a.count, [&](int, std::int64_t at) { adamw_at(a, at, Whole{}); },
      [&](std::int64_t at, int count) { adamw_at(a, at, Part{count}); });
}

}  // namespace

extern const kernels::OptimizerKernels optimizer_kernels;
const kernels::OptimizerKernels optimizer_kernels = {sgd, adamw};

}  // namespace headlight::HEADLIGHT_TARGET
