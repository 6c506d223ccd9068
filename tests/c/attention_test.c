// Attention from C with every option, against plain loops in double over a table of who sees whom.
#include "check.h"
#include "headlight/headlight.h"

enum { kB = 2, kLq = 6, kLk = 9, kHq = 4, kHkv = 2, kD = 8, kDv = 5 };

static headlight_engine* engine;
static float query[kB * kLq * kHq * kD], key[kB * kLk * kHkv * kD], value[kB * kLk * kHkv * kDv];
static float out[kB * kLq * kHq * kDv], lse[kB * kHq * kLq], per_head[kB * kHq * kLq * kLk], mean[kB * kLq * kLk];
static float bias[kHq * kLq * kLk];

// What is expected of the next call.
static uint8_t sees[kB][kLq][kLk];
static double scale = 0.35355339059327373;  // 1 / sqrt(kD)
static int biased;

static void reset(headlight_attention_options* options) {
  memset(sees, 1, sizeof sees);
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

static double score(int sample, int head, int row, int column) {
  double sum = 0;
  const int shared = head / (kHq / kHkv);
  for (int d = 0; d < kD; ++d) {
    sum += (double)query[((sample * kLq + row) * kHq + head) * kD + d] *
           (double)key[((sample * kLk + column) * kHkv + shared) * kD + d];
  }
  return scale * sum + (biased ? (double)bias[(head * kLq + row) * kLk + column] : 0);
}

// The weights of a row's keys; returns the sum of the exponentials before they are shares of it.
static double weigh(int sample, int head, int row, double* weights) {
  double sum = 0;
  for (int column = 0; column < kLk; ++column) {
    weights[column] = sees[sample][row][column] ? exp(score(sample, head, row, column)) : 0;
    sum += weights[column];
  }
  for (int column = 0; column < kLk; ++column) weights[column] = sum > 0 ? weights[column] / sum : 0;
  return sum;
}

static void attend(int sample, int head, const double* weights, double* expected) {
  for (int d = 0; d < kDv; ++d) {
    expected[d] = 0;
    for (int column = 0; column < kLk; ++column) {
      const int at = ((sample * kLk + column) * kHkv + head / (kHq / kHkv)) * kDv + d;
      expected[d] += weights[column] * (double)value[at];
    }
  }
}

// Whether out, lse, per_head and mean are those of `sees`; outputs that were not asked for hold a NaN.
static int matches(int samples) {
  double most = 0;
  for (int sample = 0; sample < samples; ++sample) {
    for (int row = 0; row < kLq; ++row) {
      double average[kLk] = {0};
      for (int head = 0; head < kHq; ++head) {
        double weights[kLk], expected[kDv];
        const double sum = weigh(sample, head, row, weights);
        attend(sample, head, weights, expected);
        for (int column = 0; column < kLk; ++column) average[column] += weights[column] / kHq;
        most = fmax(most, worst(&out[((sample * kLq + row) * kHq + head) * kDv], expected, kDv));
        const float* const got = &lse[(sample * kHq + head) * kLq + row];
        if (sum == 0 ? *got != -HUGE_VALF : !isnan(*got) && fabs((double)*got - log(sum)) > 2e-6) return 0;
        const float* const probabilities = &per_head[((sample * kHq + head) * kLq + row) * kLk];
        if (!isnan(per_head[0])) most = fmax(most, worst(probabilities, weights, kLk));
      }
      if (!isnan(mean[0])) most = fmax(most, worst(&mean[(sample * kLq + row) * kLk], average, kLk));
    }
  }
  return most < 2e-6;
}

// Runs both routes with all outputs.
static int right(const headlight_attention_options* given, int samples) {
  const headlight_tensor q = TENSOR(query, samples, kLq, kHq, kD), k = TENSOR(key, samples, kLk, kHkv, kD);
  const headlight_tensor v = TENSOR(value, samples, kLk, kHkv, kDv), o = TENSOR(out, samples, kLq, kHq, kDv);
  const headlight_tensor l = TENSOR(lse, samples, kHq, kLq), p = TENSOR(per_head, samples, kHq, kLq, kLk);
  const headlight_tensor m = TENSOR(mean, samples, kLq, kLk);
  headlight_attention_options options = *given;
  const headlight_probabilities wanted = {.struct_size = sizeof wanted, .per_head = &p, .averaged = &m};
  options.log_sum_exp = &l;
  options.probabilities = &wanted;
  WORKS(headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  return matches(samples);
}

static void structural_masks(void) {
  headlight_attention_options options;
  reset(&options);
  CHECK(right(&options, kB));

  for (int bottom = 0; bottom < 2; ++bottom) {
    const int shift = bottom ? kLk - kLq : 0;
    reset(&options);
    options.causal = bottom ? HEADLIGHT_CAUSAL_BOTTOM_RIGHT : HEADLIGHT_CAUSAL_TOP_LEFT;
    for (int n = 0; n < kB * kLq * kLk; ++n) (&sees[0][0][0])[n] = n % kLk <= n / kLk % kLq + shift;
    CHECK(right(&options, kB));

    const headlight_window window = {.left = 2, .right = 1};
    reset(&options);
    options.align = bottom ? HEADLIGHT_ALIGN_BOTTOM_RIGHT : HEADLIGHT_ALIGN_TOP_LEFT;
    options.window = &window;
    for (int n = 0; n < kB * kLq * kLk; ++n) {
      const int away = n % kLk - n / kLk % kLq - shift;
      (&sees[0][0][0])[n] = away >= -2 && away <= 1;
    }
    CHECK(right(&options, kB));

    reset(&options);
    options.align = bottom ? HEADLIGHT_ALIGN_BOTTOM_RIGHT : HEADLIGHT_ALIGN_AS_CAUSAL;
    options.chunk = 4;
    for (int n = 0; n < kB * kLq * kLk; ++n) (&sees[0][0][0])[n] = n % kLk / 4 == (n / kLk % kLq + shift) / 4;
    CHECK(right(&options, kB));
  }
}

static void lengths(void) {
  headlight_attention_options options;
  const int64_t queries[] = {6, 3}, keys[] = {4, 0};
  reset(&options);
  options.query_lengths = (headlight_indices){queries, kB};
  options.key_lengths = (headlight_indices){keys, kB};
  for (int n = 0; n < kB * kLq * kLk; ++n) {
    const int sample = n / kLk / kLq;
    (&sees[0][0][0])[n] = n / kLk % kLq < queries[sample] && n % kLk < keys[sample];
  }
  CHECK(right(&options, kB));

  const int64_t query_offsets[] = {0, 1, 6}, key_offsets[] = {0, 7, 9};
  reset(&options);
  options.query_offsets = (headlight_indices){query_offsets, 3};
  options.key_offsets = (headlight_indices){key_offsets, 3};
  for (int n = 0; n < kLq * kLk; ++n) (&sees[0][0][0])[n] = (n / kLk < 1) == (n % kLk < 7);
  CHECK(right(&options, 1));
}

static void arbitrary_masks(void) {
  headlight_attention_options options;
  uint8_t entries[kLq * kLk];
  for (int n = 0; n < kLq * kLk; ++n) entries[n] = (uint8_t)(n % 3 == 0 ? 0 : n);
  // The same for every sample and head.
  const headlight_tensor mask = {entries, HEADLIGHT_UINT8, 4, INTS(1, 1, kLq, kLk), NULL};
  for (int ignore = 0; ignore < 2; ++ignore) {
    reset(&options);
    options.mask = &mask;
    options.mask_means = ignore ? HEADLIGHT_MASK_MEANS_IGNORE : HEADLIGHT_MASK_MEANS_ATTEND;
    for (int n = 0; n < kB * kLq * kLk; ++n) (&sees[0][0][0])[n] = (entries[n % (kLq * kLk)] != 0) != ignore;
    CHECK(right(&options, kB));
  }

  reset(&options);
  const headlight_tensor added = TENSOR(bias, 1, kHq, kLq, kLk);
  const float other_scale = 0.125f;
  options.bias = &added;
  options.scale = &other_scale;
  const double before = scale;
  scale = 0.125;
  biased = 1;
  CHECK(right(&options, kB));
  scale = before;
  biased = 0;
}

// Each pair's score goes through cap, slope and mask; a sink takes its share.
static void score_modifiers(void) {
  enum { kQueryStart = 5, kKeyStart = 2 };
  static float scores[kB * kHq * kLq * kLk];
  const float cap = 0.75f, slopes[kHq] = {0.5f, 0.25f, 0.125f, 0.0625f}, sinks[kHq] = {1.0f, -0.5f, 0.25f, 0.0f};
  const int64_t query_start[] = {kQueryStart}, key_start[] = {kKeyStart};
  const headlight_tensor q = TENSOR(query, kB, kLq, kHq, kD), k = TENSOR(key, kB, kLk, kHkv, kD);
  const headlight_tensor v = TENSOR(value, kB, kLk, kHkv, kDv), o = TENSOR(out, kB, kLq, kHq, kDv);
  const headlight_tensor l = TENSOR(lse, kB, kHq, kLq), s = TENSOR(scores, kB, kHq, kLq, kLk);
  headlight_attention_options options;
  reset(&options);
  options.causal = HEADLIGHT_CAUSAL_TOP_LEFT;
  options.query_start = (headlight_indices){query_start, 1};
  options.key_start = (headlight_indices){key_start, 1};
  options.softcap = &cap;
  options.alibi = &(headlight_tensor){(void*)slopes, HEADLIGHT_FLOAT32, 1, INTS(kHq), NULL};
  options.sinks = &(headlight_tensor){(void*)sinks, HEADLIGHT_FLOAT32, 1, INTS(kHq), NULL};
  options.log_sum_exp = &l;
  options.scores = &s;
  memset(scores, 0, sizeof scores);
  memset(lse, 0, sizeof lse);
  WORKS(headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  for (int n = 0; n < kB * kHq * kLq; ++n) {
    const int sample = n / kLq / kHq, head = n / kLq % kHq, row = n % kLq;
    double sum = exp((double)sinks[head]);
    for (int column = 0; column < kLk; ++column) {
      const int distance = row + kQueryStart - (column + kKeyStart);
      const double capped = (double)cap * tanh(score(sample, head, row, column) / (double)cap);
      const double expected = capped - (double)slopes[head] * abs(distance);
      const double got = (double)scores[n * kLk + column];
      CHECK(distance < 0 ? got == -HUGE_VAL : fabs(got - expected) < 2e-6);
      if (distance >= 0) sum += exp(expected);
    }
    CHECK(fabs((double)lse[n] - log(sum)) < 2e-6);
  }
}

static void some_rows(void) {
  const headlight_tensor q = TENSOR(query, kB, kLq, kHq, kD), k = TENSOR(key, kB, kLk, kHkv, kD);
  const headlight_tensor v = TENSOR(value, kB, kLk, kHkv, kDv), o = TENSOR(out, kB, kLq, kHq, kDv);
  const headlight_tensor p = TENSOR(per_head, kB, kHq, kLq, kLk);
  headlight_attention_options options;
  reset(&options);
  headlight_probabilities wanted = {.struct_size = sizeof wanted, .per_head = &p};
  options.probabilities = &wanted;
  WORKS(headlight_attention(engine, &q, &k, &v, &o, &options, &error));

  float chosen[kB * kHq * 2 * kLk];
  const headlight_tensor c = TENSOR(chosen, kB, kHq, 2, kLk);
  const int64_t rows[] = {4, 1};
  wanted.per_head = &c;
  wanted.rows = (headlight_indices){rows, 2};
  WORKS(headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  for (int n = 0; n < kB * kHq * 2; ++n) {
    const float* const whole = &per_head[(n / 2 * kLq + rows[n % 2]) * kLk];
    CHECK(memcmp(&chosen[n * kLk], whole, kLk * sizeof(float)) == 0);
  }

  const int64_t outside[] = {kLq};
  wanted.rows = (headlight_indices){outside, 1};
  REFUSED("probabilities.rows[0] is 6", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  wanted.rows = (headlight_indices){rows, -1};
  REFUSED("probabilities.rows has -1", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  wanted.rows = (headlight_indices){rows, 1};
  REFUSED("probabilities.per_head has shape", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  wanted.reserved = 1;
  REFUSED("probabilities has a value", headlight_attention(engine, &q, &k, &v, &o, &options, &error));

  // The smallest call there is, and a head-major query through its strides.
  memset(lse, 0xFF, sizeof lse);
  memset(per_head, 0xFF, sizeof per_head);
  memset(mean, 0xFF, sizeof mean);
  static float head_major[kB * kLq * kHq * kD];
  for (int n = 0; n < kB * kLq * kHq; ++n) {
    const int sample = n / kHq / kLq, row = n / kHq % kLq, head = n % kHq;
    memcpy(&head_major[((sample * kHq + head) * kLq + row) * kD], &query[n * kD], kD * sizeof(float));
  }
  const headlight_tensor strided = {head_major, HEADLIGHT_FLOAT32, 4, INTS(kB, kLq, kHq, kD),
                                    INTS(kHq * kLq * kD, kD, kLq * kD, 1)};
  reset(&options);
  WORKS(headlight_attention(engine, &strided, &k, &v, &o, NULL, &error));
  CHECK(matches(kB));
}

// Of packed sequences, without the columns that a row cannot see.
static void own_keys(void) {
  const headlight_tensor q = TENSOR(query, 1, kLq, kHq, kD), k = TENSOR(key, 1, kLk, kHkv, kD);
  const headlight_tensor v = TENSOR(value, 1, kLk, kHkv, kDv), o = TENSOR(out, 1, kLq, kHq, kDv);
  const int64_t query_offsets[] = {0, 2, 6}, key_offsets[] = {0, 4, 9};
  enum { kLongest = 5 };
  float own[kHq * kLq * kLongest], own_mean[kLq * kLongest];
  const headlight_tensor all = TENSOR(per_head, 1, kHq, kLq, kLk), narrow = TENSOR(own, 1, kHq, kLq, kLongest);
  const headlight_tensor averaged = TENSOR(own_mean, 1, kLq, kLongest);
  headlight_attention_options options;
  reset(&options);
  options.query_offsets = (headlight_indices){query_offsets, 3};
  options.key_offsets = (headlight_indices){key_offsets, 3};
  headlight_probabilities wanted = {.struct_size = sizeof wanted, .per_head = &all};
  options.probabilities = &wanted;
  WORKS(headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  wanted = (headlight_probabilities){.struct_size = sizeof wanted, .per_head = &narrow, .own_keys = 1};
  wanted.averaged = &averaged;
  memset(own, 0xFF, sizeof own);
  WORKS(headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  for (int n = 0; n < kHq * kLq * kLongest; ++n) {
    const int head = n / kLongest / kLq, row = n / kLongest % kLq, column = n % kLongest;
    const int first = row < 2 ? 0 : 4, count = row < 2 ? 4 : 5;
    const double expected = column < count ? (double)per_head[(head * kLq + row) * kLk + first + column] : 0;
    CHECK(fabs((double)own[n] - expected) < 1e-6);
  }
  for (int n = 0; n < kLq * kLongest; ++n) {
    double average = 0;
    for (int head = 0; head < kHq; ++head) average += (double)own[head * kLq * kLongest + n] / kHq;
    CHECK(fabs((double)own_mean[n] - average) < 1e-6);
  }
  options.query_offsets = options.key_offsets = (headlight_indices){0};
  REFUSED("probabilities.own_keys", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
}

// Numbers of 16 bits: bfloat16 is the upper half of a float; of binary16 there are normal numbers here alone.
static float wide_of(uint16_t bits, headlight_type type) {
  const uint32_t upper = (uint32_t)bits << 16;
  float number = 0;
  memcpy(&number, &upper, sizeof number);
  if (type == HEADLIGHT_BFLOAT16) return number;
  const float magnitude = ldexpf((float)(1024 + bits % 1024), bits / 1024 % 32 - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

static void sixteen_bits(void) {
  enum { kQuery = kLq * kHq * kD, kKey = kLk * kHkv * kD, kValue = kLk * kHkv * kDv, kOut = kLq * kHq * kDv };
  uint16_t queries[kQuery], keys[kKey], values[kValue], outs[kOut];
  float wide_query[kQuery], wide_key[kKey], wide_value[kValue], wide_out[kOut];
  const headlight_type types[] = {HEADLIGHT_BFLOAT16, HEADLIGHT_FLOAT16};
  for (int n = 0; n < 2; ++n) {
    const headlight_type type = types[n], other = types[1 - n];
    // Signs, fractions and a few exponents below 1.
    const uint16_t base = type == HEADLIGHT_BFLOAT16 ? 0x3e00 : 0x3400;
    const uint16_t other_base = type == HEADLIGHT_BFLOAT16 ? 0x3400 : 0x3e00;
    for (int i = 0; i < kQuery; ++i) queries[i] = (uint16_t)(i % 3 << 15 | (base + i * 37 % 256));
    for (int i = 0; i < kKey; ++i) keys[i] = (uint16_t)(i % 5 << 15 | (base + i * 91 % 256));
    for (int i = 0; i < kValue; ++i) values[i] = (uint16_t)(i % 7 << 15 | (other_base + i * 53 % 256));
    for (int i = 0; i < kQuery; ++i) wide_query[i] = wide_of(queries[i], type);
    for (int i = 0; i < kKey; ++i) wide_key[i] = wide_of(keys[i], type);
    for (int i = 0; i < kValue; ++i) wide_value[i] = wide_of(values[i], other);
    headlight_tensor q = TENSOR(wide_query, 1, kLq, kHq, kD), k = TENSOR(wide_key, 1, kLk, kHkv, kD);
    headlight_tensor v = TENSOR(wide_value, 1, kLk, kHkv, kDv), o = TENSOR(wide_out, 1, kLq, kHq, kDv);
    WORKS(headlight_attention(engine, &q, &k, &v, &o, NULL, &error));
    float expected[kOut];
    memcpy(expected, wide_out, sizeof expected);
    q.data = queries, k.data = keys, v.data = values;
    q.type = k.type = type;
    v.type = other;
    WORKS(headlight_attention(engine, &q, &k, &v, &o, NULL, &error));
    CHECK(memcmp(expected, wide_out, sizeof expected) == 0);
    o.data = outs;
    o.type = HEADLIGHT_BFLOAT16;
    WORKS(headlight_attention(engine, &q, &k, &v, &o, NULL, &error));
    for (int i = 0; i < kOut; ++i) {
      const float got = wide_of(outs[i], HEADLIGHT_BFLOAT16);
      CHECK(fabsf(got - expected[i]) <= fabsf(expected[i]) * 0x1p-8f);
    }
    o.type = HEADLIGHT_INT64;
    REFUSED("out has type 1, expected 0, 3 or 5", headlight_attention(engine, &q, &k, &v, &o, NULL, &error));
    REFUSED("value is a null pointer", headlight_attention(engine, &q, &k, NULL, &o, NULL, &error));
    q.rank = 3;
    REFUSED("query has rank 3, expected 4", headlight_attention(engine, &q, &k, &v, &o, NULL, &error));
  }
}

int main(void) {
  engine = make_engine(2);
  fill(query, sizeof query / sizeof *query, 1);
  fill(key, sizeof key / sizeof *key, 2);
  fill(value, sizeof value / sizeof *value, 3);
  fill(bias, sizeof bias / sizeof *bias, 4);
  structural_masks();
  lengths();
  arbitrary_masks();
  score_modifiers();
  some_rows();
  own_keys();
  sixteen_bits();
  headlight_engine_destroy(engine);
  return check_result();
}
