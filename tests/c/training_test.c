// Layers in training from C: their gradients against differences of what they compute.
#include <stddef.h>

#include "check.h"

enum { kB = 2, kL = 4, kLm = 5, kE = 8, kHeads = 2, kRows = kB * kL, kAll = kRows * kE, kMemory = kB * kLm * kE };
typedef enum { LINEAR, LAYER_NORM, FEED_FORWARD, ATTENTION, ENCODER_LAYER, DECODER_LAYER, KINDS } layer_kind;

static headlight_engine* engine;
static headlight_saved_state* saved;
static float x[kAll], memory[kMemory], y[kAll], y_gradient[kAll], x_gradient[kAll], memory_gradient[kMemory];
static const headlight_training_step step = {.struct_size = sizeof step, .seed = 1};

static headlight_layer* make(layer_kind kind) {
  const float none = 0.0f;
  const headlight_linear_options linear = {.struct_size = sizeof linear, .in_features = kE, .out_features = kE};
  const headlight_layer_norm_layer_options norm = {.struct_size = sizeof norm, .width = kE};
  const headlight_feed_forward_options feed_forward = {.struct_size = sizeof feed_forward, .width = kE};
  const headlight_multi_head_attention_options attention = {
      .struct_size = sizeof attention, .width = kE, .heads = kHeads, .merge = HEADLIGHT_MERGE_GATED_BY_HEAD};
  const headlight_transformer_layer_options transformer = {
      .struct_size = sizeof transformer, .width = kE, .heads = kHeads, .dropout = &none};
  headlight_layer* layer = NULL;
  switch (kind) {
    case LINEAR:
      WORKS(headlight_linear_create(&linear, &layer, &error));
      break;
    case LAYER_NORM:
      WORKS(headlight_layer_norm_layer_create(&norm, &layer, &error));
      break;
    case FEED_FORWARD:
      WORKS(headlight_feed_forward_create(&feed_forward, &layer, &error));
      break;
    case ATTENTION:
      WORKS(headlight_multi_head_attention_create(&attention, &layer, &error));
      break;
    case ENCODER_LAYER:
      WORKS(headlight_transformer_encoder_layer_create(&transformer, &layer, &error));
      break;
    default:
      WORKS(headlight_transformer_decoder_layer_create(&transformer, &layer, &error));
  }
  WORKS(headlight_layer_initialize(layer, 7, &error));
  return layer;
}

// Σ y ∘ y_gradient, y what the layer makes of these.
static double sum_of(layer_kind kind, const headlight_layer* layer, float* from, float* seen) {
  const headlight_tensor rows = TENSOR(from, kRows, kE), to_rows = TENSOR(y, kRows, kE);
  const headlight_tensor in = TENSOR(from, kB, kL, kE), out = TENSOR(y, kB, kL, kE), keys = TENSOR(seen, kB, kLm, kE);
  switch (kind) {
    case LINEAR:
      WORKS(headlight_linear_forward(layer, engine, &rows, &to_rows, HEADLIGHT_ACTIVATION_NONE, NULL, &error));
      break;
    case LAYER_NORM:
      WORKS(headlight_layer_norm_layer_forward(layer, engine, &rows, &to_rows, &error));
      break;
    case FEED_FORWARD:
      WORKS(headlight_feed_forward_forward(layer, engine, &in, &out, NULL, &error));
      break;
    case ATTENTION:
      WORKS(headlight_multi_head_attention_forward(layer, engine, &in, &keys, &keys, &out, NULL, NULL, NULL, &error));
      break;
    case ENCODER_LAYER:
      WORKS(headlight_transformer_encoder_layer_forward(layer, engine, &in, &out, NULL, NULL, &error));
      break;
    default:
      WORKS(headlight_transformer_decoder_layer_forward(layer, engine, &in, &keys, &out, NULL, NULL, &error));
  }
  double sum = 0;
  for (int n = 0; n < kAll; ++n) sum += (double)y[n] * (double)y_gradient[n];
  return sum;
}

