// Compiled once per instruction set.
#include "kernels/attention/score_modifiers-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/attention/softmax-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

using kernels::asks_for;
using kernels::ScoreCap;
using kernels::ScoreModifier;

// Vectors of a row that are modified together: enough to hide how long its chains are.
constexpr int kVectors = 4;

// Here and below no step overflows of a finite product: a host may trap that.

// The cap of products below its bound.
HEADLIGHT_INLINE Vec cap_near(const ScoreCap& cap, Vec q) { return mul(q, polynomial(mul(q, q), cap.coefficients)); }

// The scaled product of which a cap is the hyperbolic tangent; it is 1 from far below |q| = `far` on.
HEADLIGHT_INLINE Vec scaled_within(Vec q, float far, Vec scale) {
  return mul(max(broadcast(-far), min(broadcast(far), q)), scale);
}

// The cap of any products, where there is a bound.
HEADLIGHT_INLINE Vec cap_any(const ScoreCap& cap, Vec q) {
  const Vec x = scaled_within(q, 32.0f * cap.bound, broadcast(cap.scale));
  const Vec far = mul(copysign(tanh_from_half(abs(x)), x), broadcast(cap.cap));
  const Mask near = less(abs(q), broadcast(cap.bound));
  return select(near, cap_near(cap, select(near, q, zero())), far);
}

// The cap of a row's vectors where there is none.
[[gnu::noinline]] void cap_without_bound(const ScoreCap& cap, std::int64_t begin, std::int64_t end, float* scores) {
  const Vec scale = broadcast(cap.scale), factor = broadcast(cap.cap);
  const float size = cap.scale < 0.0f ? -cap.scale : cap.scale;
  const float far = size < 1.0f ? kLargest : 16.0f / size;
  for (std::int64_t j = vectors_of(begin, end).begin * kLanes; j < end; j += kLanes) {
    store(mul(tanh(scaled_within(load(scores + j), far, scale)), factor), scores + j);
  }
}

// Whether the cap near 0 serves all of some vectors. A NaN is passed over: it stays one.
template <int kCount>
HEADLIGHT_INLINE bool are_near(const ScoreCap& cap, const Vec (&q)[kCount]) {
  Vec largest = zero();
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) largest = max(abs(q[v]), largest);
  return __builtin_expect(!any_of(less_equal(broadcast(cap.bound), largest)), 1);
}

// q ← cap · tanh(scale · q), where there is a bound. By one short polynomial where that serves all vectors, which is to
// say nearly always: an element's bits are the same either way.
template <int kCount>
HEADLIGHT_INLINE void cap_vectors(const ScoreCap& cap, Vec (&q)[kCount]) {
  if (!are_near(cap, q)) {
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) q[v] = cap_any(cap, q[v]);
    return;
  }
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) q[v] = cap_near(cap, q[v]);
}

template <int kCount>
HEADLIGHT_INLINE void load_vectors(const float* from, Vec (&to)[kCount]) {
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) to[v] = load(from + v * kLanes);
}

// What masks and biases have for some keys that lie side by side. Strides are 0 or 1.
struct ModifierKeys {
  const float* bias;
  std::int64_t bias_stride;
  const std::uint8_t* mask;
  std::int64_t mask_stride;

  [[nodiscard]] HEADLIGHT_INLINE ModifierKeys from(std::int64_t j) const {
    return {bias + j * bias_stride, bias_stride, mask + j * mask_stride, mask_stride};
  }
};

// One row's modifiers as its keys see them.
struct ModifiedRow {
  ScoreCap cap;             // a copy, whose address goes nowhere: the compiler then knows that no score lies over it
  const ScoreCap* far_cap;  // what it is a copy of
  float factor;             // of products without a cap that something is added to
  float slope;              // where all keys lie behind the row, its negative
  bool between;             // whether keys may lie on both sides of the row
  std::int64_t position;    // from the first key on
  ModifierKeys keys;        // of that key
  bool attend;
};

// From a row to the keys of a vector that begins with key j.
HEADLIGHT_INLINE Vec distance_of(const ModifiedRow& row, std::int64_t j) {
  return sub(broadcast(static_cast<float>(row.position - j)), lane_index());
}

