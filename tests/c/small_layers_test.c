// Linear, normalisation and feed-forward layers, and the encoder network, from C.
#include "check.h"

enum { kB = 2, kL = 3, kE = 8, kF = 20, kRows = kB * kL };

static headlight_engine* engine;
static float x[kRows * kE], residual[kRows * kE], y[kRows * kF], again[kRows * kF];

static void get(const headlight_layer* layer, const char* name, const headlight_tensor* values) {
  WORKS(headlight_layer_get_parameter(layer, name, values, &error));
}

static void linear(void) {
  headlight_linear_options options = {.struct_size = sizeof options, .in_features = kE, .out_features = kF};
  headlight_layer* layer = NULL;
  WORKS(headlight_linear_create(&options, &layer, &error));
  CHECK(headlight_layer_parameter_count(layer) == 2);
  WORKS(headlight_layer_initialize(layer, 3, &error));
  static float weight[kF * kE], bias[kF], added[kRows * kF];
  fill(bias, kF, 4);
  fill(added, kRows * kF, 5);
  get(layer, "weight", &TENSOR(weight, kF, kE));
  WORKS(headlight_layer_set_parameter(layer, "bias", &TENSOR(bias, kF), &error));
  static double expected[kRows * kF];
  for (int n = 0; n < kRows * kF; ++n) {
    double sum = (double)bias[n % kF];
    for (int e = 0; e < kE; ++e) sum += (double)x[n / kF * kE + e] * (double)weight[n % kF * kE + e];
    expected[n] = (sum > 0 ? sum : 0) + (double)added[n];
  }
  const headlight_tensor in = TENSOR(x, kRows, kE), out = TENSOR(y, kRows, kF), plus = TENSOR(added, kRows, kF);
  WORKS(headlight_linear_forward(layer, engine, &in, &out, HEADLIGHT_ACTIVATION_RELU, &plus, &error));
  CHECK(worst(y, expected, kRows * kF) < 1e-5);
  WORKS(headlight_linear_forward(layer, engine, &in, &out, HEADLIGHT_ACTIVATION_NONE, NULL, &error));
  WORKS(headlight_linear_forward(layer, engine, &in, &TENSOR(again, kRows, kF), HEADLIGHT_ACTIVATION_DEFAULT, NULL,
                                 &error));
  CHECK(memcmp(y, again, sizeof y) == 0);

  size_t bytes = 0;
  WORKS(headlight_linear_workspace_bytes(layer, engine, kRows, &bytes, &error));
  WORKS(headlight_linear_reserve(layer, engine, kRows, &error));
  CHECK(headlight_engine_scratch_bytes(engine) >= bytes);
  REFUSED("-1", headlight_linear_reserve(layer, engine, -1, &error));
  REFUSED("bytes is", headlight_linear_workspace_bytes(layer, engine, kRows, NULL, &error));
  REFUSED("x", headlight_linear_forward(layer, engine, &out, &out, 0, NULL, &error));
  REFUSED("activation is 9", headlight_linear_forward(layer, engine, &in, &out, 9, NULL, &error));
  REFUSED("layer was made", headlight_feed_forward_reserve(layer, engine, kB, kL, &error));
  headlight_layer_destroy(layer);
  options.without_bias = 1;
  WORKS(headlight_linear_create(&options, &layer, &error));
  CHECK(headlight_layer_parameter_count(layer) == 1);
  headlight_layer_destroy(layer);
  options.out_features = 0;
  REFUSED("out_features", headlight_linear_create(&options, &layer, &error));
  CHECK(layer == NULL);
}

