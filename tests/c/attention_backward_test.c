// Attention's gradients and dropout from C, by both routes, against the formulas in double.
#include "check.h"
#include "headlight/headlight.h"

// Dv = Lk, so that values can be the identity, and out shows the weights after dropout.
enum { kB = 2, kLq = 5, kLk = 7, kHq = 4, kHkv = 2, kD = 6, kDv = kLk };
enum { kQueries = kB * kLq * kHq * kD, kKeys = kB * kLk * kHkv * kD, kValues = kB * kLk * kHkv * kDv };
enum { kOuts = kB * kLq * kHq * kDv, kWeights = kB * kHq * kLq * kLk, kBiases = kHq * kLq * kLk };

static headlight_engine* engine;
static float query[kQueries], key[kKeys], value[kValues], bias[kBiases], out[kOuts], lse[kB * kHq * kLq];
static float out_gradient[kOuts], weights[kWeights];
static headlight_tensor q, k, v, b, o, l, g, p;

// What is expected: the factors of dropout, and the gradients.
static double factor[kWeights];
static double to_query[kQueries], to_key[kKeys], to_value[kValues], to_bias[kBiases];

// What was computed.
static float query_gradient[kQueries], key_gradient[kKeys], value_gradient[kValues], bias_gradient[kBiases];
static headlight_tensor dq, dk, dv, db;

static int sees(int row, int column) { return column <= row + kLk - kLq; }

// Of one sample, head and row: adds to the expected gradients.
static void expect_row(int sample, int head, int row) {
  const double scale = 1 / sqrt(kD);
  const int shared = head / (kHq / kHkv);
  const int at = ((sample * kLq + row) * kHq + head);
  double weight[kLk], back[kLk], sum = 0, delta = 0;
  for (int j = 0; j < kLk; ++j) {
    const int from = (sample * kLk + j) * kHkv + shared;
    double score = 0;
    for (int d = 0; d < kD; ++d) score += (double)query[at * kD + d] * (double)key[from * kD + d];
    weight[j] = sees(row, j) ? exp(scale * score + (double)bias[(head * kLq + row) * kLk + j]) : 0;
    sum += weight[j];
    back[j] = 0;
    for (int d = 0; d < kDv; ++d) back[j] += (double)out_gradient[at * kDv + d] * (double)value[from * kDv + d];
  }
  const double* const kept = &factor[((sample * kHq + head) * kLq + row) * kLk];
  for (int j = 0; j < kLk; ++j) {
    weight[j] /= sum;
    back[j] *= kept[j];
    delta += weight[j] * back[j];
  }
  for (int j = 0; j < kLk; ++j) {
    const int from = (sample * kLk + j) * kHkv + shared;
    const double score_gradient = weight[j] * (back[j] - delta);
    to_bias[(head * kLq + row) * kLk + j] += score_gradient;
    for (int d = 0; d < kD; ++d) to_query[at * kD + d] += scale * score_gradient * (double)key[from * kD + d];
    for (int d = 0; d < kD; ++d) to_key[from * kD + d] += scale * score_gradient * (double)query[at * kD + d];
    for (int d = 0; d < kDv; ++d) to_value[from * kDv + d] += weight[j] * kept[j] * (double)out_gradient[at * kDv + d];
  }
}

static void expect_gradients(void) {
  memset(to_query, 0, sizeof to_query);
  memset(to_key, 0, sizeof to_key);
  memset(to_value, 0, sizeof to_value);
  memset(to_bias, 0, sizeof to_bias);
  for (int n = 0; n < kB * kHq * kLq; ++n) expect_row(n / kLq / kHq, n / kLq % kHq, n % kLq);
}

// Whether the gradients are `times` those expected.
static int matches(double times) {
  const struct {
    const float* values;
    const double* expected;
    int count;
  } all[] = {{query_gradient, to_query, kQueries},
             {key_gradient, to_key, kKeys},
             {value_gradient, to_value, kValues},
             {bias_gradient, to_bias, kBiases}};
  double most = 0;
  for (int which = 0; which < 4; ++which) {
    for (int n = 0; n < all[which].count; ++n) {
      const double wanted = times * all[which].expected[n];
      most = fmax(most, worst(&all[which].values[n], &wanted, 1));
    }
  }
  return most < 5e-6;
}

static headlight_attention_options make_options(const headlight_dropout* dropout) {
  return (headlight_attention_options){.struct_size = sizeof(headlight_attention_options),
                                       .causal = HEADLIGHT_CAUSAL_BOTTOM_RIGHT,
                                       .bias = &b,
                                       .log_sum_exp = &l,
                                       .dropout = dropout};
}