// What follows the cap, for kCount vectors of keys from `first` on that the row sees; `keys` are those of the first.
// Each distance comes from the positions themselves: counted on from wherever a walk begins, those that a float does
// not hold would be rounded by the way to them.
template <int kCount>
HEADLIGHT_INLINE void modify_few(const ModifiedRow& row, unsigned modifiers, const ModifierKeys& keys,
                                 std::int64_t first, Vec (&score)[kCount]) {
  if (asks_for(modifiers, ScoreModifier::bias)) {
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      const Vec bias = keys.bias_stride == 0 ? broadcast(*keys.bias) : load(keys.bias + v * kLanes);
      score[v] = fma(score[v], broadcast(row.factor), bias);
    }
  } else if (asks_for(modifiers, ScoreModifier::slope) && !asks_for(modifiers, ScoreModifier::softcap)) {
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) score[v] = mul(score[v], broadcast(row.factor));
  }
  if (asks_for(modifiers, ScoreModifier::slope)) {
    Vec from_row[kCount];
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) from_row[v] = distance_of(row, first + v * kLanes);
    if (row.between) {
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) from_row[v] = abs(from_row[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) score[v] = fnma(broadcast(row.slope), from_row[v], score[v]);
  }
  if (!asks_for(modifiers, ScoreModifier::mask)) return;
  const Vec nothing = broadcast(-kInfinity);
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
    if (keys.mask_stride == 0) {
      if ((*keys.mask != 0) != row.attend) score[v] = nothing;
      continue;
    }
    const Mask set = bytes_not_zero(keys.mask + v * kLanes);
    score[v] = row.attend ? select(set, score[v], nothing) : select(set, nothing, score[v]);
  }
}

// A vector of keys of which the row sees only some: what masks and biases have for others may not be read.
struct EdgeKeys {
  float bias[kLanes];
  std::uint8_t mask[kLanes];
};

// Keys [begin, end) of the vector that begins with `keys`; what others have is 0.
[[gnu::noinline]] void copy_edge(const ModifierKeys& keys, unsigned modifiers, std::int64_t begin, std::int64_t end,
                                 EdgeKeys& edge) {
  for (std::int64_t key = 0; key < kLanes; ++key) {
    const bool is_seen = begin <= key && key < end;
    edge.mask[key] = is_seen && asks_for(modifiers, ScoreModifier::mask) ? keys.mask[key * keys.mask_stride] : 0;
    edge.bias[key] = is_seen && asks_for(modifiers, ScoreModifier::bias) ? keys.bias[key * keys.bias_stride] : 0.0f;
  }
}

// A row's way through its vectors.
struct RowPass {
  std::int64_t j;       // the next key
  std::int64_t capped;  // keys before this one are
  Vec maximum;          // of the scores before, lane by lane
};

// What follows the cap for the next kCount vectors of `scores`, and what they leave behind.
template <int kCount>
HEADLIGHT_INLINE void pass_vectors(const ModifiedRow& row, unsigned modifiers, float* scores, Vec (&score)[kCount],
                                   RowPass& pass) {
  modify_few(row, modifiers, row.keys.from(pass.j), pass.j, score);
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
    store(score[v], scores + pass.j + v * kLanes);
    pass.maximum = max(score[v], pass.maximum);
  }
  pass.j += kCount * kLanes;
}

// Caps whole vectors of `scores` from key j to key `end`, or as far as products beyond the bound go on; returns where
// it stopped. Out of the loop of all others, whose results would have to wait in memory for a decision that nearly
// always falls their way.
[[gnu::noinline]] std::int64_t cap_far(const ScoreCap& cap, std::int64_t j, std::int64_t end, float* scores) {
  for (; j + kVectors * kLanes <= end; j += kVectors * kLanes) {
    Vec q[kVectors];
    load_vectors(scores + j, q);
    if (are_near(cap, q)) return j;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(cap_any(cap, q[v]), scores + j + v * kLanes);
  }
  for (; j + kLanes <= end; j += kLanes) {
    store(cap_any(cap, load(scores + j)), scores + j);
  }
  return j;
}

