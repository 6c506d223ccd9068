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

// What follows the cap for the keys j … j + kLanes − 1, all of which the row sees; `distance` is from them to the row.
HEADLIGHT_INLINE Vec step_vector(const StepRow& row, unsigned steps, std::int64_t j, Vec distance, Vec score) {
  if (asks_for(steps, ScoreStep::bias)) {
    score = fma(score, broadcast(row.factor), row.bias_stride == 0 ? broadcast(*row.bias) : load(row.bias + j));
  } else if (asks_for(steps, ScoreStep::slope)) {
    score = mul(score, broadcast(row.factor));
  }
  if (asks_for(steps, ScoreStep::slope)) score = fnma(broadcast(row.slope), abs(distance), score);
  if (asks_for(steps, ScoreStep::mask)) {
    const Vec nothing = broadcast(-kInfinity);
    if (row.mask_stride == 0) return (*row.mask != 0) == row.attend ? score : nothing;
    const Mask set = bytes_not_zero(row.mask + j);
    return row.attend ? select(set, score, nothing) : select(set, nothing, score);
  }
  return score;
}

HEADLIGHT_INLINE Vec distance_from(const StepRow& row, std::int64_t j) {
  return sub(broadcast(row.position), add(lane_index(), broadcast(static_cast<float>(j))));
}

// The same for one vector of which the row sees only the keys [begin, end): masks and biases of the others may not be
// read, and their scores become −inf.
Vec step_edge(const StepRow& row, unsigned steps, std::int64_t j, std::int64_t begin, std::int64_t end, Vec score) {
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
  const Vec seen = step_vector(copy, steps, 0, distance_from(row, j), scores[0]);
  return select(mask_first(static_cast<int>(begin - j)), nothing,
                select(mask_first(static_cast<int>(end - j)), seen, nothing));
}

// Returns the greatest score of each lane.
template <unsigned kSteps>
Vec step_vectors(const StepRow& given, std::int64_t begin, std::int64_t end, float* scores) {
  const StepRow row = given;  // which no score can lie over
  Vec maximum = broadcast(-kInfinity);
  const VectorRange range = vectors_of(begin, end);
  const auto give = [&](std::int64_t j, Vec score) __attribute__((always_inline)) {
    store(score, scores + j);
    maximum = max(score, maximum);
  };
  std::int64_t j = range.begin * kLanes;
  if (j < begin) {
    give(j, step_edge(row, kSteps, j, begin, smaller(end, j + kLanes), load(scores + j)));
    j += kLanes;
  }
  Vec distances[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) distances[v] = distance_from(row, j + v * kLanes);
  const Vec step = broadcast(static_cast<float>(kVectors * kLanes));
  for (; j + kVectors * kLanes <= end; j += kVectors * kLanes) {
    Vec of_keys[kVectors];
    load_vectors(scores + j, of_keys);
    if constexpr (asks_for(kSteps, ScoreStep::soft_cap)) cap_vectors(broadcast(row.cap_scale), of_keys);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      give(j + v * kLanes, step_vector(row, kSteps, j + v * kLanes, distances[v], of_keys[v]));
      distances[v] = sub(distances[v], step);
    }
  }
  for (; j < end; j += kLanes) {
    give(j, step_edge(row, kSteps, j, j, smaller(end, j + kLanes), load(scores + j)));
  }
  return maximum;
}

using StepFunction = Vec (*)(const StepRow&, std::int64_t, std::int64_t, float*);
template <int... kSteps>
StepFunction step_vectors_of(unsigned steps, Counts<kSteps...>) {
  static constexpr StepFunction kFunctions[] = {step_vectors<kSteps>...};
  return kFunctions[steps - 1];
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
  return max_of_lanes(
      step_vectors_of(steps.asked, CountsTo<kernels::kScoreSteps - 1>::type{})(row, begin, end, scores));
}

void step_row(kernels::ScoreSteps steps, std::int64_t keys, float factor, float* scores, float* cap_derivatives) {
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
