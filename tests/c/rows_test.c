// Row operations from C, against plain loops in double.
#include "check.h"

enum { kRows = 9, kColumns = 37 };

static headlight_engine* engine;
static float x[kRows * kColumns], y[kRows * kColumns], residual[kRows * kColumns], weight[kColumns], bias[kColumns];
static double expected[kRows * kColumns];
static headlight_tensor in, out;

static int matches(void) { return worst(y, expected, kRows * kColumns) < 2e-6; }

static void activations(void) {
  const headlight_activation all[] = {HEADLIGHT_ACTIVATION_NONE, HEADLIGHT_ACTIVATION_RELU, HEADLIGHT_ACTIVATION_GELU,
                                      HEADLIGHT_ACTIVATION_GELU_TANH, HEADLIGHT_ACTIVATION_SILU};
  for (int which = 0; which < 5; ++which) {
    for (int n = 0; n < kRows * kColumns; ++n) {
      const double z = (double)x[n];
      const double cubic = 0.79788456080286536 * (z + 0.044715 * z * z * z);
      const double values[] = {z, z > 0 ? z : 0, z / 2 * (1 + erf(z / sqrt(2.0))), z / 2 * (1 + tanh(cubic)),
                               z / (1 + exp(-z))};
      expected[n] = values[which];
    }
    WORKS(headlight_activate(engine, all[which], &in, &out, &error));
    CHECK(matches());
  }
  REFUSED("activation is 0", headlight_activate(engine, HEADLIGHT_ACTIVATION_DEFAULT, &in, &out, &error));
  REFUSED("activation is 6", headlight_activate(engine, 6, &in, &out, &error));
  REFUSED("engine", headlight_activate(NULL, HEADLIGHT_ACTIVATION_RELU, &in, &out, &error));
  REFUSED("x is", headlight_activate(engine, HEADLIGHT_ACTIVATION_RELU, NULL, &out, &error));
  REFUSED("y is", headlight_activate(engine, HEADLIGHT_ACTIVATION_RELU, &in, NULL, &error));
}

static void softmax(void) {
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int column = 0; column < kColumns; ++column) sum += exp((double)x[row * kColumns + column]);
    for (int column = 0; column < kColumns; ++column) {
      expected[row * kColumns + column] = exp((double)x[row * kColumns + column]) / sum;
    }
  }
  WORKS(headlight_softmax(engine, &in, &out, &error));
  CHECK(matches());
  REFUSED("engine", headlight_softmax(NULL, &in, &out, &error));
  REFUSED("y has shape", headlight_softmax(engine, &in, &TENSOR(y, kRows, kColumns - 1), &error));
}

static void layer_norm(void) {
  const headlight_tensor scales = TENSOR(weight, kColumns), shifts = TENSOR(bias, kColumns);
  const headlight_tensor added = TENSOR(residual, kRows, kColumns);
  const float epsilon = 0.5f;
  headlight_layer_norm_options options = {sizeof options, &scales, &shifts, &added, &epsilon};
  for (int all = 0; all < 2; ++all) {
    for (int row = 0; row < kRows; ++row) {
      double z[kColumns], mean = 0, variance = 0;
      for (int column = 0; column < kColumns; ++column) {
        const int at = row * kColumns + column;
        z[column] = (double)x[at] + (all ? (double)residual[at] : 0);
        mean += z[column] / kColumns;
      }
      for (int column = 0; column < kColumns; ++column) variance += (z[column] - mean) * (z[column] - mean) / kColumns;
      for (int column = 0; column < kColumns; ++column) {
        const double unit = (z[column] - mean) / sqrt(variance + (all ? 0.5 : 1e-5));
        expected[row * kColumns + column] = all ? unit * (double)weight[column] + (double)bias[column] : unit;
      }
    }
    WORKS(headlight_layer_norm(engine, &in, &out, all ? &options : NULL, &error));
    CHECK(matches());
  }
  const float negative = -1.0f;
  options.epsilon = &negative;
  REFUSED("epsilon", headlight_layer_norm(engine, &in, &out, &options, &error));
  options.epsilon = NULL;
  options.weight = &in;
  REFUSED("weight has rank 2, expected 1", headlight_layer_norm(engine, &in, &out, &options, &error));
  options.struct_size = 1;
  REFUSED("struct_size", headlight_layer_norm(engine, &in, &out, &options, &error));
  REFUSED("engine", headlight_layer_norm(NULL, &in, &out, NULL, &error));
}