static void layer_norm(void) {
  const float epsilon = 1e-3f;
  headlight_layer_norm_layer_options options = {.struct_size = sizeof options, .width = kE, .epsilon = &epsilon};
  headlight_layer* layer = NULL;
  WORKS(headlight_layer_norm_layer_create(&options, &layer, &error));
  float weight[kE], bias[kE];
  fill(weight, kE, 6);
  fill(bias, kE, 7);
  const headlight_tensor scale = TENSOR(weight, kE), shift = TENSOR(bias, kE);
  WORKS(headlight_layer_set_parameter(layer, "weight", &scale, &error));
  WORKS(headlight_layer_set_parameter(layer, "bias", &shift, &error));
  const headlight_tensor in = TENSOR(x, kRows, kE), out = TENSOR(y, kRows, kE), other = TENSOR(again, kRows, kE);
  WORKS(headlight_layer_norm_layer_forward(layer, engine, &in, &out, &error));
  const headlight_layer_norm_options same = {
      .struct_size = sizeof same, .weight = &scale, .bias = &shift, .epsilon = &epsilon};
  WORKS(headlight_layer_norm(engine, &in, &other, &same, &error));
  CHECK(memcmp(y, again, kRows * kE * sizeof *y) == 0);
  REFUSED("x", headlight_layer_norm_layer_forward(layer, engine, &TENSOR(x, kRows, kE - 1), &out, &error));
  headlight_layer_destroy(layer);
  options.width = -1;
  REFUSED("-1", headlight_layer_norm_layer_create(&options, &layer, &error));
}

static void feed_forward(void) {
  headlight_feed_forward_options options = {
      .struct_size = sizeof options, .width = kE, .hidden_width = kF, .activation = HEADLIGHT_ACTIVATION_RELU};
  headlight_layer* layer = NULL;
  WORKS(headlight_feed_forward_create(&options, &layer, &error));
  CHECK(headlight_layer_parameter_count(layer) == 4);
  WORKS(headlight_layer_initialize(layer, 8, &error));
  static float up[kF * kE], down[kE * kF];
  get(layer, "linear1.weight", &TENSOR(up, kF, kE));
  get(layer, "linear2.weight", &TENSOR(down, kE, kF));
  static double expected[kRows * kE];
  for (int n = 0; n < kRows; ++n) {
    double hidden[kF] = {0};
    for (int f = 0; f < kF; ++f) {
      for (int e = 0; e < kE; ++e) hidden[f] += (double)x[n * kE + e] * (double)up[f * kE + e];
    }
    for (int e = 0; e < kE; ++e) {
      expected[n * kE + e] = (double)residual[n * kE + e];
      for (int f = 0; f < kF; ++f) {
        expected[n * kE + e] += (hidden[f] > 0 ? hidden[f] : 0) * (double)down[e * kF + f];
      }
    }
  }
  const headlight_tensor in = TENSOR(x, kB, kL, kE), out = TENSOR(y, kB, kL, kE), plus = TENSOR(residual, kB, kL, kE);
  WORKS(headlight_feed_forward_forward(layer, engine, &in, &out, &plus, &error));
  CHECK(worst(y, expected, kRows * kE) < 1e-5);
  size_t bytes = 0;
  WORKS(headlight_feed_forward_workspace_bytes(layer, engine, kB, kL, &bytes, &error));
  WORKS(headlight_feed_forward_reserve(layer, engine, kB, kL, &error));
  CHECK(bytes > 0 && headlight_engine_scratch_bytes(engine) >= bytes);
  REFUSED("x is", headlight_feed_forward_forward(layer, engine, NULL, &out, NULL, &error));
  REFUSED("layer was made", headlight_linear_reserve(layer, engine, kB, &error));
  headlight_layer_destroy(layer);
  const float negative = -0.5f;
  options.dropout = &negative;
  REFUSED("dropout", headlight_feed_forward_create(&options, &layer, &error));
  options.dropout = NULL;
  options.width = 0;
  REFUSED("width", headlight_feed_forward_create(&options, &layer, &error));
}

