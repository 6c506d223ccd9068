// Compiled once per instruction set, and once per SIMD library for the comparison of their bits.
#include "simd/vector_probe.h"

#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

using test::VectorProbe;

inline Vec as_vector(Vec v) { return v; }
inline Vec as_vector(Mask mask) { return select(mask, broadcast(1.0f), zero()); }

#define HEADLIGHT_DEFINE(name)                                        \
  void probe_##name(const float* a, float* out, std::int64_t count) { \
    for (std::int64_t i = 0; i < count; i += kLanes) {                \
      store(as_vector(HEADLIGHT_TARGET::name(load(a + i))), out + i); \
    }                                                                 \
  }
HEADLIGHT_UNARY(HEADLIGHT_DEFINE)
#undef HEADLIGHT_DEFINE

#define HEADLIGHT_DEFINE(name)                                                        \
  void probe_##name(const float* a, const float* b, float* out, std::int64_t count) { \
    for (std::int64_t i = 0; i < count; i += kLanes) {                                \
      store(as_vector(HEADLIGHT_TARGET::name(load(a + i), load(b + i))), out + i);    \
    }                                                                                 \
  }
HEADLIGHT_BINARY(HEADLIGHT_DEFINE)
#undef HEADLIGHT_DEFINE

#define HEADLIGHT_DEFINE(name)                                                                        \
  void probe_##name(const float* a, const float* b, const float* c, float* out, std::int64_t count) { \
    for (std::int64_t i = 0; i < count; i += kLanes) {                                                \
      store(HEADLIGHT_TARGET::name(load(a + i), load(b + i), load(c + i)), out + i);                  \
    }                                                                                                 \
  }
HEADLIGHT_TERNARY(HEADLIGHT_DEFINE)
#undef HEADLIGHT_DEFINE

void probe_select_less(const float* a, const float* b, const float* c, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    store(select(less(load(a + i), load(b + i)), load(a + i), load(c + i)), out + i);
  }
}

void probe_load(const float* from, float* out) { store(load(from), out); }
void probe_load_partial(const float* from, int count, float* out) { store(load_partial(from, count), out); }
void probe_store_partial(const float* from, float* to, int count) { store_partial(load(from), to, count); }
void probe_load_bf16(const std::uint16_t* from, float* out) { store(load_bf16(from), out); }
void probe_load_f16(const std::uint16_t* from, float* out) { store(load_f16(from), out); }
void probe_load_bf16_partial(const std::uint16_t* from, int count, float* out) {
  store(load_bf16_partial(from, count), out);
}
void probe_load_f16_partial(const std::uint16_t* from, int count, float* out) {
  store(load_f16_partial(from, count), out);
}
void probe_store_bf16(const float* from, std::uint16_t* to) { store_bf16(load(from), to); }
void probe_store_f16(const float* from, std::uint16_t* to) { store_f16(load(from), to); }
void probe_store_bf16_partial(const float* from, int count, std::uint16_t* to) {
  store_bf16_partial(load(from), to, count);
}
void probe_store_f16_partial(const float* from, int count, std::uint16_t* to) {
  store_f16_partial(load(from), to, count);
}
void probe_lane_index(float* out) { store(lane_index(), out); }
void probe_bytes_not_zero(const std::uint8_t* from, float* out) { store(as_vector(bytes_not_zero(from)), out); }
void probe_mask_first(int count, float* out) { store(as_vector(mask_first(count)), out); }
void probe_masks(int a, int b, float* conjunction, float* disjunction, float* negation) {
  store(as_vector(mask_and(mask_first(a), mask_first(b))), conjunction);
  store(as_vector(mask_or(mask_first(a), mask_first(b))), disjunction);
  store(as_vector(mask_not(mask_first(a))), negation);
}
bool probe_any_of(const std::uint8_t* from) { return any_of(bytes_not_zero(from)); }
float probe_sum_of_lanes(const float* from) { return sum_of_lanes(load(from)); }
float probe_max_of_lanes(const float* from) { return max_of_lanes(load(from)); }
void probe_transpose(const float* from, float* out) {
  Vec rows[kLanes];
  for (int i = 0; i < kLanes; ++i) rows[i] = load(from + i * kLanes);
  transpose(rows);
  for (int i = 0; i < kLanes; ++i) store(rows[i], out + i * kLanes);
}
[[maybe_unused]] void probe_pairs(const float* from, float* swapped, float* first, float* second) {
  store(swap_pairs(load(from)), swapped);
  store(first_of_pairs(load(from)), first);
  store(second_of_pairs(load(from)), second);
}
void probe_integers(const float* a, const float* b, float* sum, float* difference, float* conjunction, float* left,
                    float* right, float* minus_one) {
  const IntVec first = as_int(load(a));
  const IntVec second = as_int(load(b));
  store(as_float(add_int(first, second)), sum);
  store(as_float(sub_int(first, second)), difference);
  store(as_float(and_int(first, second)), conjunction);
  store(as_float(shift_left<5>(first)), left);
  store(as_float(shift_right<5>(first)), right);
  store(as_float(broadcast_int(-1)), minus_one);
}

