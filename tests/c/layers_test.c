// Layers from C: parameters in and out by name, and what they compute with them.
#include "check.h"

enum { kB = 2, kL = 5, kLm = 7, kE = 12, kHeads = 3, kInner = 20 };

static headlight_engine* engine;
static float x[kB * kL * kE], memory[kB * kLm * kE], residual[kB * kL * kE], y[kB * kL * kE];

static headlight_layer* make_attention(int separate) {
  headlight_multi_head_attention_options options = {
      .struct_size = sizeof options, .width = kE, .heads = kHeads, .separate_projections = separate};
  headlight_layer* layer = NULL;
  WORKS(headlight_multi_head_attention_create(&options, &layer, &error));
  WORKS(headlight_layer_initialize(layer, 7, &error));
  return layer;
}

static void get(const headlight_layer* layer, const char* name, const headlight_tensor* values) {
  WORKS(headlight_layer_get_parameter(layer, name, values, &error));
}

static void parameters(void) {
  headlight_layer* layer = make_attention(0);
  const char* const names[] = {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"};
  CHECK(headlight_layer_parameter_count(layer) == 4);
  for (int64_t index = 0; index < 4; ++index) {
    const char* name = NULL;
    int32_t rank = 0;
    const int64_t* shape = NULL;
    WORKS(headlight_layer_parameter(layer, index, &name, &rank, &shape, &error));
    CHECK(strcmp(name, names[index]) == 0 && rank == (index % 2 == 0 ? 2 : 1) && shape[0] == (index < 2 ? 3 * kE : kE));
    WORKS(headlight_layer_parameter(layer, index, NULL, NULL, NULL, &error));
  }
  REFUSED("index is 4", headlight_layer_parameter(layer, 4, NULL, NULL, NULL, &error));
  REFUSED("index is -1", headlight_layer_parameter(layer, -1, NULL, NULL, NULL, &error));
  REFUSED("layer is", headlight_layer_parameter(NULL, 0, NULL, NULL, NULL, &error));

  float weight[kE * kE], other[kE * kE];
  headlight_tensor values = TENSOR(weight, kE, kE);
  WORKS(headlight_layer_get_parameter(layer, "out_proj.weight", &values, &error));
  CHECK(weight[0] != 0.0f && fabsf(weight[0]) < 1.0f);
  weight[5] = 42.0f;
  WORKS(headlight_layer_set_parameter(layer, "out_proj.weight", &values, &error));
  WORKS(headlight_layer_get_parameter(layer, "out_proj.weight", &TENSOR(other, kE, kE), &error));
  CHECK(memcmp(weight, other, sizeof weight) == 0);
  values.strides = INTS(kE, 1);
  WORKS(headlight_layer_set_parameter(layer, "out_proj.weight", &values, &error));

  REFUSED("named 'out'", headlight_layer_get_parameter(layer, "out", &values, &error));
  // A message longer than its room is cut between characters.
  char name[3001];
  for (size_t n = 0; n < sizeof name - 1; n += 3) memcpy(name + n, "\xE2\x82\xAC", 3);
  name[sizeof name - 1] = '\0';
  REFUSED("\xE2\x82\xAC…", headlight_layer_get_parameter(layer, name, &values, &error));
  CHECK(strlen(error.message) < sizeof error.message && strlen(error.message) > sizeof error.message - 4);
  REFUSED("name is", headlight_layer_get_parameter(layer, NULL, &values, &error));
  REFUSED("layer is", headlight_layer_get_parameter(NULL, "out_proj.weight", &values, &error));
  REFUSED("is a null pointer", headlight_layer_set_parameter(layer, "out_proj.weight", NULL, &error));
  REFUSED("has shape [12, 11], expected [12, 12]",
          headlight_layer_set_parameter(layer, "out_proj.weight", &TENSOR(weight, kE, kE - 1), &error));
  REFUSED("has rank 1, expected 2",
          headlight_layer_set_parameter(layer, "out_proj.weight", &TENSOR(weight, 144), &error));
  // A rank that was never set: a shape of two extents has no thousandth.
  values.rank = 1 << 28;
  values.strides = NULL;
  REFUSED("has rank 268435456, expected 2", headlight_layer_get_parameter(layer, "out_proj.weight", &values, &error));
  REFUSED("has rank 268435456, expected 2", headlight_layer_set_parameter(layer, "out_proj.weight", &values, &error));
  const headlight_weight unset = {.name = "out_proj.weight", .values = values};
  REFUSED("has rank 268435456, expected 0 to 16", headlight_layer_load(layer, &unset, 1, NULL, &error));
  values.rank = 2;
  REFUSED("no memory", headlight_layer_set_parameter(layer, "out_proj.weight", &TENSOR(NULL, kE, kE), &error));
  values.strides = INTS(1, kE);
  REFUSED("contiguous", headlight_layer_set_parameter(layer, "out_proj.weight", &values, &error));
  values.strides = NULL;
  values.rank = -1;
  REFUSED("rank -1", headlight_layer_set_parameter(layer, "out_proj.weight", &values, &error));
  values.rank = 2;
  values.type = HEADLIGHT_INT64;
  REFUSED("type 1", headlight_layer_set_parameter(layer, "out_proj.weight", &values, &error));
  REFUSED("extents", headlight_layer_set_parameter(layer, "out_proj.weight", &TENSOR(weight, kE, -1), &error));
  headlight_layer_destroy(layer);
  headlight_layer_destroy(NULL);
  CHECK(headlight_layer_parameter_count(NULL) == 0);
  REFUSED("layer is", headlight_layer_initialize(NULL, 1, &error));
}

// y += rows of x [rows, kE] · wᵀ [kE, kE] + bias.
static void project(const float* from, int rows, const float* weight, const float* bias, double* to) {
  for (int n = 0; n < rows * kE; ++n) {
    to[n] = (double)bias[n % kE];
    for (int e = 0; e < kE; ++e) to[n] += (double)from[n / kE * kE + e] * (double)weight[n % kE * kE + e];
  }
}

static void attend(const headlight_layer* layer, const float* keys, int length, int causal, const float* added,
                   double* expected) {
  static float in_weight[3 * kE * kE], in_bias[3 * kE], out_weight[kE * kE], out_bias[kE], heads[kB * kL * kE];
  static double q[kB * kL * kE], k[kB * kLm * kE], v[kB * kLm * kE];
  WORKS(headlight_layer_get_parameter(layer, "in_proj_weight", &TENSOR(in_weight, 3 * kE, kE), &error));
  WORKS(headlight_layer_get_parameter(layer, "in_proj_bias", &TENSOR(in_bias, 3 * kE), &error));
  WORKS(headlight_layer_get_parameter(layer, "out_proj.weight", &TENSOR(out_weight, kE, kE), &error));
  WORKS(headlight_layer_get_parameter(layer, "out_proj.bias", &TENSOR(out_bias, kE), &error));
  project(x, kB * kL, in_weight, in_bias, q);
  project(keys, kB * length, in_weight + kE * kE, in_bias + kE, k);
  project(keys, kB * length, in_weight + 2 * kE * kE, in_bias + 2 * kE, v);
  const int width = kE / kHeads;
  for (int n = 0; n < kB * kL * kHeads; ++n) {
    const int sample = n / kHeads / kL, row = n / kHeads % kL, first = n % kHeads * width;
    double weights[kLm], sum = 0, result[kE] = {0};
    for (int j = 0; j < length; ++j) {
      double score = 0;
      for (int d = first; d < first + width; ++d) {
        score += q[(sample * kL + row) * kE + d] * k[(sample * length + j) * kE + d] / sqrt(width);
      }
      weights[j] = causal && j > row ? 0 : exp(score);
      sum += weights[j];
    }
    for (int j = 0; j < length; ++j) {
      for (int d = 0; d < width; ++d) result[d] += weights[j] / sum * v[(sample * length + j) * kE + first + d];
    }
    for (int d = 0; d < width; ++d) heads[(sample * kL + row) * kE + first + d] = (float)result[d];
  }
  project(heads, kB * kL, out_weight, out_bias, expected);
  for (int n = 0; n < kB * kL * kE && added != NULL; ++n) expected[n] += (double)added[n];
}

static void multi_head_attention(void) {
  headlight_layer* layer = make_attention(0);
  static double expected[kB * kL * kE];
  const headlight_tensor in = TENSOR(x, kB, kL, kE), keys = TENSOR(memory, kB, kLm, kE), out = TENSOR(y, kB, kL, kE);
  const headlight_tensor added = TENSOR(residual, kB, kL, kE);
  attend(layer, x, kL, 0, NULL, expected);
  WORKS(headlight_multi_head_attention_forward(layer, engine, &in, &in, &in, &out, NULL, NULL, NULL, &error));
  CHECK(worst(y, expected, kB * kL * kE) < 2e-6);

  headlight_attention_options causal = {.struct_size = sizeof causal, .causal = HEADLIGHT_CAUSAL_TOP_LEFT};
  attend(layer, memory, kLm, 1, residual, expected);
  WORKS(headlight_multi_head_attention_forward(layer, engine, &in, &keys, &keys, &out, &causal, &added, NULL, &error));
  CHECK(worst(y, expected, kB * kL * kE) < 2e-6);

  // What heads give before W_O, and what is left without the first and the last.
  float heads[kB * kL * kE], scaled[kB * kL * kE], out_weight[kE * kE], out_bias[kE];
  const int64_t ends[] = {0, kHeads - 1};
  headlight_head_access access = {.struct_size = sizeof access,
                                  .outputs = &TENSOR(heads, kB, kL, kE),
                                  .scaled_outputs = &TENSOR(scaled, kB, kL, kE)};
  get(layer, "out_proj.weight", &TENSOR(out_weight, kE, kE));
  get(layer, "out_proj.bias", &TENSOR(out_bias, kE));
  WORKS(headlight_multi_head_attention_forward(layer, engine, &in, &in, &in, &out, NULL, NULL, &access, &error));
  CHECK(memcmp(heads, scaled, sizeof heads) == 0);  // concatenated as they are
  project(heads, kB * kL, out_weight, out_bias, expected);
  CHECK(worst(y, expected, kB * kL * kE) < 2e-6);
  access.silenced = (headlight_indices){ends, 2};
  WORKS(headlight_multi_head_attention_forward(layer, engine, &in, &in, &in, &out, NULL, NULL, &access, &error));
  for (int n = 0; n < kB * kL * kE; ++n) {
    CHECK((heads[n] != 0.0f) == (n % kE / (kE / kHeads) == 1));
  }
  project(heads, kB * kL, out_weight, out_bias, expected);
  CHECK(worst(y, expected, kB * kL * kE) < 2e-6);
  const int64_t fourth[] = {kHeads};
  access.silenced = (headlight_indices){fourth, 1};
  REFUSED("head 3",
          headlight_multi_head_attention_forward(layer, engine, &in, &in, &in, &out, NULL, NULL, &access, &error));
  access.silenced = (headlight_indices){0};
  access.outputs = &out;
  REFUSED("heads.outputs",
          headlight_multi_head_attention_forward(layer, engine, &in, &in, &in, &out, NULL, NULL, &access, &error));

  // A parameter that is set counts from then on, though the layer keeps copies of its weights.
  static float zeros[kE * kE];
  WORKS(headlight_layer_set_parameter(layer, "out_proj.weight", &TENSOR(zeros, kE, kE), &error));
  WORKS(headlight_multi_head_attention_forward(layer, engine, &in, &in, &in, &out, NULL, &added, NULL, &error));
  CHECK(memcmp(y, residual, sizeof y) == 0);

  REFUSED("layer is",
          headlight_multi_head_attention_forward(NULL, engine, &in, &in, &in, &out, NULL, NULL, NULL, &error));
  REFUSED("engine", headlight_multi_head_attention_forward(layer, NULL, &in, &in, &in, &out, NULL, NULL, NULL, &error));
  REFUSED("key has", headlight_multi_head_attention_forward(layer, engine, &in, &TENSOR(memory, kB, kLm, 2), &in, &out,
                                                            NULL, NULL, NULL, &error));
  headlight_multi_head_attention_shape shape = {.struct_size = sizeof shape, .query_length = kL, .key_length = kLm};
  size_t all = 0, none = 0;
  WORKS(headlight_multi_head_attention_workspace_bytes(layer, engine, &shape, &all, &error));
  shape.batch = 1;
  shape.inputs = HEADLIGHT_SHARED_NONE;
  WORKS(headlight_multi_head_attention_workspace_bytes(layer, engine, &shape, &none, &error));
  CHECK(all > 0 && none > 0);
  WORKS(headlight_multi_head_attention_reserve(layer, engine, &shape, &error));
  CHECK(headlight_engine_scratch_bytes(engine) >= none);
  shape.inputs = 3;
  REFUSED("inputs is 3", headlight_multi_head_attention_reserve(layer, engine, &shape, &error));
  REFUSED("shape", headlight_multi_head_attention_reserve(layer, engine, NULL, &error));
  REFUSED("layer", headlight_multi_head_attention_reserve(NULL, engine, &shape, &error));
  REFUSED("not", headlight_transformer_encoder_layer_forward(layer, engine, &in, &out, NULL, NULL, &error));
  headlight_layer_destroy(layer);

  headlight_multi_head_attention_options options = {.struct_size = sizeof options, .width = 10, .heads = 4};
  REFUSED("10", headlight_multi_head_attention_create(&options, &layer, &error));
  CHECK(layer == NULL);
  options.width = (int64_t)1 << 30;  // 2⁶² bytes and more of weights
  FAILS(HEADLIGHT_OUT_OF_MEMORY, "memory", headlight_multi_head_attention_create(&options, &layer, &error));
  CHECK(error.bytes > 0);  // more than 64 bits count
  REFUSED("width", headlight_multi_head_attention_create(NULL, &layer, &error));
  REFUSED("result", headlight_multi_head_attention_create(&options, NULL, &error));
}

static void merges(void) {
  const char* const names[] = {"concatenate",       "average",       "weighted",
                               "weighted-by-input", "gated-by-head", "gated-by-element"};
  for (headlight_merge merge = 0; merge < 6; ++merge) {
    CHECK(strcmp(headlight_merge_name(merge), names[merge]) == 0);
    CHECK(headlight_merge_from_name(names[merge]) == merge);
  }
  CHECK(headlight_merge_name(-1)[0] == '\0' && headlight_merge_name(6)[0] == '\0');
  CHECK(headlight_merge_from_name("add") == -1 && headlight_merge_from_name(NULL) == -1);
}

// Rows of W_Q and W_K that begin at right angles.
static void orthogonal(void) {
  headlight_multi_head_attention_options options = {
      .struct_size = sizeof options, .width = kE, .heads = kHeads, .orthogonal = 1, .separate_projections = 1};
  headlight_layer* layer = NULL;
  WORKS(headlight_multi_head_attention_create(&options, &layer, &error));
  WORKS(headlight_layer_initialize(layer, 7, &error));
  float weight[kE * kE];
  for (int which = 0; which < 3; ++which) {
    const char* const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
    get(layer, names[which], &TENSOR(weight, kE, kE));
    double most = 0;
    for (int n = 0; n < kE * kE; ++n) {
      double product = 0;
      for (int e = 0; e < kE; ++e) product += (double)weight[n / kE * kE + e] * (double)weight[n % kE * kE + e];
      most = fmax(most, n / kE == n % kE ? 0 : fabs(product));
    }
    CHECK((most < 1e-6) == (which < 2));
  }
  headlight_layer_destroy(layer);
  const float certain = 1.0f;
  options.dropout = &certain;
  REFUSED("dropout", headlight_multi_head_attention_create(&options, &layer, &error));
}

static void load(void) {
  headlight_layer *packed = make_attention(0), *separate = make_attention(1);
  CHECK(headlight_layer_parameter_count(separate) == 6);
  static float in_weight[3 * kE * kE], in_bias[3 * kE], out_weight[kE * kE], out_bias[kE], first[kB * kL * kE];
  fill(in_weight, 3 * kE * kE, 11);
  fill(in_bias, 3 * kE, 12);
  fill(out_weight, kE * kE, 13);
  fill(out_bias, kE, 14);
  headlight_weight weights[] = {{"a.in_proj_weight", TENSOR(in_weight, 3 * kE, kE)},
                                {"a.in_proj_bias", TENSOR(in_bias, 3 * kE)},
                                {"a.out_proj.weight", TENSOR(out_weight, kE, kE)},
                                {"a.out_proj.bias", TENSOR(out_bias, kE)},
                                {"b", TENSOR(out_bias, kE)},
                                {"a.extra", TENSOR(out_bias, kE)}};
  headlight_load_options options = {.struct_size = sizeof options, .prefix = "a."};
  WORKS(headlight_layer_load(packed, weights, 5, &options, &error));
  REFUSED("extra", headlight_layer_load(separate, weights, 6, &options, &error));
  options.ignore_extra = 1;
  WORKS(headlight_layer_load(separate, weights, 6, &options, &error));
  const headlight_tensor in = TENSOR(x, kB, kL, kE), out = TENSOR(y, kB, kL, kE), kept = TENSOR(first, kB, kL, kE);
  WORKS(headlight_multi_head_attention_forward(packed, engine, &in, &in, &in, &kept, NULL, NULL, NULL, &error));
  WORKS(headlight_multi_head_attention_forward(separate, engine, &in, &in, &in, &out, NULL, NULL, NULL, &error));
  CHECK(memcmp(first, y, sizeof y) == 0);

  // bfloat16 is the upper half of float32.
  static uint16_t halves[kE];
  for (int n = 0; n < kE; ++n) halves[n] = (uint16_t)(0x3f80 + n);
  const int64_t one_axis[] = {kE};
  weights[3].values = (headlight_tensor){halves, HEADLIGHT_BFLOAT16, 1, one_axis, NULL};
  WORKS(headlight_layer_load(packed, weights, 5, &options, &error));
  const headlight_tensor read = TENSOR(out_bias, kE);
  WORKS(headlight_layer_get_parameter(packed, "out_proj.bias", &read, &error));
  for (int n = 0; n < kE; ++n) CHECK(out_bias[n] == 1.0f + (float)n / 128);
  weights[3].values.type = HEADLIGHT_INT8;
  REFUSED("has type", headlight_layer_load(packed, weights, 5, &options, &error));
  weights[3].values = read;

  REFUSED("out_proj.bias", headlight_layer_load(packed, weights, 3, &options, &error));
  REFUSED("twice", headlight_layer_load(packed, (const headlight_weight[]){weights[0], weights[0]}, 2, NULL, &error));
  REFUSED("weights is", headlight_layer_load(packed, NULL, 1, &options, &error));
  weights[0].name = NULL;
  REFUSED("name", headlight_layer_load(packed, weights, 5, &options, &error));
  REFUSED("layer is", headlight_layer_load(NULL, weights, 5, &options, &error));
  options.struct_size = 2;
  REFUSED("struct_size", headlight_layer_load(packed, weights, 5, &options, &error));
  headlight_layer_destroy(packed);
  headlight_layer_destroy(separate);
}

static void encoder_layer(void) {
  headlight_transformer_layer_options options = {
      .struct_size = sizeof options, .width = kE, .heads = kHeads, .feed_forward_width = kInner};
  headlight_layer* layer = NULL;
  WORKS(headlight_transformer_encoder_layer_create(&options, &layer, &error));
  WORKS(headlight_layer_initialize(layer, 3, &error));
  CHECK(headlight_layer_parameter_count(layer) == 12);
  const headlight_tensor in = TENSOR(x, kB, kL, kE), out = TENSOR(y, kB, kL, kE);
  WORKS(headlight_transformer_encoder_layer_forward(layer, engine, &in, &out, NULL, NULL, &error));
  // The last step is a normalisation with weights of 1 and 0: every row has mean 0 and variance 1.
  for (int row = 0; row < kB * kL; ++row) {
    double sum = 0, squares = 0;
    for (int e = 0; e < kE; ++e) {
      sum += (double)y[row * kE + e];
      squares += (double)y[row * kE + e] * (double)y[row * kE + e];
    }
    CHECK(fabs(sum) < 1e-5 && fabs(squares / kE - 1) < 1e-3);
  }
  size_t bytes = 0;
  WORKS(headlight_transformer_encoder_layer_workspace_bytes(layer, engine, kB, kL, &bytes, &error));
  WORKS(headlight_transformer_encoder_layer_reserve(layer, engine, kB, kL, &error));
  CHECK(bytes > 0 && headlight_engine_scratch_bytes(engine) >= bytes);
  REFUSED("[-1, 5]", headlight_transformer_encoder_layer_reserve(layer, engine, -1, kL, &error));
  REFUSED("x has",
          headlight_transformer_encoder_layer_forward(layer, engine, &TENSOR(x, kB, kL, 2), &out, NULL, NULL, &error));
  REFUSED("not", headlight_multi_head_attention_forward(layer, engine, &in, &in, &in, &out, NULL, NULL, NULL, &error));
  headlight_layer_destroy(layer);

  // Without biases, normalised first, with another epsilon and no non-linearity.
  const float epsilon = 1e-3f;
  options.layer_norm_epsilon = &epsilon;
  options.norm = HEADLIGHT_NORM_PRE;
  options.activation = HEADLIGHT_ACTIVATION_RELU;
  options.without_bias = 1;
  WORKS(headlight_transformer_encoder_layer_create(&options, &layer, &error));
  CHECK(headlight_layer_parameter_count(layer) == 6);
  // All weights are zero, so nothing is added to x, and heads give zeros.
  static float heads[kB * kL * kE];
  memset(heads, 0xFF, sizeof heads);
  const headlight_head_access shown = {.struct_size = sizeof shown, .outputs = &TENSOR(heads, kB, kL, kE)};
  WORKS(headlight_transformer_encoder_layer_forward(layer, engine, &in, &out, NULL, NULL, &error));
  CHECK(memcmp(x, y, sizeof x) == 0);
  WORKS(headlight_transformer_encoder_layer_forward(layer, engine, &in, &out, NULL, &shown, &error));
  CHECK(memcmp(x, y, sizeof x) == 0 && heads[0] == 0.0f && heads[kB * kL * kE - 1] == 0.0f);
  headlight_layer_destroy(layer);

  options.norm = 2;
  REFUSED("norm is 2", headlight_transformer_encoder_layer_create(&options, &layer, &error));
  options.norm = HEADLIGHT_NORM_POST;
  options.activation = 9;
  REFUSED("activation is 9", headlight_transformer_encoder_layer_create(&options, &layer, &error));
  options.activation = HEADLIGHT_ACTIVATION_DEFAULT;
  options.merge = 6;
  REFUSED("merge is 6", headlight_transformer_encoder_layer_create(&options, &layer, &error));
  options.merge = HEADLIGHT_MERGE_WEIGHTED;
  const float certain = 1.0f;
  options.dropout = &certain;
  REFUSED("dropout", headlight_transformer_encoder_layer_create(&options, &layer, &error));
  options.dropout = NULL;
  options.heads = 0;
  REFUSED("heads", headlight_transformer_encoder_layer_create(&options, &layer, &error));
  CHECK(layer == NULL);
}

static void decoder_layer(void) {
  headlight_transformer_layer_options options = HEADLIGHT_OPTIONS(headlight_transformer_layer_options);
  options.width = kE;
  options.heads = kHeads;
  headlight_layer* layer = NULL;
  WORKS(headlight_transformer_decoder_layer_create(&options, &layer, &error));
  WORKS(headlight_layer_initialize(layer, 3, &error));
  CHECK(headlight_layer_parameter_count(layer) == 18);
  static float first[kB * kL * kE], changed[kB * kL * kE];
  const headlight_tensor in = TENSOR(x, kB, kL, kE), remembered = TENSOR(memory, kB, kLm, kE),
                         out = TENSOR(y, kB, kL, kE);
  const headlight_tensor kept = TENSOR(first, kB, kL, kE), other = TENSOR(changed, kB, kL, kE);
  WORKS(headlight_transformer_decoder_layer_forward(layer, engine, &in, &remembered, &kept, NULL, NULL, &error));
  const headlight_attention_options causal = {.struct_size = sizeof causal, .causal = HEADLIGHT_CAUSAL_TOP_LEFT};
  WORKS(headlight_transformer_decoder_layer_forward(layer, engine, &in, &remembered, &out, &causal, NULL, &error));
  CHECK(memcmp(first, y, sizeof y) == 0);
  // Without options no word sees the next one; with options that say nothing of it, it does.
  memcpy(changed, x, sizeof x);
  changed[kE] += 1.0f;
  WORKS(headlight_transformer_decoder_layer_forward(layer, engine, &other, &remembered, &out, NULL, NULL, &error));
  CHECK(memcmp(first, y, kE * sizeof(float)) == 0 && memcmp(first + kE, y + kE, kE * sizeof(float)) != 0);
  const headlight_attention_options all = HEADLIGHT_OPTIONS(headlight_attention_options);
  WORKS(headlight_transformer_decoder_layer_forward(layer, engine, &other, &remembered, &out, &all, &all, &error));
  CHECK(memcmp(first, y, kE * sizeof(float)) != 0);

  size_t bytes = 0;
  WORKS(headlight_transformer_decoder_layer_workspace_bytes(layer, engine, kB, kL, kLm, &bytes, &error));
  WORKS(headlight_transformer_decoder_layer_reserve(layer, engine, kB, kL, kLm, &error));
  CHECK(bytes > 0 && headlight_engine_scratch_bytes(engine) >= bytes);
  REFUSED("memory is", headlight_transformer_decoder_layer_forward(layer, engine, &in, NULL, &out, NULL, NULL, &error));
  REFUSED("[-1, 5]", headlight_transformer_decoder_layer_reserve(layer, engine, -1, kL, kLm, &error));
  REFUSED("transformer_encoder_layer",
          headlight_transformer_encoder_layer_forward(layer, engine, &in, &out, NULL, NULL, &error));
  headlight_layer_destroy(layer);
  options.width = 0;
  REFUSED("width", headlight_transformer_decoder_layer_create(&options, &layer, &error));
}

int main(void) {
  engine = make_engine(2);
  fill(x, sizeof x / sizeof *x, 1);
  fill(memory, sizeof memory / sizeof *memory, 2);
  fill(residual, sizeof residual / sizeof *residual, 3);
  parameters();
  multi_head_attention();
  merges();
  orthogonal();
  load();
  encoder_layer();
  decoder_layer();
  headlight_engine_destroy(engine);
  return check_result();
}
