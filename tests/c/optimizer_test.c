// A network learns, from C: the same to the bit whatever is kept for backward passes, and across a stop.
#include "check.h"
#include "headlight/headlight.h"

enum { kVocabulary = 12, kLength = 6, kE = 8, kIterations = 100, kWords = kVocabulary * kE };

static headlight_engine* engine;
static const int64_t positions[] = {0, 1, 2, 3, 4, 5}, offsets[] = {0, kLength};

// Everything that learns: a network, and the layer that names each word's neighbour.
typedef struct learner {
  headlight_layer* layers[2];
  headlight_optimizer* optimizer;
  headlight_saved_state* saved;
} learner;

static learner make(headlight_checkpoint checkpoint) {
  const headlight_encoder_network_options network = {.struct_size = sizeof network,
                                                     .vocabulary = kVocabulary,
                                                     .max_positions = kLength,
                                                     .width = kE,
                                                     .heads = 2,
                                                     .layers = 3};
  const headlight_linear_options last = {.struct_size = sizeof last, .in_features = kE, .out_features = kVocabulary};
  const headlight_saved_state_options kept = {.struct_size = sizeof kept, .checkpoint = checkpoint};
  learner made = {{NULL, NULL}, NULL, NULL};
  WORKS(headlight_encoder_network_create(&network, &made.layers[0], &error));
  WORKS(headlight_linear_create(&last, &made.layers[1], &error));
  for (uint64_t n = 0; n < 2; ++n) {
    WORKS(headlight_layer_initialize(made.layers[n], 5 + n, &error));
    WORKS(headlight_layer_set_training(made.layers[n], 1, &error));
  }
  WORKS(headlight_adamw_create(made.layers, 2, NULL, &made.optimizer, &error));
  WORKS(headlight_saved_state_create(&kept, &made.saved, &error));
  return made;
}

static void destroy(learner* gone) {
  headlight_optimizer_destroy(gone->optimizer);
  headlight_layer_destroy(gone->layers[0]);
  headlight_layer_destroy(gone->layers[1]);
  headlight_saved_state_destroy(gone->saved);
}

// One step of the batch that belongs to its number; the loss before it.
static double learn(learner* one) {
  const uint64_t number = (uint64_t)headlight_optimizer_steps(one->optimizer);
  int64_t ids[kLength], labels[kLength];
  for (int n = 0; n < kLength; ++n) {
    ids[n] = (int64_t)((number * 5 + (uint64_t)n * 7) % kVocabulary);
    labels[n] = (ids[n] + 1) % kVocabulary;
  }
  float hidden[kLength * kE], logits[kLength * kVocabulary], hidden_gradient[kLength * kE];
  const headlight_tensor h = TENSOR(hidden, kLength, kE), l = TENSOR(logits, kLength, kVocabulary);
  const headlight_tensor g = TENSOR(hidden_gradient, kLength, kE);
  const headlight_encoder_network_input input = {
      .struct_size = sizeof input, .ids = {ids, kLength}, .positions = {positions, kLength}, .offsets = {offsets, 2}};
  const headlight_training_step step = {.struct_size = sizeof step, .seed = 9, .step = number};
  const headlight_cross_entropy_options in_place = {.struct_size = sizeof in_place, .logits_gradient = &l};
  const double rate = headlight_warmup_cosine(0.01, 0, 3, 2 * kIterations, (int64_t)number), most = 1;
  const headlight_step_options options = {.struct_size = sizeof options, .learning_rate = &rate, .max_norm = &most};
  headlight_step_report report = {.struct_size = sizeof report};
  double loss = 0;
  WORKS(headlight_encoder_network_training_forward(one->layers[0], engine, &input, &h, one->saved, &step, &error));
  WORKS(headlight_linear_forward(one->layers[1], engine, &h, &l, HEADLIGHT_ACTIVATION_NONE, NULL, &error));
  WORKS(headlight_cross_entropy(engine, &l, &(headlight_indices){labels, kLength}, &loss, NULL, &in_place, &error));
  WORKS(headlight_linear_backward(one->layers[1], engine, &h, &l, &g, NULL, &error));
  WORKS(headlight_encoder_network_backward(one->layers[0], engine, &input, one->saved, &g, &error));
  WORKS(headlight_optimizer_step(one->optimizer, engine, &options, &report, &error));
  CHECK(report.gradient_norm > 0 && report.non_finite == NULL);
  headlight_optimizer_zero_gradients(one->optimizer);
  return loss;
}