static void embed(void) {
  const int64_t words[kRows] = {8, 7, 6, 5, 4, 3, 2, 1, 0}, kinds[kRows] = {0, 1, 0, 1, 0, 1, 0, 1, 0};
  const headlight_tensor tables[] = {in, TENSOR(residual, 2, kColumns)};
  const headlight_indices ids[] = {{words, kRows}, {kinds, kRows}};
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      expected[row * kColumns + column] =
          (double)x[words[row] * kColumns + column] + (double)residual[kinds[row] * kColumns + column];
    }
  }
  WORKS(headlight_embed(engine, tables, ids, 2, &out, &error));
  CHECK(matches());
  REFUSED("0 tables", headlight_embed(engine, tables, ids, 0, &out, &error));
  REFUSED("9 tables", headlight_embed(engine, tables, ids, 9, &out, &error));
  REFUSED("tables is", headlight_embed(engine, NULL, ids, 1, &out, &error));
  REFUSED("tables[1] has rank",
          headlight_embed(engine, (headlight_tensor[]){tables[0], {.rank = 3}}, ids, 2, &out, &error));
  REFUSED("ids is", headlight_embed(engine, tables, NULL, 1, &out, &error));
  const headlight_indices wrong = {words, kRows - 1}, negative = {words, -1}, nowhere = {NULL, kRows};
  REFUSED("8 entries", headlight_embed(engine, tables, &wrong, 1, &out, &error));
  REFUSED("-1 entries", headlight_embed(engine, tables, &negative, 1, &out, &error));
  REFUSED("no memory", headlight_embed(engine, tables, &nowhere, 1, &out, &error));
  REFUSED("expected 0 to 1", headlight_embed(engine, &tables[1], &ids[0], 1, &out, &error));
  REFUSED("engine", headlight_embed(NULL, tables, ids, 2, &out, &error));
}

static void mean_pool(void) {
  const int64_t starts[] = {0, 4, 4, kRows};
  const headlight_indices offsets = {starts, 4};
  const headlight_tensor pooled = TENSOR(y, 3, kColumns);
  for (int normalized = 0; normalized < 2; ++normalized) {
    for (int s = 0; s < 3; ++s) {
      double square = 0;
      for (int column = 0; column < kColumns; ++column) {
        double* const mean = &expected[s * kColumns + column];
        *mean = 0;
        for (int64_t row = starts[s]; row < starts[s + 1]; ++row) {
          *mean += (double)x[row * kColumns + column] / (double)(starts[s + 1] - starts[s]);
        }
        square += *mean * *mean;
      }
      for (int column = 0; column < kColumns && normalized && square > 0; ++column) {
        expected[s * kColumns + column] /= sqrt(square);
      }
    }
    WORKS(headlight_mean_pool(engine, &in, &offsets, &pooled, normalized, &error));
    CHECK(worst(y, expected, 3 * kColumns) < 2e-6);
  }
  REFUSED("offsets", headlight_mean_pool(engine, &in, NULL, &pooled, 0, &error));
  const headlight_indices few = {starts, 3};
  REFUSED("offsets", headlight_mean_pool(engine, &in, &few, &pooled, 0, &error));
  REFUSED("engine", headlight_mean_pool(NULL, &in, &offsets, &pooled, 0, &error));
}

int main(void) {
  engine = make_engine(2);
  in = (headlight_tensor){.data = x, .rank = 2, .shape = INTS(kRows, kColumns)};
  out = (headlight_tensor){.data = y, .rank = 2, .shape = INTS(kRows, kColumns)};
  fill(x, kRows * kColumns, 1);
  fill(residual, kRows * kColumns, 2);
  fill(weight, kColumns, 3);
  fill(bias, kColumns, 4);
  activations();
  softmax();
  layer_norm();
  embed();
  mean_pool();
  headlight_engine_destroy(engine);
  return check_result();
}
