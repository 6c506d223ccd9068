// Parameters of layers from C: in and out by name, one by one and all at once.
#include "check.h"
#include "layers.h"

enum { kB = 2, kL = 5 };

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
  static float x[kB * kL * kE], y[kB * kL * kE];
  fill(x, sizeof x / sizeof *x, 1);
  headlight_engine* engine = make_engine(2);
  const headlight_tensor in = TENSOR(x, kB, kL, kE), out = TENSOR(y, kB, kL, kE), kept = TENSOR(first, kB, kL, kE);
  WORKS(headlight_multi_head_attention_forward(packed, engine, &in, &in, &in, &kept, NULL, NULL, NULL, &error));
  WORKS(headlight_multi_head_attention_forward(separate, engine, &in, &in, &in, &out, NULL, NULL, NULL, &error));
  CHECK(memcmp(first, y, sizeof y) == 0);
  headlight_engine_destroy(engine);

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

int main(void) {
  parameters();
  load();
  return check_result();
}