static void words_of(const learner* one, float* words) {
  WORKS(
      headlight_layer_get_parameter(one->layers[0], "word_embeddings.weight", &TENSOR(words, kVocabulary, kE), &error));
}

static void same_bits(void) {
  float whole[kWords], again[kWords];
  learner first = make(HEADLIGHT_CHECKPOINT_KEEP_LINEAR);
  const double before = learn(&first);
  double after = before;
  for (int step = 1; step < kIterations; ++step) after = learn(&first);
  CHECK(after < before / 2 && headlight_optimizer_steps(first.optimizer) == kIterations);
  words_of(&first, whole);
  for (headlight_checkpoint kept = HEADLIGHT_CHECKPOINT_LAYER_INPUT; kept <= HEADLIGHT_CHECKPOINT_EVERY_K_LAYERS;
       ++kept) {
    learner other = make(kept);
    for (int step = 0; step < kIterations; ++step) learn(&other);
    words_of(&other, again);
    CHECK(memcmp(whole, again, sizeof whole) == 0);
    CHECK(headlight_saved_state_bytes(other.saved) < headlight_saved_state_bytes(first.saved));
    destroy(&other);
  }
  destroy(&first);
}

// What `from` has learnt and kept, into `to`.
static void copy(const learner* from, learner* to) {
  static float values[4 * kE * 4 * kE + kVocabulary * kE];
  const char* name = NULL;
  headlight_tensor tensor = {values, HEADLIGHT_FLOAT32, 0, NULL, NULL};
  for (int layer = 0; layer < 2; ++layer) {
    for (int64_t index = 0; index < headlight_layer_parameter_count(from->layers[layer]); ++index) {
      WORKS(headlight_layer_parameter(from->layers[layer], index, &name, &tensor.rank, &tensor.shape, &error));
      WORKS(headlight_layer_get_parameter(from->layers[layer], name, &tensor, &error));
      WORKS(headlight_layer_set_parameter(to->layers[layer], name, &tensor, &error));
    }
  }
  const int64_t count = headlight_optimizer_state_count(from->optimizer);
  CHECK(count == 2 * (headlight_layer_parameter_count(from->layers[0]) + 2));
  for (int64_t index = 0; index < count; ++index) {
    WORKS(headlight_optimizer_state(from->optimizer, index, &name, &tensor.rank, &tensor.shape, &error));
    WORKS(headlight_optimizer_get_state(from->optimizer, name, &tensor, &error));
    WORKS(headlight_optimizer_set_state(to->optimizer, name, &tensor, &error));
  }
  CHECK(strcmp(name, "second_moment.1.bias") == 0);
  WORKS(headlight_optimizer_set_steps(to->optimizer, headlight_optimizer_steps(from->optimizer), &error));
}

static void stop_and_go_on(void) {
  float whole[kWords], again[kWords];
  learner first = make(HEADLIGHT_CHECKPOINT_KEEP_LINEAR), second = make(HEADLIGHT_CHECKPOINT_KEEP_LINEAR);
  for (int step = 0; step < kIterations / 2; ++step) learn(&first);
  copy(&first, &second);
  for (int step = 0; step < kIterations / 2; ++step) learn(&first);
  for (int step = 0; step < kIterations / 2; ++step) learn(&second);
  words_of(&first, whole);
  words_of(&second, again);
  CHECK(memcmp(whole, again, sizeof whole) == 0);
  destroy(&first);
  destroy(&second);
}