static void gradients(const headlight_dropout* dropout) {
  const headlight_attention_options options = make_options(dropout);
  headlight_attention_gradients asked = {
      .struct_size = sizeof asked, .query = &dq, .key = &dk, .value = &dv, .bias = &db};
  expect_gradients();
  WORKS(headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  WORKS(headlight_attention_backward(engine, &q, &k, &v, &o, &l, &g, &asked, &options, &error));
  CHECK(matches(1));
  asked.accumulate = 1;
  WORKS(headlight_attention_backward(engine, &q, &k, &v, &o, &l, &g, &asked, &options, &error));
  CHECK(matches(2));

  // Only what is given is computed; the query's may lie where out lay.
  memset(key_gradient, 0xFF, sizeof key_gradient);
  memcpy(query_gradient, out, sizeof query_gradient);
  const headlight_attention_gradients value_alone = {.struct_size = sizeof value_alone, .value = &dv};
  WORKS(headlight_attention_backward(engine, &q, &k, &v, &o, &l, &g, &value_alone, &options, &error));
  CHECK(worst(value_gradient, to_value, kValues) < 5e-6 && isnan(key_gradient[0]));
  CHECK(memcmp(query_gradient, out, sizeof query_gradient) == 0);
}

// Reads from out, with values of 1 on the diagonal, which weights are dropped.
static void dropout(void) {
  headlight_dropout given = {.probability = 0.25f, .stream = 3, .seed = 42};
  headlight_attention_options options = make_options(NULL);
  memset(value, 0, sizeof value);
  for (int n = 0; n < kB * kLk * kHkv; ++n) value[n * kDv + n / kHkv % kLk] = 1.0f;
  const headlight_probabilities all = {.struct_size = sizeof all, .per_head = &p};
  options.probabilities = &all;
  options.dropout = &given;
  WORKS(headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  int visible = 0, dropped = 0;
  for (int n = 0; n < kWeights; ++n) {
    const int sample = n / kLk / kLq / kHq, head = n / kLk / kLq % kHq, row = n / kLk % kLq, column = n % kLk;
    const double shown = (double)out[((sample * kLq + row) * kHq + head) * kDv + column];
    factor[n] = shown == 0 ? 0 : 1 / 0.75;
    CHECK(fabs(shown - factor[n] * (double)weights[n]) < 1e-6);
    if (!sees(row, column)) continue;
    ++visible;
    dropped += shown == 0;
  }
  CHECK(dropped > visible / 8 && dropped < visible / 2);
  // Another stream drops others; a probability of 0 none.
  static float first[kOuts];
  memcpy(first, out, sizeof first);
  given.stream = 4;
  WORKS(headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  int differ = 0;
  for (int n = 0; n < kOuts; ++n) differ += (first[n] == 0.0f) != (out[n] == 0.0f);
  CHECK(differ > 0);
  given.probability = 1.0f;
  REFUSED("dropout", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  given.stream = 3;
  given.probability = 0.25f;
  fill(value, kValues, 3);
  gradients(&given);
}

static void refusals(void) {
  headlight_attention_options options = make_options(NULL);
  headlight_attention_gradients asked = {.struct_size = sizeof asked, .query = &dq};
  REFUSED("engine", headlight_attention_backward(NULL, &q, &k, &v, &o, &l, &g, &asked, &options, &error));
  REFUSED("query is", headlight_attention_backward(engine, NULL, &k, &v, &o, &l, &g, &asked, &options, &error));
  REFUSED("key is", headlight_attention_backward(engine, &q, NULL, &v, &o, &l, &g, &asked, &options, &error));
  REFUSED("value is", headlight_attention_backward(engine, &q, &k, NULL, &o, &l, &g, &asked, &options, &error));
  REFUSED("out is", headlight_attention_backward(engine, &q, &k, &v, NULL, &l, &g, &asked, &options, &error));
  REFUSED("log_sum_exp is", headlight_attention_backward(engine, &q, &k, &v, &o, NULL, &g, &asked, &options, &error));
  REFUSED("out_gradient is", headlight_attention_backward(engine, &q, &k, &v, &o, &l, NULL, &asked, &options, &error));
  REFUSED("gradients is", headlight_attention_backward(engine, &q, &k, &v, &o, &l, &g, NULL, &options, &error));
  static const int64_t zeros[4] = {0};
  const headlight_tensor nothing = {.type = HEADLIGHT_FLOAT32, .rank = 4, .shape = zeros};
  const headlight_tensor no_rows = {.type = HEADLIGHT_FLOAT32, .rank = 3, .shape = zeros};
  REFUSED("out has shape [0, 0, 0, 0]",
          headlight_attention_backward(engine, &q, &k, &v, &nothing, &l, &g, &asked, &options, &error));
  REFUSED("log_sum_exp has shape [0, 0, 0]",
          headlight_attention_backward(engine, &q, &k, &v, &o, &no_rows, &g, &asked, &options, &error));
  asked.query = &k;
  REFUSED("gradients.query", headlight_attention_backward(engine, &q, &k, &v, &o, &l, &g, &asked, &options, &error));
  asked.query = NULL;
  asked.bias = &db;
  options.bias = NULL;
  REFUSED("gradients.bias", headlight_attention_backward(engine, &q, &k, &v, &o, &l, &g, &asked, &options, &error));
  asked.reserved = 1;
  REFUSED("gradients has a value",
          headlight_attention_backward(engine, &q, &k, &v, &o, &l, &g, &asked, &options, &error));
  asked.struct_size = 0;
  REFUSED("gradients.struct_size is 0",
          headlight_attention_backward(engine, &q, &k, &v, &o, &l, &g, &asked, &options, &error));
}

static void workspace(void) {
  headlight_attention_shape shape = {.struct_size = sizeof shape,
                                     .batch = kB,
                                     .query_length = kLq,
                                     .key_length = kLk,
                                     .query_heads = kHq,
                                     .key_value_heads = kHkv,
                                     .head_dim = kD,
                                     .value_dim = kDv};
  headlight_engine* fresh = make_engine(1);
  size_t bytes = 0;
  WORKS(headlight_attention_backward_workspace_bytes(fresh, &shape, &bytes, &error));
  CHECK(bytes > 0 && headlight_engine_scratch_bytes(fresh) == 0);
  WORKS(headlight_attention_backward_reserve(fresh, &shape, &error));
  const size_t held = headlight_engine_scratch_bytes(fresh);
  CHECK(held >= bytes);
  const headlight_attention_options options = make_options(NULL);
  const headlight_attention_gradients asked = {.struct_size = sizeof asked, .query = &dq, .key = &dk, .value = &dv};
  WORKS(headlight_attention_backward(fresh, &q, &k, &v, &o, &l, &g, &asked, &options, &error));
  CHECK(headlight_engine_scratch_bytes(fresh) == held);
  REFUSED("bytes is", headlight_attention_backward_workspace_bytes(fresh, &shape, NULL, &error));
  shape.key_length = -1;
  REFUSED("extent -1", headlight_attention_backward_reserve(fresh, &shape, &error));
  REFUSED("shape is", headlight_attention_backward_reserve(fresh, NULL, &error));
  REFUSED("shape is", headlight_attention_backward_workspace_bytes(fresh, NULL, &bytes, &error));
  REFUSED("engine", headlight_attention_backward_reserve(NULL, &shape, &error));
  headlight_engine_destroy(fresh);
}

int main(void) {
  engine = make_engine(2);
  q = TENSOR(query, kB, kLq, kHq, kD);
  k = TENSOR(key, kB, kLk, kHkv, kD);
  v = TENSOR(value, kB, kLk, kHkv, kDv);
  b = TENSOR(bias, 1, kHq, kLq, kLk);
  o = TENSOR(out, kB, kLq, kHq, kDv);
  l = TENSOR(lse, kB, kHq, kLq);
  g = TENSOR(out_gradient, kB, kLq, kHq, kDv);
  p = TENSOR(weights, kB, kHq, kLq, kLk);
  dq = TENSOR(query_gradient, kB, kLq, kHq, kD);
  dk = TENSOR(key_gradient, kB, kLk, kHkv, kD);
  dv = TENSOR(value_gradient, kB, kLk, kHkv, kDv);
  db = TENSOR(bias_gradient, 1, kHq, kLq, kLk);
  fill(query, kQueries, 1);
  fill(key, kKeys, 2);
  fill(value, kValues, 3);
  fill(bias, kBiases, 4);
  fill(out_gradient, kOuts, 5);
  for (int n = 0; n < kWeights; ++n) factor[n] = 1;
  gradients(NULL);
  dropout();
  refusals();
  workspace();
  headlight_engine_destroy(engine);
  return check_result();
}