// Forward and backward, which give the gradients of that sum.
static void find_gradients(layer_kind kind, headlight_layer* layer) {
  const headlight_tensor rows = TENSOR(x, kRows, kE), back_rows = TENSOR(y_gradient, kRows, kE);
  const headlight_tensor to_rows = TENSOR(x_gradient, kRows, kE);
  const headlight_tensor in = TENSOR(x, kB, kL, kE), out = TENSOR(y, kB, kL, kE), keys = TENSOR(memory, kB, kLm, kE);
  const headlight_tensor back = TENSOR(y_gradient, kB, kL, kE), to = TENSOR(x_gradient, kB, kL, kE);
  const headlight_tensor to_keys = TENSOR(memory_gradient, kB, kLm, kE);
  const headlight_multi_head_attention_gradients gradients = {
      .struct_size = sizeof gradients, .query = &to, .key = &to_keys, .accumulate_key_and_value = 1};
  memset(memory_gradient, 0, sizeof memory_gradient);
  switch (kind) {
    case LINEAR:
      WORKS(headlight_linear_backward(layer, engine, &rows, &back_rows, &to_rows, NULL, &error));
      break;
    case LAYER_NORM:
      WORKS(headlight_layer_norm_layer_backward(layer, engine, &rows, &back_rows, &to_rows, NULL, &error));
      break;
    case FEED_FORWARD:
      WORKS(headlight_feed_forward_training_forward(layer, engine, &in, &out, saved, &step, NULL, &error));
      WORKS(headlight_feed_forward_backward(layer, engine, &in, saved, &back, &to, NULL, &error));
      break;
    case ATTENTION:
      WORKS(headlight_multi_head_attention_training_forward(layer, engine, &in, &keys, &keys, &out, saved, &step, NULL,
                                                            NULL, &error));
      WORKS(
          headlight_multi_head_attention_backward(layer, engine, &in, &keys, &keys, saved, &back, &gradients, &error));
      break;
    case ENCODER_LAYER:
      WORKS(headlight_transformer_encoder_layer_training_forward(layer, engine, &in, &out, saved, &step, NULL, &error));
      WORKS(headlight_transformer_encoder_layer_backward(layer, engine, &in, saved, &back, &to, &error));
      break;
    default:
      WORKS(headlight_transformer_decoder_layer_training_forward(layer, engine, &in, &keys, &out, saved, &step, NULL,
                                                                 NULL, &error));
      WORKS(
          headlight_transformer_decoder_layer_backward(layer, engine, &in, &keys, saved, &back, &to, &to_keys, &error));
  }
}

static double length_of(const float* values, int count) {
  double square = 0;
  for (int n = 0; n < count; ++n) square += (double)values[n] * (double)values[n];
  return sqrt(square);
}

// A short way along the gradient and against it the sum differs by twice that way times the gradient's length.
static const double kWay = 0.01;
static int is_slope(double forth, double back, double length) {
  return fabs((forth - back) / (2 * kWay) - length) < 0.01 * length + 1e-3;
}

static void move(const float* from, const float* along, int count, double way, float* to) {
  const double length = length_of(along, count);
  for (int n = 0; n < count; ++n) to[n] = (float)((double)from[n] + way * (double)along[n] / length);
}

static void check_inputs(layer_kind kind, const headlight_layer* layer) {
  float moved[kAll], moved_memory[kMemory];
  double sums[2];
  for (int back = 0; back < 2; ++back) {
    move(x, x_gradient, kAll, back ? -kWay : kWay, moved);
    sums[back] = sum_of(kind, layer, moved, memory);
  }
  CHECK(is_slope(sums[0], sums[1], length_of(x_gradient, kAll)));
  if (kind != ATTENTION && kind != DECODER_LAYER) return;
  for (int back = 0; back < 2; ++back) {
    move(memory, memory_gradient, kMemory, back ? -kWay : kWay, moved_memory);
    sums[back] = sum_of(kind, layer, x, moved_memory);
  }
  CHECK(is_slope(sums[0], sums[1], length_of(memory_gradient, kMemory)));
}

