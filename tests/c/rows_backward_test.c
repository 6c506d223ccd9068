// The gradients of row operations, dropout and the loss from C, against plain loops in double.
#include "check.h"

enum { kRows = 9, kColumns = 37, kAll = kRows * kColumns };

static headlight_engine* engine;
static float x[kAll], y[kAll], y_gradient[kAll], x_gradient[kAll];
static double expected[kAll];
static headlight_tensor in, out, back, to;

static int matches(void) { return worst(x_gradient, expected, kAll) < 5e-6; }

// Σ_j a_ij · b_ij
static double dot(const float* a, const float* b) {
  double sum = 0;
  for (int column = 0; column < kColumns; ++column) sum += (double)a[column] * (double)b[column];
  return sum;
}

static void activations(void) {
  for (int gelu = 0; gelu < 2; ++gelu) {
    const headlight_activation which = gelu ? HEADLIGHT_ACTIVATION_GELU : HEADLIGHT_ACTIVATION_RELU;
    for (int n = 0; n < kAll; ++n) {
      const double z = (double)x[n];
      const double slope = 0.5 * (1 + erf(z / sqrt(2.0))) + z * exp(-z * z / 2) * 0.39894228040143268;
      expected[n] = (double)y_gradient[n] * (gelu ? slope : z > 0 ? 1 : 0);
    }
    WORKS(headlight_activate_backward(engine, which, &in, &back, &to, &error));
    CHECK(matches());
  }
  REFUSED("activation is 0", headlight_activate_backward(engine, 0, &in, &back, &to, &error));
  REFUSED("x is", headlight_activate_backward(engine, HEADLIGHT_ACTIVATION_RELU, NULL, &back, &to, &error));
  REFUSED("y_gradient is", headlight_activate_backward(engine, HEADLIGHT_ACTIVATION_RELU, &in, NULL, &to, &error));
  REFUSED("x_gradient is", headlight_activate_backward(engine, HEADLIGHT_ACTIVATION_RELU, &in, &back, NULL, &error));
}

static void softmax(void) {
  WORKS(headlight_softmax(engine, &in, &out, &error));
  for (int n = 0; n < kAll; ++n) {
    const int row = n / kColumns * kColumns;
    expected[n] = (double)y[n] * ((double)y_gradient[n] - dot(&y[row], &y_gradient[row]));
  }
  WORKS(headlight_softmax_backward(engine, &out, &back, &to, &error));
  CHECK(matches());
  REFUSED("y is", headlight_softmax_backward(engine, NULL, &back, &to, &error));
  REFUSED("y_gradient is", headlight_softmax_backward(engine, &out, NULL, &to, &error));
  REFUSED("x_gradient is", headlight_softmax_backward(engine, &out, &back, NULL, &error));
}

static void layer_norm(void) {
  static float residual[kAll];
  float weight[kColumns], weight_gradient[kColumns], bias_gradient[kColumns];
  double to_weight[kColumns], to_bias[kColumns];
  fill(residual, kAll, 5);
  fill(weight, kColumns, 6);
  for (int column = 0; column < kColumns; ++column) {
    weight_gradient[column] = bias_gradient[column] = 1.0f;
    to_weight[column] = to_bias[column] = 1;
  }
  const headlight_tensor scales = TENSOR(weight, kColumns), added = TENSOR(residual, kRows, kColumns);
  headlight_layer_norm_options options = {.struct_size = sizeof options, .weight = &scales};
  headlight_layer_norm_gradients gradients = {.struct_size = sizeof gradients,
                                              .x = &to,
                                              .residual = &added,
                                              .weight = &TENSOR(weight_gradient, kColumns),
                                              .bias = &TENSOR(bias_gradient, kColumns)};
  for (int row = 0; row < kRows; ++row) {
    double unit[kColumns], slope[kColumns], mean = 0, variance = 0, slopes = 0, projected = 0;
    const float* const z = &x[row * kColumns];
    const float* const g = &y_gradient[row * kColumns];
    for (int column = 0; column < kColumns; ++column) mean += (double)z[column] / kColumns;
    for (int column = 0; column < kColumns; ++column) variance += pow((double)z[column] - mean, 2) / kColumns;
    for (int column = 0; column < kColumns; ++column) {
      unit[column] = ((double)z[column] - mean) / sqrt(variance + 1e-5);
      slope[column] = (double)g[column] * (double)weight[column];
      slopes += slope[column] / kColumns;
      projected += slope[column] * unit[column] / kColumns;
      to_weight[column] += (double)g[column] * unit[column];
      to_bias[column] += (double)g[column];
    }
    for (int column = 0; column < kColumns; ++column) {
      expected[row * kColumns + column] = (slope[column] - slopes - unit[column] * projected) / sqrt(variance + 1e-5) +
                                          (double)residual[row * kColumns + column];
    }
  }
  WORKS(headlight_layer_norm_backward(engine, &in, &back, &gradients, &options, &error));
  CHECK(matches());
  CHECK(worst(weight_gradient, to_weight, kColumns) < 5e-6 && worst(bias_gradient, to_bias, kColumns) < 5e-6);
  // The sum over rows alone, added to what is there.
  WORKS(headlight_bias_backward(engine, &back, &TENSOR(bias_gradient, kColumns), &error));
  for (int column = 0; column < kColumns; ++column) to_bias[column] = 2 * to_bias[column] - 1;
  CHECK(worst(bias_gradient, to_bias, kColumns) < 1e-5);

  REFUSED("gradients is", headlight_layer_norm_backward(engine, &in, &back, NULL, &options, &error));
  REFUSED("y_gradient is", headlight_layer_norm_backward(engine, &in, NULL, &gradients, &options, &error));
  options.residual = &added;
  REFUSED("residual is given", headlight_layer_norm_backward(engine, &in, &back, &gradients, &options, &error));
  const headlight_tensor apart = {.data = weight, .rank = 1, .shape = INTS(kColumns / 2), .strides = INTS(2)};
  gradients.weight = &apart;
  REFUSED("gradients.weight has the stride 2",
          headlight_layer_norm_backward(engine, &in, &back, &gradients, NULL, &error));
  gradients.struct_size = 1;
  REFUSED("gradients.struct_size", headlight_layer_norm_backward(engine, &in, &back, &gradients, NULL, &error));
  REFUSED("bias_gradient is", headlight_bias_backward(engine, &back, NULL, &error));
  REFUSED("bias_gradient has", headlight_bias_backward(engine, &back, &TENSOR(weight, kColumns - 1), &error));
  REFUSED("c_gradient is", headlight_bias_backward(engine, NULL, &scales, &error));
}