void probe_small_integers(const float* a, const float* b, const float* c, float* product, float* even, float* odd,
                          float* dot, float* number) {
  const IntVec first = as_int(load(a));
  const IntVec second = as_int(load(b));
  store(as_float(mul_int(first, second)), product);
  store(as_float(even_bytes(first)), even);
  store(as_float(odd_bytes(first)), odd);
  store(as_float(dot_i16(first, second, as_int(load(c)))), dot);
  store(to_float(first), number);
}
void probe_store_u16(const float* from, std::uint16_t* to) { store_u16(as_int(load(from)), to); }
void probe_store_i8(const float* from, std::int8_t* to) { store_i8(as_int(load(from)), to); }
void probe_load_i8(const std::int8_t* from, float* out) { store(load_i8(from), out); }
void probe_load_i8_partial(const std::int8_t* from, int count, float* out) { store(load_i8_partial(from, count), out); }
[[maybe_unused]] void probe_interleave_bytes(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* lower,
                                             std::uint8_t* upper) {
  const IntVec first = as_int(load(reinterpret_cast<const float*>(a)));
  const IntVec second = as_int(load(reinterpret_cast<const float*>(b)));
  store(as_float(interleave_lower_bytes(first, second)), reinterpret_cast<float*>(lower));
  store(as_float(interleave_upper_bytes(first, second)), reinterpret_cast<float*>(upper));
}

#define HEADLIGHT_TEXT_OF(name) #name
#define HEADLIGHT_TEXT(name) HEADLIGHT_TEXT_OF(name)

}  // namespace

extern const VectorProbe vector_probe;
const VectorProbe vector_probe = {
    .target = HEADLIGHT_TEXT(HEADLIGHT_TARGET),
    .lanes = kLanes,
    .has_fma = kValues.has_fma,
#define HEADLIGHT_ENTRY(name) .name = probe_##name,
    HEADLIGHT_UNARY(HEADLIGHT_ENTRY) HEADLIGHT_BINARY(HEADLIGHT_ENTRY) HEADLIGHT_TERNARY(HEADLIGHT_ENTRY)
#undef HEADLIGHT_ENTRY
        .select_less = probe_select_less,
    .load = probe_load,
    .load_partial = probe_load_partial,
    .store_partial = probe_store_partial,
    .load_bf16 = probe_load_bf16,
    .load_f16 = probe_load_f16,
    .load_bf16_partial = probe_load_bf16_partial,
    .load_f16_partial = probe_load_f16_partial,
    .store_bf16 = probe_store_bf16,
    .store_f16 = probe_store_f16,
    .store_bf16_partial = probe_store_bf16_partial,
    .store_f16_partial = probe_store_f16_partial,
    .lane_index = probe_lane_index,
    .mask_first = probe_mask_first,
    .bytes_not_zero = probe_bytes_not_zero,
    .masks = probe_masks,
    .any_of = probe_any_of,
    .sum_of_lanes = probe_sum_of_lanes,
    .max_of_lanes = probe_max_of_lanes,
    .transpose = probe_transpose,
    .pairs = kLanes > 1 ? probe_pairs : nullptr,
    .integers = probe_integers,
    .small_integers = probe_small_integers,
    .store_u16 = probe_store_u16,
    .store_i8 = probe_store_i8,
    .load_i8 = probe_load_i8,
    .load_i8_partial = probe_load_i8_partial,
    .interleave_bytes = kValues.interleaves_bytes ? probe_interleave_bytes : nullptr,
};

}  // namespace headlight::HEADLIGHT_TARGET