static void check_parameters(layer_kind kind, headlight_layer* layer) {
  enum { kMost = 4 * kE * kE };
  float values[kMost], gradient[kMost], moved[kMost];
  for (int64_t index = 0; index < headlight_layer_parameter_count(layer); ++index) {
    const char* name = NULL;
    int32_t rank = 0;
    const int64_t* shape = NULL;
    WORKS(headlight_layer_parameter(layer, index, &name, &rank, &shape, &error));
    const int count = (int)(rank == 2 ? shape[0] * shape[1] : shape[0]);
    const headlight_tensor own = {values, HEADLIGHT_FLOAT32, rank, shape, NULL};
    const headlight_tensor slope = {gradient, HEADLIGHT_FLOAT32, rank, shape, NULL};
    const headlight_tensor other = {moved, HEADLIGHT_FLOAT32, rank, shape, NULL};
    WORKS(headlight_layer_get_parameter(layer, name, &own, &error));
    WORKS(headlight_layer_get_gradient(layer, name, &slope, &error));
    CHECK(length_of(gradient, count) > 1e-3);
    double sums[2];
    for (int back = 0; back < 2; ++back) {
      move(values, gradient, count, back ? -kWay : kWay, moved);
      WORKS(headlight_layer_set_parameter(layer, name, &other, &error));
      sums[back] = sum_of(kind, layer, x, memory);
    }
    CHECK(is_slope(sums[0], sums[1], length_of(gradient, count)));
    WORKS(headlight_layer_set_parameter(layer, name, &own, &error));
  }
}

static void layers(void) {
  for (layer_kind kind = 0; kind < KINDS; ++kind) {
    headlight_layer* const layer = make(kind);
    const double before = sum_of(kind, layer, x, memory);
    WORKS(headlight_layer_set_training(layer, 1, &error));
    find_gradients(kind, layer);
    check_inputs(kind, layer);
    check_parameters(kind, layer);
    CHECK(sum_of(kind, layer, x, memory) == before);

    // Gradients are added to, until somebody sets them to zero; saying again that the layer learns changes nothing.
    const char* name = NULL;
    int32_t rank = 0;
    const int64_t* shape = NULL;
    float once[4 * kE * kE], twice[4 * kE * kE];
    WORKS(headlight_layer_parameter(layer, 0, &name, &rank, &shape, &error));
    const headlight_tensor first = {once, HEADLIGHT_FLOAT32, rank, shape, NULL};
    const headlight_tensor second = {twice, HEADLIGHT_FLOAT32, rank, shape, NULL};
    WORKS(headlight_layer_get_gradient(layer, name, &first, &error));
    WORKS(headlight_layer_set_training(layer, 1, &error));
    find_gradients(kind, layer);
    WORKS(headlight_layer_get_gradient(layer, name, &second, &error));
    CHECK(fabs((double)twice[0] - 2 * (double)once[0]) <= 1e-5 * fabs((double)once[0]) + 1e-6);
    headlight_layer_zero_gradients(layer);
    WORKS(headlight_layer_get_gradient(layer, name, &second, &error));
    CHECK(twice[0] == 0.0f);

    WORKS(headlight_layer_set_training(layer, 0, &error));
    REFUSED("training", headlight_layer_get_gradient(layer, name, &second, &error));
    CHECK(sum_of(kind, layer, x, memory) == before);
    headlight_layer_destroy(layer);
  }
  headlight_layer_zero_gradients(NULL);
}

