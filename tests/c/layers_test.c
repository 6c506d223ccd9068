// Layers from C: what they compute with their parameters.
#include "layers.h"

#include "check.h"

enum { kB = 2, kL = 5, kLm = 7, kInner = 20 };

static headlight_engine* engine;
static float x[kB * kL * kE], memory[kB * kLm * kE], residual[kB * kL * kE], y[kB * kL * kE];

static void get(const headlight_layer* layer, const char* name, const headlight_tensor* values) {
  WORKS(headlight_layer_get_parameter(layer, name, values, &error));
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
  multi_head_attention();
  merges();
  orthogonal();
  encoder_layer();
  decoder_layer();
  headlight_engine_destroy(engine);
  return check_result();
}
