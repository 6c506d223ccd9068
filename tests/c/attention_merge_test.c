// Attention over parts of the keys put together, from C.
#include "check.h"

enum { kLq = 3, kLk = 40, kH = 2, kD = 4, kParts = 4 };

static headlight_engine* engine;
static float query[kLq * kH * kD], key[kLk * kH * kD], value[kLk * kH * kD];
static float outs[kParts][kLq * kH * kD], sums[kParts][kH * kLq], out[kLq * kH * kD], sum[kH * kLq];
static headlight_tensor out_tensors[kParts], sum_tensors[kParts];
static const headlight_tensor *part_outs[kParts], *part_sums[kParts];

static void parts_of_the_keys_give_all_keys(void) {
  const headlight_tensor q = TENSOR(query, 1, kLq, kH, kD), k = TENSOR(key, 1, kLk, kH, kD);
  const headlight_tensor v = TENSOR(value, 1, kLk, kH, kD);
  const int64_t each = kLk / kParts;
  for (int p = 0; p < kParts; ++p) {
    const headlight_tensor keys = TENSOR(key + p * each * kH * kD, 1, each, kH, kD);
    const headlight_tensor values = TENSOR(value + p * each * kH * kD, 1, each, kH, kD);
    const headlight_attention_options options = {.struct_size = sizeof options, .log_sum_exp = part_sums[p]};
    WORKS(headlight_attention(engine, &q, &keys, &values, part_outs[p], &options, &error));
  }
  float whole[kLq * kH * kD], whole_sum[kH * kLq];
  const headlight_tensor whole_sums = TENSOR(whole_sum, 1, kH, kLq), whole_out = TENSOR(whole, 1, kLq, kH, kD);
  const headlight_attention_options options = {.struct_size = sizeof options, .log_sum_exp = &whole_sums};
  WORKS(headlight_attention(engine, &q, &k, &v, &whole_out, &options, &error));

  const headlight_tensor o = TENSOR(out, 1, kLq, kH, kD), s = TENSOR(sum, 1, kH, kLq);
  WORKS(headlight_merge_attention(engine, part_outs, part_sums, kParts, &o, &s, &error));
  // Values below 1 and sums near log 40, each from some forty terms.
  for (int n = 0; n < kLq * kH * kD; ++n) CHECK(fabsf(out[n] - whole[n]) <= 40 * 0x1p-24f);
  for (int n = 0; n < kH * kLq; ++n) CHECK(fabsf(sum[n] - whole_sum[n]) <= 40 * 0x1p-24f * 4);

  // In the place of a part, and without the sums.
  WORKS(headlight_merge_attention(engine, part_outs, part_sums, kParts, part_outs[1], NULL, &error));
  CHECK(memcmp(outs[1], out, sizeof out) == 0);
}

// Numbers of 16 bits: one part comes back as it was, and rounded in another type.
static void parts_of_sixteen_bits(void) {
  static const int64_t shape[] = {1, 1, 1, 4};
  static const uint16_t bfloat16[] = {0x3f80, 0xc000, 0x3f81, 0x0000};  // 1, -2, 1 + 2^-7, 0
  const float zero = 0;
  uint16_t half[4], same[4];
  float wide[4];
  const headlight_tensor part = {(void*)bfloat16, HEADLIGHT_BFLOAT16, 4, shape, NULL}, *parts[] = {&part};
  const headlight_tensor rows = {(void*)&zero, HEADLIGHT_FLOAT32, 3, shape, NULL}, *row_sums[] = {&rows};
  const headlight_tensor to_half = {half, HEADLIGHT_FLOAT16, 4, shape, NULL};
  const headlight_tensor to_same = {same, HEADLIGHT_BFLOAT16, 4, shape, NULL};
  const headlight_tensor to_wide = {wide, HEADLIGHT_FLOAT32, 4, shape, NULL};
  WORKS(headlight_merge_attention(engine, parts, row_sums, 1, &to_half, NULL, &error));
  CHECK(half[0] == 0x3c00 && half[1] == 0xc000 && half[2] == 0x3c08 && half[3] == 0);
  WORKS(headlight_merge_attention(engine, parts, row_sums, 1, &to_same, NULL, &error));
  CHECK(memcmp(same, bfloat16, sizeof same) == 0);
  WORKS(headlight_merge_attention(engine, parts, row_sums, 1, &to_wide, NULL, &error));
  CHECK(wide[0] == 1 && wide[1] == -2 && wide[2] == 1.0078125f && wide[3] == 0);
  const headlight_tensor integers = {same, HEADLIGHT_INT8, 4, shape, NULL};
  REFUSED("out has type", headlight_merge_attention(engine, parts, row_sums, 1, &integers, NULL, &error));
}

static void refusals(void) {
  const headlight_tensor o = TENSOR(out, 1, kLq, kH, kD), turned = TENSOR(sum, 1, kLq, kH);
  REFUSED("parts is empty", headlight_merge_attention(engine, NULL, NULL, 0, &o, NULL, &error));
  REFUSED("outs is a null", headlight_merge_attention(engine, NULL, part_sums, 1, &o, NULL, &error));
  REFUSED("log_sum_exps is a null", headlight_merge_attention(engine, part_outs, NULL, 1, &o, NULL, &error));
  REFUSED("out is a null", headlight_merge_attention(engine, part_outs, part_sums, 1, NULL, NULL, &error));
  REFUSED("log_sum_exp", headlight_merge_attention(engine, part_outs, part_sums, 1, &o, &turned, &error));
  REFUSED("engine", headlight_merge_attention(NULL, part_outs, part_sums, 1, &o, NULL, &error));
  FAILS(HEADLIGHT_OUT_OF_MEMORY, "merge_attention",
        headlight_merge_attention(engine, part_outs, part_sums, SIZE_MAX / 2, &o, NULL, &error));
  const headlight_tensor* missing[] = {part_outs[0], NULL};
  REFUSED("outs[1] is a null", headlight_merge_attention(engine, missing, part_sums, 2, &o, NULL, &error));
  const headlight_tensor flat = TENSOR(out, kLq, kH, kD);
  missing[1] = &flat;
  REFUSED("outs has rank 3", headlight_merge_attention(engine, missing, part_sums, 2, &o, NULL, &error));
}

int main(void) {
  engine = make_engine(1);
  fill(query, kLq * kH * kD, 1);
  fill(key, kLk * kH * kD, 2);
  fill(value, kLk * kH * kD, 3);
  static const int64_t out_shape[] = {1, kLq, kH, kD}, sum_shape[] = {1, kH, kLq};
  for (int p = 0; p < kParts; ++p) {
    out_tensors[p] = (headlight_tensor){outs[p], HEADLIGHT_FLOAT32, 4, out_shape, NULL};
    sum_tensors[p] = (headlight_tensor){sums[p], HEADLIGHT_FLOAT32, 3, sum_shape, NULL};
    part_outs[p] = &out_tensors[p];
    part_sums[p] = &sum_tensors[p];
  }
  parts_of_the_keys_give_all_keys();
  parts_of_sixteen_bits();
  refusals();
  headlight_engine_destroy(engine);
  return failures != 0;
}