// That of a bias for all samples, against differences.
static void attention_bias(void) {
  enum { kBias = kHeads * kL * kLm };
  float bias[kBias], moved[kBias], bias_gradient[kBias];
  fill(bias, kBias, 4);
  const headlight_tensor in = TENSOR(x, kB, kL, kE), out = TENSOR(y, kB, kL, kE), keys = TENSOR(memory, kB, kLm, kE);
  const headlight_tensor back = TENSOR(y_gradient, kB, kL, kE), to = TENSOR(bias_gradient, 1, kHeads, kL, kLm);
  const headlight_tensor own = TENSOR(bias, 1, kHeads, kL, kLm), other = TENSOR(moved, 1, kHeads, kL, kLm);
  headlight_attention_options options = {.struct_size = sizeof options, .bias = &own};
  headlight_multi_head_attention_gradients gradients = {.struct_size = sizeof gradients, .bias = &to};
  headlight_layer* const layer = make(ATTENTION);
  WORKS(headlight_layer_set_training(layer, 1, &error));
  WORKS(headlight_multi_head_attention_training_forward(layer, engine, &in, &keys, &keys, &out, saved, &step, &options,
                                                        NULL, &error));
  WORKS(headlight_multi_head_attention_backward(layer, engine, &in, &keys, &keys, saved, &back, &gradients, &error));
  CHECK(length_of(bias_gradient, kBias) > 1e-2);
  double sums[2] = {0, 0};
  options.bias = &other;
  for (int away = 0; away < 2; ++away) {
    move(bias, bias_gradient, kBias, away ? -kWay : kWay, moved);
    WORKS(headlight_multi_head_attention_forward(layer, engine, &in, &keys, &keys, &out, &options, NULL, NULL, &error));
    for (int n = 0; n < kAll; ++n) sums[away] += (double)y[n] * (double)y_gradient[n];
  }
  CHECK(is_slope(sums[0], sums[1], length_of(bias_gradient, kBias)));

  // A caller whose struct ends before that field is not asked about it.
  const headlight_tensor nonsense = {.data = bias, .rank = 1};
  gradients.bias = &nonsense;
  REFUSED("gradients.bias",
          headlight_multi_head_attention_backward(layer, engine, &in, &keys, &keys, saved, &back, &gradients, &error));
  gradients.struct_size = offsetof(headlight_multi_head_attention_gradients, bias);
  WORKS(headlight_multi_head_attention_backward(layer, engine, &in, &keys, &keys, saved, &back, &gradients, &error));
  gradients.reserved = 1;
  REFUSED("gradients.reserved is 1",
          headlight_multi_head_attention_backward(layer, engine, &in, &keys, &keys, saved, &back, &gradients, &error));
  headlight_layer_destroy(layer);
}

static void refusals(void) {
  const headlight_tensor in = TENSOR(x, kB, kL, kE), out = TENSOR(y, kB, kL, kE), back = TENSOR(y_gradient, kB, kL, kE);
  const headlight_tensor to = TENSOR(x_gradient, kB, kL, kE), keys = TENSOR(memory, kB, kLm, kE);
  headlight_layer* layer = make(ENCODER_LAYER);
  REFUSED("step is",
          headlight_transformer_encoder_layer_training_forward(layer, engine, &in, &out, saved, NULL, NULL, &error));
  REFUSED("saved is",
          headlight_transformer_encoder_layer_training_forward(layer, engine, &in, &out, NULL, &step, NULL, &error));
  const headlight_dropout dropout = {.probability = 0.5f};
  const headlight_attention_options options = {.struct_size = sizeof options, .dropout = &dropout};
  REFUSED("options.dropout", headlight_transformer_encoder_layer_training_forward(layer, engine, &in, &out, saved,
                                                                                  &step, &options, &error));
  WORKS(headlight_transformer_encoder_layer_training_forward(layer, engine, &in, &out, saved, &step, NULL, &error));
  REFUSED("training", headlight_transformer_encoder_layer_backward(layer, engine, &in, saved, &back, &to, &error));
  WORKS(headlight_layer_set_training(layer, 1, &error));
  REFUSED("y_gradient is", headlight_transformer_encoder_layer_backward(layer, engine, &in, saved, NULL, &to, &error));
  REFUSED("saved is", headlight_transformer_encoder_layer_backward(layer, engine, &in, NULL, &back, &to, &error));
  REFUSED("not", headlight_feed_forward_backward(layer, engine, &in, saved, &back, &to, NULL, &error));
  headlight_layer* other = make(ENCODER_LAYER);
  WORKS(headlight_layer_set_training(other, 1, &error));
  REFUSED("another layer", headlight_transformer_encoder_layer_backward(other, engine, &in, saved, &back, &to, &error));
  headlight_layer_destroy(other);
  headlight_layer_destroy(layer);

  layer = make(ATTENTION);
  WORKS(headlight_layer_set_training(layer, 1, &error));
  WORKS(headlight_multi_head_attention_training_forward(layer, engine, &in, &keys, &keys, &out, saved, &step, NULL,
                                                        NULL, &error));
  REFUSED("gradients is",
          headlight_multi_head_attention_backward(layer, engine, &in, &keys, &keys, saved, &back, NULL, &error));
  headlight_layer_destroy(layer);
  REFUSED("layer is", headlight_layer_set_training(NULL, 1, &error));
  REFUSED("layer is", headlight_layer_get_gradient(NULL, "weight", &in, &error));
  layer = make(LINEAR);
  WORKS(headlight_layer_set_training(layer, 1, &error));
  const headlight_tensor unset = {.data = memory, .rank = 1 << 28, .shape = INTS(1)};
  REFUSED("has rank 268435456", headlight_layer_get_gradient(layer, "weight", &unset, &error));
  headlight_layer_destroy(layer);

  headlight_saved_state_options kept = {.struct_size = sizeof kept, .checkpoint = 4};
  headlight_saved_state* none = NULL;
  REFUSED("checkpoint is 4", headlight_saved_state_create(&kept, &none, &error));
  kept.checkpoint = HEADLIGHT_CHECKPOINT_EVERY_K_LAYERS;
  kept.k = -1;
  REFUSED("k is -1", headlight_saved_state_create(&kept, &none, &error));
  kept.k = 0;
  kept.activations = HEADLIGHT_INT64;
  REFUSED("activations is 1, expected HEADLIGHT_FLOAT32", headlight_saved_state_create(&kept, &none, &error));
  kept.activations = HEADLIGHT_FLOAT16;
  REFUSED("activations is float16, expected float32 or bfloat16", headlight_saved_state_create(&kept, &none, &error));
  CHECK(none == NULL && headlight_saved_state_bytes(NULL) == 0);
  headlight_saved_state_destroy(NULL);
}

