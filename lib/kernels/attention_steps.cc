// Compiled once per instruction set.
#include "kernels/attention_scores-inl.h"
#include "kernels/attention_softmax-inl.h"
#include "kernels/attention_steps-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

using kernels::asks_for;
using kernels::ScoreStep;

// Vectors of a row that take a step together: enough to hide how long its chains are.
constexpr int kVectors = kTileVectors;

// x ← tanh(scale · x). By one short polynomial where that serves all vectors, which is to say nearly always: an
// element's bits are the same either way.
template <int kCount>
HEADLIGHT_INLINE void cap_vectors(Vec scale, Vec (&x)[kCount]) {
  Vec squares[kCount];
  Vec largest = zero();
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
    x[v] = mul(x[v], scale);
    squares[v] = mul(x[v], x[v]);
    largest = max(squares[v], largest);
  }
  const Vec bound = broadcast(0.25f);
  if (__builtin_expect(any_of(less_equal(bound, largest)), 0)) {
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      const Vec large = copysign(tanh_from_half(abs(x[v])), x[v]);
      x[v] = select(less(squares[v], bound), tanh_below_half(x[v], squares[v]), large);
    }
    return;
  }
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) x[v] = tanh_below_half(x[v], squares[v]);
}

template <int kCount>
HEADLIGHT_INLINE void load_vectors(const float* from, Vec (&to)[kCount]) {
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) to[v] = load(from + v * kLanes);
}

// One row's steps as its keys see them.
struct StepRow {
  float cap_scale;
  float factor;  // of what is added to
  float slope;
  float position;     // from the block's first key on
  const float* bias;  // of the block's first key
  std::int64_t bias_stride;
  const std::uint8_t* mask;  // likewise
  std::int64_t mask_stride;
  bool attend;
};

// From the keys of the block's first vector to the row; the next vector's are kLanes less.
HEADLIGHT_INLINE Vec first_distance(const StepRow& row) { return sub(broadcast(row.position), lane_index()); }

// What follows the cap, for kCount vectors of keys from j on, all of which the row sees. `distance` is of key 0.
template <int kCount>
HEADLIGHT_INLINE void step_few(const StepRow& row, unsigned steps, std::int64_t j, Vec distance, Vec (&score)[kCount]) {
  if (asks_for(steps, ScoreStep::bias)) {
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      const Vec bias = row.bias_stride == 0 ? broadcast(*row.bias) : load(row.bias + j + v * kLanes);
      score[v] = fma(score[v], broadcast(row.factor), bias);
    }
  } else if (asks_for(steps, ScoreStep::slope)) {
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) score[v] = mul(score[v], broadcast(row.factor));
  }
  if (asks_for(steps, ScoreStep::slope)) {
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      const Vec from_row = sub(distance, broadcast(static_cast<float>(j + v * kLanes)));
      score[v] = fnma(broadcast(row.slope), abs(from_row), score[v]);
    }
  }
  if (!asks_for(steps, ScoreStep::mask)) return;
  const Vec nothing = broadcast(-kInfinity);
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
    if (row.mask_stride == 0) {
      if ((*row.mask != 0) != row.attend) score[v] = nothing;
      continue;
    }
    const Mask set = bytes_not_zero(row.mask + j + v * kLanes);
    score[v] = row.attend ? select(set, score[v], nothing) : select(set, nothing, score[v]);
  }
}

// The same for one vector of which the row sees only the keys [begin, end): masks and biases of the others may not be
// read, and their scores become −inf.
[[gnu::noinline]] Vec step_edge(const StepRow& row, unsigned steps, std::int64_t j, std::int64_t begin,
                                std::int64_t end, Vec score) {
  std::uint8_t mask[kLanes] = {};
  float bias[kLanes] = {};
  for (std::int64_t key = begin; key < end; ++key) {
    if (asks_for(steps, ScoreStep::mask)) mask[key - j] = row.mask[key * row.mask_stride];
    if (asks_for(steps, ScoreStep::bias)) bias[key - j] = row.bias[key * row.bias_stride];
  }
  StepRow copy = row;
  copy.mask = mask;
  copy.bias = bias;
  copy.mask_stride = copy.bias_stride = 1;
  Vec scores[1] = {score};
  if (asks_for(steps, ScoreStep::soft_cap)) cap_vectors(broadcast(row.cap_scale), scores);
  const Vec nothing = broadcast(-kInfinity);
  step_few(copy, steps, 0, sub(first_distance(row), broadcast(static_cast<float>(j))), scores);
  return select(mask_first(static_cast<int>(begin - j)), nothing,
                select(mask_first(static_cast<int>(end - j)), scores[0], nothing));
}