// One weight, by the formula: momentum and decay.
static void sgd(void) {
  const headlight_linear_options one = {
      .struct_size = sizeof one, .in_features = 1, .out_features = 1, .without_bias = 1};
  headlight_layer* layer = NULL;
  headlight_optimizer* optimizer = NULL;
  WORKS(headlight_linear_create(&one, &layer, &error));
  REFUSED("0.weight has no gradient", headlight_sgd_create(&layer, 1, NULL, &optimizer, &error));
  WORKS(headlight_layer_set_training(layer, 1, &error));
  const double momentum = 0.5, decay = 0.25, rate = 0.125;
  headlight_sgd_options options = {.struct_size = sizeof options, .momentum = &momentum, .weight_decay = &decay};
  headlight_step_options way = {.struct_size = sizeof way, .learning_rate = &rate};
  WORKS(headlight_sgd_create(&layer, 1, &options, &optimizer, &error));
  CHECK(headlight_optimizer_state_count(optimizer) == 1);
  float weight = 1.0f, x = 2.0f, gradient = 3.0f;
  const headlight_tensor at = TENSOR(&weight, 1, 1), in = TENSOR(&x, 1, 1), back = TENSOR(&gradient, 1, 1);
  WORKS(headlight_layer_set_parameter(layer, "weight", &at, &error));
  double theta = 1, moment = 0;
  for (int step = 0; step < 4; ++step) {
    headlight_layer_zero_gradients(layer);
    WORKS(headlight_linear_backward(layer, engine, &in, &back, NULL, NULL, &error));
    WORKS(headlight_optimizer_step(optimizer, engine, &way, NULL, &error));
    moment = momentum * moment + 6 + decay * theta;
    theta -= rate * moment;
    WORKS(headlight_layer_get_parameter(layer, "weight", &at, &error));
    CHECK(fabs((double)weight - theta) < 1e-6);
  }
  // A gradient that is no number moves nothing, and is named.
  gradient = (float)HUGE_VAL;
  headlight_step_report report = {.struct_size = sizeof report};
  WORKS(headlight_linear_backward(layer, engine, &in, &back, NULL, NULL, &error));
  WORKS(headlight_optimizer_step(optimizer, engine, &way, &report, &error));
  CHECK(report.non_finite != NULL && strcmp(report.non_finite, "0.weight") == 0);
  CHECK(headlight_optimizer_steps(optimizer) == 4);

  const double negative = -1;
  way.learning_rate = &negative;
  REFUSED("learning_rate", headlight_optimizer_step(optimizer, engine, &way, NULL, &error));
  report.struct_size = 1;
  REFUSED("report.struct_size", headlight_optimizer_step(optimizer, engine, NULL, &report, &error));
  REFUSED("optimizer is", headlight_optimizer_step(NULL, engine, NULL, NULL, &error));
  REFUSED("engine", headlight_optimizer_step(optimizer, NULL, NULL, NULL, &error));
  REFUSED("steps is -1", headlight_optimizer_set_steps(optimizer, -1, &error));
  REFUSED("index is 1", headlight_optimizer_state(optimizer, 1, NULL, NULL, NULL, &error));
  REFUSED("named 'momentum'", headlight_optimizer_get_state(optimizer, "momentum", &at, &error));
  REFUSED("has rank 1", headlight_optimizer_set_state(optimizer, "momentum.0.weight", &TENSOR(&x, 1), &error));
  const headlight_tensor unset = {.data = &x, .rank = 1 << 28, .shape = INTS(1)};
  REFUSED("has rank 268435456", headlight_optimizer_get_state(optimizer, "momentum.0.weight", &unset, &error));
  REFUSED("has rank 268435456", headlight_optimizer_set_state(optimizer, "momentum.0.weight", &unset, &error));
  headlight_optimizer_destroy(optimizer);
  headlight_optimizer_destroy(NULL);
  headlight_optimizer_zero_gradients(NULL);
  CHECK(headlight_optimizer_steps(NULL) == 0 && headlight_optimizer_state_count(NULL) == 0);
  options.momentum = &negative;
  REFUSED("momentum", headlight_sgd_create(&layer, 1, &options, &optimizer, &error));
  const headlight_adamw_options adamw = {.struct_size = sizeof adamw, .beta1 = &negative};
  REFUSED("beta1", headlight_adamw_create(&layer, 1, &adamw, &optimizer, &error));
  REFUSED("layers is", headlight_adamw_create(NULL, 1, NULL, &optimizer, &error));
  REFUSED("layers[1] is", headlight_adamw_create((headlight_layer*[]){layer, NULL}, 2, NULL, &optimizer, &error));
  CHECK(optimizer == NULL);
  headlight_layer_destroy(layer);
}