static void dropout(void) {
  const headlight_dropout half = {.probability = 0.5f, .stream = 1, .seed = 2};
  WORKS(headlight_apply_dropout(engine, &in, &out, &half, NULL, &error));
  int dropped = 0;
  for (int n = 0; n < kAll; ++n) {
    CHECK(y[n] == 0.0f || y[n] == 2.0f * x[n]);
    dropped += y[n] == 0.0f;
  }
  CHECK(dropped > kAll / 3 && dropped < kAll * 2 / 3);
  // Backward: the same go, by their places alone; and a residual is added to what stays.
  WORKS(headlight_apply_dropout(engine, &back, &to, &half, NULL, &error));
  for (int n = 0; n < kAll; ++n) CHECK((x_gradient[n] == 0.0f) == (y[n] == 0.0f));
  for (int n = 0; n < kAll; ++n) expected[n] = (double)y[n] + (double)y_gradient[n];
  WORKS(headlight_apply_dropout(engine, &in, &to, &half, &back, &error));
  CHECK(matches());
  const headlight_dropout certain = {.probability = 1.0f};
  REFUSED("probability", headlight_apply_dropout(engine, &in, &out, &certain, NULL, &error));
  REFUSED("dropout is", headlight_apply_dropout(engine, &in, &out, NULL, NULL, &error));
  REFUSED("engine", headlight_apply_dropout(NULL, &in, &out, &half, NULL, &error));
}

static void embed(void) {
  enum { kWords = 4, kKinds = 2 };
  float words[kWords * kColumns], kinds[kKinds * kColumns];
  double to_words[kWords * kColumns], to_kinds[kKinds * kColumns];
  fill(words, kWords * kColumns, 7);
  fill(kinds, kKinds * kColumns, 8);
  for (int n = 0; n < kWords * kColumns; ++n) to_words[n] = (double)words[n];
  for (int n = 0; n < kKinds * kColumns; ++n) to_kinds[n] = (double)kinds[n];
  const int64_t word[kRows] = {3, 0, 3, 3, 1, 0, 2, 2, 3}, kind[kRows] = {0, 1, 0, 1, 0, 1, 0, 1, 0};
  for (int n = 0; n < kAll; ++n) {
    to_words[word[n / kColumns] * kColumns + n % kColumns] += (double)y_gradient[n];
    to_kinds[kind[n / kColumns] * kColumns + n % kColumns] += (double)y_gradient[n];
  }
  const headlight_tensor tables[] = {TENSOR(words, kWords, kColumns), TENSOR(kinds, kKinds, kColumns)};
  headlight_indices ids[] = {{word, kRows}, {kind, kRows}};
  WORKS(headlight_embed_backward(engine, &back, tables, ids, 2, &error));
  CHECK(worst(words, to_words, kWords * kColumns) < 2e-6 && worst(kinds, to_kinds, kKinds * kColumns) < 2e-6);
  REFUSED("0 tables", headlight_embed_backward(engine, &back, tables, ids, 0, &error));
  REFUSED("9 tables", headlight_embed_backward(engine, &back, tables, ids, 9, &error));
  REFUSED("tables is", headlight_embed_backward(engine, &back, NULL, ids, 1, &error));
  REFUSED("out_gradient is", headlight_embed_backward(engine, NULL, tables, ids, 2, &error));
  ids[1].data = word;
  REFUSED("expected 0 to 1", headlight_embed_backward(engine, &back, tables, ids, 2, &error));
}