// The same step with activations of bfloat16: from a smaller state a gradient that its roundings alone change.
static void activations_of_bfloat16(void) {
  const headlight_saved_state_options options = {.struct_size = sizeof options, .activations = HEADLIGHT_BFLOAT16};
  headlight_saved_state* states[2] = {NULL, NULL};
  headlight_saved_state* const before = saved;
  float gradients[2][kAll];
  WORKS(headlight_saved_state_create(NULL, &states[0], &error));
  WORKS(headlight_saved_state_create(&options, &states[1], &error));
  headlight_layer* layer = make(ENCODER_LAYER);
  WORKS(headlight_layer_set_training(layer, 1, &error));
  for (int n = 0; n < 2; ++n) {
    saved = states[n];
    find_gradients(ENCODER_LAYER, layer);
    memcpy(gradients[n], x_gradient, sizeof x_gradient);
  }
  const double length = length_of(gradients[0], kAll);
  for (int n = 0; n < kAll; ++n) gradients[1][n] -= gradients[0][n];
  const double apart = length_of(gradients[1], kAll);
  // Some eight products lie on the way, of whose operands each is off by 2⁻⁹ of itself.
  CHECK(apart > 0 && apart < 16 * length / 512);
  CHECK(headlight_saved_state_bytes(states[1]) < headlight_saved_state_bytes(states[0]));
  headlight_layer_destroy(layer);
  for (int n = 0; n < 2; ++n) headlight_saved_state_destroy(states[n]);
  saved = before;
}

int main(void) {
  engine = make_engine(2);
  fill(x, kAll, 1);
  fill(memory, kMemory, 2);
  fill(y_gradient, kAll, 3);
  WORKS(headlight_saved_state_create(NULL, &saved, &error));
  CHECK(headlight_saved_state_bytes(saved) == 0);
  layers();
  CHECK(headlight_saved_state_bytes(saved) > 0);
  attention_bias();
  activations_of_bfloat16();
  refusals();
  headlight_saved_state_destroy(saved);
  headlight_engine_destroy(engine);
  return check_result();
}