static void encoder_network(void) {
  headlight_encoder_network_options options = {.struct_size = sizeof options,
                                               .vocabulary = 30,
                                               .max_positions = 6,
                                               .token_types = 2,
                                               .width = kE,
                                               .heads = 2,
                                               .layers = 2};
  headlight_layer* network = NULL;
  WORKS(headlight_encoder_network_create(&options, &network, &error));
  CHECK(headlight_layer_parameter_count(network) == 5 + 2 * 12);
  WORKS(headlight_layer_initialize(network, 9, &error));
  // Two sequences, of two tokens and of four: each gives what it gives alone.
  const int64_t ids[] = {1, 7, 29, 0, 3, 3}, positions[] = {0, 1, 0, 1, 2, 3}, types[] = {0, 0, 1, 1, 0, 0};
  const int64_t offsets[] = {0, 2, 6}, alone[] = {0, 4};
  const headlight_encoder_network_input both = {.struct_size = sizeof both,
                                                .ids = {ids, 6},
                                                .positions = {positions, 6},
                                                .token_types = {types, 6},
                                                .offsets = {offsets, 3}};
  const headlight_encoder_network_input second = {.struct_size = sizeof second,
                                                  .ids = {ids + 2, 4},
                                                  .positions = {positions + 2, 4},
                                                  .token_types = {types + 2, 4},
                                                  .offsets = {alone, 2}};
  float weights[2 * 4 * 4], mean[4], heads[4 * kE];
  const headlight_tensor per_head = TENSOR(weights, 1, 2, 4, 4), averaged = TENSOR(mean, 1, 1, 4);
  const headlight_tensor head_outputs = TENSOR(heads, 1, 4, kE);
  const int64_t last = 3, all_heads[] = {0, 1};
  const headlight_probabilities of_heads = {.struct_size = sizeof of_heads, .per_head = &per_head};
  const headlight_probabilities of_one = {.struct_size = sizeof of_one, .averaged = &averaged, .rows = {&last, 1}};
  const headlight_head_access shown = {.struct_size = sizeof shown, .outputs = &head_outputs};
  headlight_layer_access wanted[] = {
      {.struct_size = sizeof *wanted, .layer = 0, .probabilities = &of_heads, .heads = &shown},
      {.struct_size = sizeof *wanted, .layer = 1, .probabilities = &of_one}};
  WORKS(headlight_encoder_network_forward(network, engine, &both, &TENSOR(y, 6, kE), NULL, 0, &error));
  WORKS(headlight_encoder_network_forward(network, engine, &second, &TENSOR(again, 4, kE), wanted, 2, &error));
  CHECK(memcmp(y + 2 * kE, again, 4 * kE * sizeof *y) == 0 && memcmp(y, again, 2 * kE * sizeof *y) != 0);
  for (int row = 0; row < 2 * 4; ++row) {
    CHECK(fabsf(weights[4 * row] + weights[4 * row + 1] + weights[4 * row + 2] + weights[4 * row + 3] - 1.0f) < 1e-6f);
  }
  CHECK(fabsf(mean[0] + mean[1] + mean[2] + mean[3] - 1.0f) < 1e-6f);

  double square = 0;
  for (int n = 0; n < 4 * kE; ++n) square += (double)heads[n] * (double)heads[n];
  CHECK(square > 0);

  // A network whose heads all are silent gives something else.
  const headlight_head_access silent = {.struct_size = sizeof silent, .silenced = {all_heads, 2}};
  const headlight_layer_access quiet[] = {{.struct_size = sizeof *quiet, .layer = 0, .heads = &silent},
                                          {.struct_size = sizeof *quiet, .layer = 1, .heads = &silent}};
  float silenced[6 * kE];
  WORKS(headlight_encoder_network_forward(network, engine, &second, &TENSOR(silenced, 4, kE), quiet, 2, &error));
  CHECK(memcmp(silenced, again, 4 * kE * sizeof *again) != 0);
  // With heads that are silent, rows of the same word, position and type are the same.
  const int64_t same_ids[] = {5, 5}, same_positions[] = {2, 2}, same_types[] = {0, 0}, two[] = {0, 2};
  const headlight_encoder_network_input twins = {.struct_size = sizeof twins,
                                                 .ids = {same_ids, 2},
                                                 .positions = {same_positions, 2},
                                                 .token_types = {same_types, 2},
                                                 .offsets = {two, 2}};
  WORKS(headlight_encoder_network_forward(network, engine, &twins, &TENSOR(silenced, 2, kE), quiet, 2, &error));
  CHECK(memcmp(silenced, silenced + kE, kE * sizeof *silenced) == 0);

  // Each sequence's own keys, and structs of a later version, which lie further apart.
  struct {
    headlight_layer_access known;
    int64_t later;
  } newer[2] = {{{.struct_size = sizeof *newer, .layer = 0}, 0}, {{.struct_size = sizeof *newer, .layer = 1}, 0}};
  float own[2 * 6 * 4], packed[2 * 6 * 6];
  headlight_probabilities of_own = {.struct_size = sizeof of_own, .per_head = &TENSOR(own, 1, 2, 6, 4), .own_keys = 1};
  const headlight_probabilities of_all = {.struct_size = sizeof of_all, .per_head = &TENSOR(packed, 1, 2, 6, 6)};
  newer[0].known.probabilities = &of_own;
  newer[1].known.probabilities = &of_all;
  WORKS(
      headlight_encoder_network_forward(network, engine, &both, &TENSOR(silenced, 6, kE), &newer[0].known, 2, &error));
  CHECK(memcmp(own + 2 * 4, weights, 4 * 4 * sizeof *own) == 0 && own[2] == 0.0f && packed[2] == 0.0f);
  newer[1].later = 1;
  REFUSED("access has a value", headlight_encoder_network_forward(network, engine, &both, &TENSOR(silenced, 6, kE),
                                                                  &newer[0].known, 2, &error));
  newer[1].known.struct_size = sizeof newer->known;
  REFUSED("access[1].struct_size", headlight_encoder_network_forward(network, engine, &both, &TENSOR(silenced, 6, kE),
                                                                     &newer[0].known, 2, &error));
  newer[0].known.struct_size = sizeof newer->known + 1;
  REFUSED("access.struct_size", headlight_encoder_network_forward(network, engine, &both, &TENSOR(silenced, 6, kE),
                                                                  &newer[0].known, 2, &error));

  size_t bytes = 0;
  WORKS(headlight_encoder_network_workspace_bytes(network, engine, 6, &bytes, &error));
  WORKS(headlight_encoder_network_reserve(network, engine, 6, &error));
  CHECK(bytes > 0 && headlight_engine_scratch_bytes(engine) >= bytes);
  const headlight_tensor out = TENSOR(y, 6, kE);
  REFUSED("input is", headlight_encoder_network_forward(network, engine, NULL, &out, NULL, 0, &error));
  REFUSED("access is", headlight_encoder_network_forward(network, engine, &both, &out, NULL, 1, &error));
  REFUSED("at most 64", headlight_encoder_network_forward(network, engine, &both, &out, wanted, 65, &error));
  REFUSED("hidden has", headlight_encoder_network_forward(network, engine, &both, &TENSOR(y, 5, kE), NULL, 0, &error));
  wanted[1].layer = 2;
  REFUSED("layer is 2", headlight_encoder_network_forward(network, engine, &both, &out, wanted, 2, &error));
  wanted[1].layer = 0;
  REFUSED("each layer once", headlight_encoder_network_forward(network, engine, &both, &out, wanted, 2, &error));
  wanted[1].layer = 1;
  wanted[0].heads = &(headlight_head_access){.struct_size = sizeof shown, .outputs = &TENSOR(heads, 2, 2, kE)};
  REFUSED("heads.outputs has 2", headlight_encoder_network_forward(network, engine, &second, &out, wanted, 2, &error));
  wanted[0].heads = &(headlight_head_access){.struct_size = sizeof shown, .silenced = {NULL, 2}};
  REFUSED("heads.silenced", headlight_encoder_network_forward(network, engine, &second, &out, wanted, 2, &error));
  headlight_layer_destroy(network);
  const float certain = 1.0f;
  options.dropout = &certain;
  REFUSED("dropout", headlight_encoder_network_create(&options, &network, &error));
  options.dropout = NULL;
  options.norm = 2;
  REFUSED("norm is 2", headlight_encoder_network_create(&options, &network, &error));
  options.norm = HEADLIGHT_NORM_PRE;
  options.vocabulary = 0;
  REFUSED("vocabulary", headlight_encoder_network_create(&options, &network, &error));
}

int main(void) {
  engine = make_engine(2);
  fill(x, sizeof x / sizeof *x, 1);
  fill(residual, sizeof residual / sizeof *residual, 2);
  linear();
  layer_norm();
  feed_forward();
  encoder_network();
  headlight_engine_destroy(engine);
  return check_result();
}