// Whole vectors, kCount at a time, up to key `end`.
template <int kCount>
HEADLIGHT_INLINE void pass_whole(const ModifiedRow& row, unsigned modifiers, std::int64_t end, float* scores,
                                 RowPass& pass) {
  while (pass.j + kCount * kLanes <= end) {
    Vec score[kCount];
    load_vectors(scores + pass.j, score);
    if (asks_for(modifiers, ScoreModifier::softcap) && pass.capped <= pass.j) {
      if (!are_near(row.cap, score)) {
        pass.capped = cap_far(*row.far_cap, pass.j, end, scores);
        continue;
      }
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) score[v] = cap_near(row.cap, score[v]);
    }
    pass_vectors(row, modifiers, scores, score, pass);
  }
}

HEADLIGHT_INLINE void pass_all(const ModifiedRow& row, unsigned modifiers, std::int64_t end, float* scores,
                               RowPass& pass) {
  pass_whole<kVectors>(row, modifiers, end, scores, pass);
  pass_whole<1>(row, modifiers, end, scores, pass);
}

// One vector of keys of which the row sees those of [begin, end); the others' scores are −inf.
HEADLIGHT_INLINE void pass_edge(ModifiedRow row, unsigned modifiers, std::int64_t begin, std::int64_t end,
                                float* scores, RowPass& pass) {
  const std::int64_t first = larger(begin - pass.j, 0), last = smaller(end - pass.j, kLanes);
  EdgeKeys edge;
  if (asks_for(modifiers, ScoreModifier::mask) || asks_for(modifiers, ScoreModifier::bias)) {
    copy_edge(row.keys.from(pass.j), modifiers, first, last, edge);
    row.keys = {edge.bias, 1, edge.mask, 1};
  }
  Vec score[1] = {load(scores + pass.j)};
  if (asks_for(modifiers, ScoreModifier::softcap)) cap_vectors(row.cap, score);
  modify_few(row, modifiers, row.keys, pass.j, score);
  const Vec nothing = broadcast(-kInfinity);
  score[0] = select(mask_first(static_cast<int>(first)), nothing,
                    select(mask_first(static_cast<int>(last)), score[0], nothing));
  pass_vectors(row, 0, scores, score, pass);
}

// Returns the greatest score of each lane. Which modifiers are asked for is looked up for every few vectors: the
// branches go the same way along a row, and a copy of the loop for each choice would make the library a tenth larger.
HEADLIGHT_INLINE Vec modify_vectors(const ModifiedRow& row, unsigned modifiers, std::int64_t begin, std::int64_t end,
                                    float* scores) {
  const std::int64_t first = vectors_of(begin, end).begin * kLanes;
  RowPass pass{first, 0, broadcast(-kInfinity)};
  if (first < begin || first + kLanes > end) pass_edge(row, modifiers, begin, end, scores, pass);
  pass_all(row, modifiers, end, scores, pass);
  if (pass.j < end) pass_edge(row, modifiers, begin, end, scores, pass);
  return pass.maximum;
}

// Which modifiers are asked for is known to the compiler.
template <unsigned kModifiers>
void modify_rows(const kernels::ScoreModifiers& modifiers, const ScoreRows& rows) {
  ModifiedRow row{};
  row.cap = modifiers.cap;
  row.far_cap = &modifiers.cap;
  row.factor = modifiers.product_scale;
  row.between = true;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    if (asks_for(kModifiers, ScoreModifier::slope)) {
      row.slope = modifiers.slopes[r].slope;
      row.position = modifiers.slopes[r].position - modifiers.first_key;
    }
    RowPass pass{rows.begin, 0, broadcast(-kInfinity)};
    pass_all(row, kModifiers, rows.end, rows.scores + r * rows.stride, pass);
    if (rows.maxima == nullptr) continue;
    float* const maximum = rows.maxima + r * kLanes;
    store(max(load(maximum), pass.maximum), maximum);
  }
}

}  // namespace

void modify_together(const kernels::ScoreModifiers& modifiers, const ScoreRows& rows) {
  constexpr auto kCap = static_cast<unsigned>(ScoreModifier::softcap),
                 kSlope = static_cast<unsigned>(ScoreModifier::slope);
  if (modifiers.asked == kCap) return modify_rows<kCap>(modifiers, rows);
  if (modifiers.asked == kSlope) return modify_rows<kSlope>(modifiers, rows);
  modify_rows<kCap | kSlope>(modifiers, rows);
}