// One layer cannot be two, and an optimiser does not outlive its layers' training.
static void layers_that_leave(void) {
  const headlight_linear_options one = {.struct_size = sizeof one, .in_features = 3, .out_features = 2};
  headlight_layer* layers[2] = {NULL, NULL};
  headlight_optimizer *optimizer = NULL, *later = NULL;
  for (int n = 0; n < 2; ++n) {
    WORKS(headlight_linear_create(&one, &layers[n], &error));
    WORKS(headlight_layer_set_training(layers[n], 1, &error));
  }
  headlight_layer* const twice[] = {layers[0], layers[0]};
  REFUSED("of parameter 0.", headlight_sgd_create(twice, 2, NULL, &optimizer, &error));
  REFUSED("of parameter 1.", headlight_adamw_create(twice, 2, NULL, &optimizer, &error));

  WORKS(headlight_adamw_create(layers, 2, NULL, &optimizer, &error));
  WORKS(headlight_optimizer_step(optimizer, engine, NULL, NULL, &error));
  WORKS(headlight_layer_set_training(layers[1], 0, &error));
  REFUSED("layers[1] has left", headlight_optimizer_step(optimizer, engine, NULL, NULL, &error));
  headlight_optimizer_zero_gradients(optimizer);
  // Training again is another training, with other gradients.
  WORKS(headlight_layer_set_training(layers[1], 1, &error));
  REFUSED("layers[1] has left", headlight_optimizer_step(optimizer, engine, NULL, NULL, &error));
  WORKS(headlight_sgd_create(layers, 2, NULL, &later, &error));
  WORKS(headlight_optimizer_step(later, engine, NULL, NULL, &error));
  headlight_layer_destroy(layers[0]);
  REFUSED("layers[0] has left", headlight_optimizer_step(later, engine, NULL, NULL, &error));
  headlight_optimizer_zero_gradients(later);
  CHECK(headlight_optimizer_steps(optimizer) == 1 && headlight_optimizer_state_count(optimizer) == 8);
  headlight_optimizer_destroy(optimizer);
  headlight_optimizer_destroy(later);
  headlight_layer_destroy(layers[1]);
}

static void learning_rate(void) {
  CHECK(headlight_warmup_cosine(1, 0, 4, 20, 4) == 1 && headlight_warmup_cosine(1, 0.25, 4, 20, 20) == 0.25);
  CHECK(headlight_warmup_cosine(1, 0, 4, 20, 1) < headlight_warmup_cosine(1, 0, 4, 20, 2));
  CHECK(headlight_warmup_cosine(1, 0, 4, 20, 12) > headlight_warmup_cosine(1, 0, 4, 20, 13));
}

int main(void) {
  engine = make_engine(2);
  same_bits();
  stop_and_go_on();
  sgd();
  layers_that_leave();
  learning_rate();
  headlight_engine_destroy(engine);
  return check_result();
}