// Returns the greatest score of each lane. Which steps are asked for is looked up for every few vectors: the branches
// go the same way along a row, and a copy of the loop for each choice would make the library a tenth larger.
[[gnu::noinline]] Vec step_vectors(const StepRow& given, unsigned steps, std::int64_t begin, std::int64_t end,
                                   float* scores) {
  const StepRow row = given;  // which no score can lie over
  Vec maximum = broadcast(-kInfinity);
  const Vec distance = first_distance(row);
  const VectorRange range = vectors_of(begin, end);
  const auto give = [&](std::int64_t j, Vec score) __attribute__((always_inline)) {
    store(score, scores + j);
    maximum = max(score, maximum);
  };
  std::int64_t j = range.begin * kLanes;
  if (j < begin) {
    give(j, step_edge(row, steps, j, begin, smaller(end, j + kLanes), load(scores + j)));
    j += kLanes;
  }
  for (; j + kVectors * kLanes <= end; j += kVectors * kLanes) {
    Vec of_keys[kVectors];
    load_vectors(scores + j, of_keys);
    if (asks_for(steps, ScoreStep::soft_cap)) cap_vectors(broadcast(row.cap_scale), of_keys);
    step_few(row, steps, j, distance, of_keys);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) give(j + v * kLanes, of_keys[v]);
  }
  for (; j < end; j += kLanes) {
    give(j, step_edge(row, steps, j, j, smaller(end, j + kLanes), load(scores + j)));
  }
  return maximum;
}

}  // namespace

void cap_scores(float cap_scale, std::int64_t count, float* scores) {
  const Vec scale = broadcast(cap_scale);
  const auto cap = [&](auto& x, std::int64_t j) __attribute__((always_inline)) {
    load_vectors(scores + j, x);
    cap_vectors(scale, x);
    for (const Vec& capped : x) {
      store(capped, scores + j);
      j += kLanes;
    }
  };
  std::int64_t j = 0;
  Vec some[kVectors];
  for (; j + kVectors * kLanes <= count; j += kVectors * kLanes) cap(some, j);
  Vec one[1];
  for (; j < count; j += kLanes) cap(one, j);
}

float apply_steps(const kernels::ScoreSteps& steps, std::int64_t r, std::int64_t begin, std::int64_t end,
                  float* scores) {
  StepRow row{};
  row.cap_scale = steps.cap_scale;
  row.factor = caps(steps) ? steps.soft_cap : steps.product_scale;
  if (asks_for(steps.asked, ScoreStep::slope)) {
    row.slope = steps.slopes[r].slope;
    row.position = static_cast<float>(steps.slopes[r].position - steps.first_key);
  }
  if (asks_for(steps.asked, ScoreStep::bias)) {
    row.bias_stride = steps.masks.bias_key_stride;
    row.bias = steps.masks.bias[r] + steps.first_key * row.bias_stride;
  }
  if (asks_for(steps.asked, ScoreStep::mask)) {
    row.mask_stride = steps.masks.mask_key_stride;
    row.mask = steps.masks.mask[r] + steps.first_key * row.mask_stride;
    row.attend = steps.masks.attend;
  }
  return max_of_lanes(step_vectors(row, steps.asked, begin, end, scores));
}

void step_row(const kernels::ScoreSteps& of_row, std::int64_t keys, float factor, float* scores,
              float* cap_derivatives) noexcept {
  kernels::ScoreSteps steps = of_row;
  constexpr int kKeys = 16 * kLanes;
  float some[kKeys];
  for (std::int64_t j = 0; j < keys; j += kKeys, steps.first_key += kKeys) {
    const std::int64_t count = smaller(kKeys, keys - j);
    const auto lanes_at = [&](std::int64_t at) { return static_cast<int>(smaller(kLanes, count - at)); };
    for (std::int64_t at = 0; at < count; at += kLanes) store(load_lanes(scores + j + at, lanes_at(at)), some + at);
    if (cap_derivatives != nullptr) {
      cap_scores(steps.cap_scale, round_up(count, kLanes), some);
      for (std::int64_t at = 0; at < count; at += kLanes) {
        const Vec capped = load(some + at);
        store_lanes(fnma(capped, capped, broadcast(1.0f)), cap_derivatives + j + at, lanes_at(at));
      }
      continue;
    }
    apply_steps(steps, 0, 0, count, some);
    for (std::int64_t at = 0; at < count; at += kLanes) {
      store_lanes(mul(load(some + at), broadcast(factor)), scores + j + at, lanes_at(at));
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