void cap_scores(const kernels::ScoreModifiers& modifiers, std::int64_t count, float* scores, float* derivatives) {
  const ScoreCap row = modifiers.cap;
  const bool has_bound = row.bound != 0.0f;
  if (!has_bound) cap_without_bound(modifiers.cap, 0, count, scores);
  const auto cap = [&](auto& x, std::int64_t j) __attribute__((always_inline)) {
    load_vectors(scores + j, x);
    if (has_bound) cap_vectors(row, x);
    for (const Vec& capped : x) {
      // Not times 1 / cap: what has reached the cap must be exactly 1, and its derivative 0.
      const Vec part = div(capped, broadcast(row.cap));
      store(capped, scores + j);
      store(fnma(part, part, broadcast(1.0f)), derivatives + j);
      j += kLanes;
    }
  };
  std::int64_t j = 0;
  Vec some[kVectors];
  for (; j + kVectors * kLanes <= count; j += kVectors * kLanes) cap(some, j);
  Vec one[1];
  for (; j < count; j += kLanes) cap(one, j);
}

float apply_modifiers(const kernels::ScoreModifiers& modifiers, std::int64_t r, std::int64_t begin, std::int64_t end,
                      float* scores) {
  ModifiedRow row{};
  unsigned asked = modifiers.asked;
  if (caps(modifiers)) {
    row.cap = modifiers.cap;
    row.far_cap = &modifiers.cap;
    if (row.cap.bound == 0.0f) {
      cap_without_bound(modifiers.cap, begin, end, scores);
      asked -= static_cast<unsigned>(ScoreModifier::softcap);
    }
  }
  row.factor = caps(modifiers) ? 1.0f : modifiers.product_scale;
  if (asks_for(modifiers.asked, ScoreModifier::slope)) {
    const std::int64_t position = modifiers.slopes[r].position - modifiers.first_key;
    row.slope = position <= begin ? -modifiers.slopes[r].slope : modifiers.slopes[r].slope;
    row.between = begin < position && position < end - 1;
    row.position = position;
  }
  if (asks_for(modifiers.asked, ScoreModifier::bias)) {
    row.keys.bias_stride = modifiers.masks.bias_key_stride;
    row.keys.bias = modifiers.masks.bias[r] + modifiers.first_key * row.keys.bias_stride;
  }
  if (asks_for(modifiers.asked, ScoreModifier::mask)) {
    row.keys.mask_stride = modifiers.masks.mask_key_stride;
    row.keys.mask = modifiers.masks.mask[r] + modifiers.first_key * row.keys.mask_stride;
    row.attend = modifiers.masks.attend;
  }
  return max_of_lanes(modify_vectors(row, asked, begin, end, scores));
}

void modify_row(const kernels::ScoreModifiers& of_row, std::int64_t keys, float factor, float* scores,
                float* cap_derivatives) noexcept {
  kernels::ScoreModifiers modifiers = of_row;
  constexpr int kKeys = 16 * kLanes;
  float some[kKeys], derivatives[kKeys];
  for (std::int64_t j = 0; j < keys; j += kKeys, modifiers.first_key += kKeys) {
    const std::int64_t count = smaller(kKeys, keys - j);
    const auto lanes_at = [&](std::int64_t at) { return static_cast<int>(smaller(kLanes, count - at)); };
    for (std::int64_t at = 0; at < count; at += kLanes) store(load_lanes(scores + j + at, lanes_at(at)), some + at);
    if (cap_derivatives != nullptr) {
      cap_scores(modifiers, round_up(count, kLanes), some, derivatives);
      for (std::int64_t at = 0; at < count; at += kLanes) {
        store_lanes(load(derivatives + at), cap_derivatives + j + at, lanes_at(at));
      }
      continue;
    }
    apply_modifiers(modifiers, 0, 0, count, some);
    for (std::int64_t at = 0; at < count; at += kLanes) {
      store_lanes(mul(load(some + at), broadcast(factor)), scores + j + at, lanes_at(at));
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