static void mean_pool(void) {
  const int64_t starts[] = {0, 4, 4, kRows};
  const headlight_indices offsets = {starts, 4};
  const headlight_tensor pooled = TENSOR(y_gradient, 3, kColumns), at = TENSOR(y, 3, kColumns);
  for (int normalized = 0; normalized < 2; ++normalized) {
    WORKS(headlight_mean_pool(engine, &in, &offsets, &at, 0, &error));
    for (int n = 0; n < kAll; ++n) {
      const int sequence = n / kColumns < 4 ? 0 : 2;
      const float* const mean = &y[sequence * kColumns];
      const float* const gradient = &y_gradient[sequence * kColumns];
      const double length = sqrt(dot(mean, mean)), share = 1.0 / (sequence == 0 ? 4 : kRows - 4);
      const double along = (double)mean[n % kColumns] / length * dot(mean, gradient) / length;
      const double own = (double)gradient[n % kColumns];
      expected[n] = share * (normalized ? (own - along) / length : own);
    }
    WORKS(headlight_mean_pool_backward(engine, normalized ? &in : NULL, &offsets, &pooled, &to, normalized, &error));
    CHECK(matches());
  }
  REFUSED("x has", headlight_mean_pool_backward(engine, NULL, &offsets, &pooled, &to, 1, &error));
  REFUSED("offsets is", headlight_mean_pool_backward(engine, &in, NULL, &pooled, &to, 1, &error));
  REFUSED("out_gradient has", headlight_mean_pool_backward(engine, &in, &offsets, &back, &to, 1, &error));
  REFUSED("x_gradient is", headlight_mean_pool_backward(engine, &in, &offsets, &pooled, NULL, 1, &error));
}

static void cross_entropy(void) {
  int64_t label[kRows] = {3, 0, -100, 36, 1, 7, -100, 2, 3}, rows = 0;
  const headlight_indices labels = {label, kRows};
  double loss = 0, sum = 0;
  for (int n = 0; n < kAll; ++n) expected[n] = 0;
  for (int row = 0; row < kRows; ++row) {
    if (label[row] < 0) continue;
    double total = 0;
    for (int column = 0; column < kColumns; ++column) total += exp((double)x[row * kColumns + column]);
    for (int column = 0; column < kColumns; ++column) {
      const int at = row * kColumns + column;
      expected[at] = (exp((double)x[at]) / total - (column == label[row])) / 7;
    }
    sum += (log(total) - (double)x[row * kColumns + label[row]]) / 7;
  }
  headlight_cross_entropy_options options = {.struct_size = sizeof options, .logits_gradient = &to};
  WORKS(headlight_cross_entropy(engine, &in, &labels, &loss, &rows, &options, &error));
  CHECK(matches() && fabs(loss - sum) < 1e-6 && rows == 7);
  const int64_t ignored = 3;
  options.ignore_label = &ignored;
  REFUSED("-100", headlight_cross_entropy(engine, &in, &labels, &loss, NULL, &options, &error));
  label[2] = label[6] = 3;
  WORKS(headlight_cross_entropy(engine, &in, &labels, &loss, NULL, &options, &error));
  REFUSED("labels is", headlight_cross_entropy(engine, &in, NULL, &loss, NULL, NULL, &error));
  REFUSED("loss is", headlight_cross_entropy(engine, &in, &labels, NULL, NULL, NULL, &error));
  REFUSED("logits is", headlight_cross_entropy(engine, NULL, &labels, &loss, NULL, NULL, &error));
}

int main(void) {
  engine = make_engine(2);
  in = TENSOR(x, kRows, kColumns);
  out = TENSOR(y, kRows, kColumns);
  back = TENSOR(y_gradient, kRows, kColumns);
  to = TENSOR(x_gradient, kRows, kColumns);
  fill(x, kAll, 1);
  fill(y_gradient, kAll, 2);
  activations();
  softmax();
  layer_norm();
  dropout();
  embed();
  mean_pool();
  cross_entropy();
  headlight_engine_destroy(engine);
  return check_result();
}
