// Matrix products and row operations from C, against plain loops in double.
#include "check.h"

enum { kM = 7, kN = 19, kK = 33, kBatch = 3 };

static headlight_engine* engine;
static float a[kBatch * kM * kK], b[kBatch * kK * kN], c[kBatch * kM * kN], bias[kN], residual[kBatch * kM * kN];
static double expected[kBatch * kM * kN];

static void expect_product(int batch, double alpha, double beta, int with_bias, int relu, int with_residual) {
  for (int row = 0; row < batch * kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      const int at = row * kN + column;
      double sum = 0;
      for (int k = 0; k < kK; ++k) {
        sum += (double)a[row * kK + k] * (double)b[row / kM * kK * kN + k * kN + column];
      }
      sum = alpha * sum + (beta != 0 ? beta * (double)c[at] : 0) + (with_bias ? (double)bias[column] : 0);
      if (relu && sum < 0) sum = 0;
      expected[at] = sum + (with_residual ? (double)residual[at] : 0);
    }
  }
}

static int matches(int batch) { return worst(c, expected, (size_t)(batch * kM * kN)) < 1e-5; }

static void transposed(const float* from, float* to, int rows, int columns) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) to[column * rows + row] = from[row * columns + column];
  }
}

static void products(void) {
  const headlight_tensor left = TENSOR(a, kM, kK), right = TENSOR(b, kK, kN), out = TENSOR(c, kM, kN);
  expect_product(1, 1, 0, 0, 0, 0);
  c[0] = NAN;
  WORKS(headlight_gemm(engine, &left, &right, &out, NULL, &error));
  CHECK(matches(1));

  const float alpha = -0.5f, beta = 0.25f;
  const headlight_tensor row = TENSOR(bias, kN), added = TENSOR(residual, kM, kN);
  headlight_gemm_options all = {.struct_size = sizeof all,
                                .alpha = &alpha,
                                .beta = &beta,
                                .bias = &row,
                                .residual = &added,
                                .activation = HEADLIGHT_ACTIVATION_RELU};
  expect_product(1, -0.5, 0.25, 1, 1, 1);
  WORKS(headlight_gemm(engine, &left, &right, &out, &all, &error));
  CHECK(matches(1));

  // The four transpositions, through strides; the bits are those of the plain product.
  float a_stored[kM * kK], b_stored[kK * kN], plain[kM * kN];
  transposed(a, a_stored, kM, kK);
  transposed(b, b_stored, kK, kN);
  WORKS(headlight_gemm(engine, &left, &right, &out, NULL, &error));
  memcpy(plain, c, sizeof plain);
  const headlight_tensor lefts[] = {left, {a_stored, HEADLIGHT_FLOAT32, 2, INTS(kM, kK), INTS(1, kM)}};
  const headlight_tensor rights[] = {right, {b_stored, HEADLIGHT_FLOAT32, 2, INTS(kK, kN), INTS(1, kK)}};
  for (int way = 0; way < 4; ++way) {
    memset(c, 0, sizeof c);
    WORKS(headlight_gemm(engine, &lefts[way / 2], &rights[way % 2], &out, NULL, &error));
    CHECK(memcmp(c, plain, sizeof plain) == 0);
    headlight_packed_matrix* packed = NULL;
    WORKS(headlight_packed_matrix_create(engine, &rights[way % 2], HEADLIGHT_FLOAT32, &packed, &error));
    CHECK(headlight_packed_matrix_rows(packed) == kK && headlight_packed_matrix_columns(packed) == kN);
    CHECK(headlight_packed_matrix_bytes(packed) >= sizeof b_stored);
    CHECK(headlight_packed_matrix_isa(packed) == headlight_engine_isa(engine));
    memset(c, 0, sizeof c);
    WORKS(headlight_gemm_packed(engine, &lefts[way / 2], packed, &out, NULL, &error));
    CHECK(memcmp(c, plain, sizeof plain) == 0);
    headlight_packed_matrix_destroy(packed);
  }
  // One column, one row: strides of axes of one element say nothing.
  const headlight_tensor column = {b, HEADLIGHT_FLOAT32, 2, INTS(kK, 1), INTS(kN, 77)}, one = TENSOR(c, kM, 1);
  WORKS(headlight_gemm(engine, &left, &column, &one, NULL, &error));
  CHECK(c[0] == plain[0] && c[kM - 1] == plain[(kM - 1) * kN]);
  const headlight_tensor first = {a_stored, HEADLIGHT_FLOAT32, 2, INTS(1, kK), INTS(5, kM)}, top = TENSOR(c, 1, kN);
  WORKS(headlight_gemm(engine, &first, &right, &top, NULL, &error));
  CHECK(memcmp(c, plain, kN * sizeof(float)) == 0);
}

static void batches(void) {
  const headlight_tensor left = TENSOR(a, kBatch, kM, kK), right = TENSOR(b, kBatch, kK, kN);
  const headlight_tensor out = TENSOR(c, kBatch, kM, kN), added = TENSOR(residual, kBatch, kM, kN);
  headlight_gemm_options options = {.struct_size = sizeof options, .residual = &added};
  expect_product(kBatch, 1, 0, 0, 0, 1);
  WORKS(headlight_gemm(engine, &left, &right, &out, &options, &error));
  CHECK(matches(kBatch));
  // A batch stride of 0 repeats the first b.
  const headlight_tensor repeated = {b, HEADLIGHT_FLOAT32, 3, INTS(kBatch, kK, kN), INTS(0, kN, 1)};
  WORKS(headlight_gemm(engine, &left, &repeated, &out, NULL, &error));
  expect_product(1, 1, 0, 0, 0, 0);
  CHECK(matches(1));
}

static void refusals(void) {
  headlight_tensor left = TENSOR(a, kM, kK), right = TENSOR(b, kK, kN), out = TENSOR(c, kM, kN);
  REFUSED("engine", headlight_gemm(NULL, &left, &right, &out, NULL, &error));
  REFUSED("a is a null pointer", headlight_gemm(engine, NULL, &right, &out, NULL, &error));
  REFUSED("b is a null pointer", headlight_gemm(engine, &left, NULL, &out, NULL, &error));
  REFUSED("c is a null pointer", headlight_gemm(engine, &left, &right, NULL, NULL, &error));
  REFUSED("a has shape [7, 33], expected [any, 32]",
          headlight_gemm(engine, &left, &TENSOR(b, kK - 1, kN), &out, NULL, &error));
  REFUSED("a has rank 2, expected 3", headlight_gemm(engine, &left, &right, &TENSOR(c, 1, kM, kN), NULL, &error));
  REFUSED("c has rank 1, expected 2", headlight_gemm(engine, &left, &right, &TENSOR(c, kM), NULL, &error));
  REFUSED("overlaps", headlight_gemm(engine, &left, &right, &TENSOR(a, kM, kN), NULL, &error));
  left.type = HEADLIGHT_UINT8;
  REFUSED("a has type 2, expected 0", headlight_gemm(engine, &left, &right, &out, NULL, &error));
  left.type = HEADLIGHT_FLOAT32;
  left.shape = NULL;
  REFUSED("a has no shape", headlight_gemm(engine, &left, &right, &out, NULL, &error));
  left = TENSOR(NULL, kM, kK);
  REFUSED("a of shape [7, 33] has no memory", headlight_gemm(engine, &left, &right, &out, NULL, &error));
  left = TENSOR(a, kM, kK);
  left.strides = INTS(kK, 2);
  REFUSED("stride 2", headlight_gemm(engine, &left, &right, &out, NULL, &error));
  left.strides = NULL;

  headlight_gemm_options options = {.struct_size = sizeof options, .activation = 6};
  REFUSED("activation is 6", headlight_gemm(engine, &left, &right, &out, &options, &error));
  options.activation = HEADLIGHT_ACTIVATION_DEFAULT;
  const headlight_tensor short_bias = TENSOR(bias, kN - 1);
  options.bias = &short_bias;
  REFUSED("bias has shape [18]", headlight_gemm(engine, &left, &right, &out, &options, &error));
  const headlight_tensor gaps = {bias, HEADLIGHT_FLOAT32, 1, INTS(kN), INTS(2)};
  options.bias = &gaps;
  REFUSED("bias has the stride 2", headlight_gemm(engine, &left, &right, &out, &options, &error));
  options.bias = NULL;
  options.reserved = 1;
  REFUSED("options", headlight_gemm(engine, &left, &right, &out, &options, &error));

  headlight_packed_matrix* packed = NULL;
  REFUSED("packed_matrix: engine", headlight_packed_matrix_create(NULL, &right, HEADLIGHT_FLOAT32, &packed, &error));
  REFUSED("b has rank 1", headlight_packed_matrix_create(engine, &TENSOR(b, kK), HEADLIGHT_FLOAT32, &packed, &error));
  REFUSED("result", headlight_packed_matrix_create(engine, &right, HEADLIGHT_FLOAT32, NULL, &error));
  REFUSED("type is 1", headlight_packed_matrix_create(engine, &right, HEADLIGHT_INT64, &packed, &error));
  REFUSED("b is a null pointer", headlight_gemm_packed(engine, &left, NULL, &out, NULL, &error));
  headlight_packed_matrix_destroy(NULL);
  CHECK(headlight_packed_matrix_rows(NULL) == 0 && headlight_packed_matrix_columns(NULL) == 0);
  CHECK(headlight_packed_matrix_bytes(NULL) == 0 && headlight_packed_matrix_isa(NULL) == HEADLIGHT_ISA_BEST);

  headlight_isa isas[8];
  size_t count = 0;
  WORKS(headlight_available_isas(isas, 8, &count, &error));
  if (count > 1) {
    headlight_engine_options other = {.struct_size = sizeof other, .threads = 1, .isa = isas[0]};
    headlight_engine* scalar = NULL;
    WORKS(headlight_engine_create(&other, &scalar, &error));
    WORKS(headlight_packed_matrix_create(scalar, &right, HEADLIGHT_FLOAT32, &packed, &error));
    REFUSED("was packed for", headlight_gemm_packed(engine, &left, packed, &out, NULL, &error));
    headlight_packed_matrix_destroy(packed);
    headlight_engine_destroy(scalar);
  }
}

// Small whole numbers are bfloat16 numbers: nothing is rounded.
static void narrow_types(void) {
  float left_values[6] = {1, -2, 3, 4, 0, 5}, right_values[6] = {2, 1, -1, 7, 3, -8}, out_values[4];
  const headlight_tensor left = TENSOR(left_values, 2, 3), right = TENSOR(right_values, 3, 2);
  const headlight_tensor out = TENSOR(out_values, 2, 2);
  headlight_packed_matrix* packed = NULL;
  WORKS(headlight_packed_matrix_create(engine, &right, HEADLIGHT_BFLOAT16, &packed, &error));
  CHECK(headlight_packed_matrix_type(packed) == HEADLIGHT_BFLOAT16);
  CHECK(headlight_packed_matrix_type(NULL) == HEADLIGHT_FLOAT32);
  WORKS(headlight_gemm_packed(engine, &left, packed, &out, NULL, &error));
  CHECK(out_values[0] == 13 && out_values[1] == -37 && out_values[2] == 23 && out_values[3] == -36);
  headlight_packed_matrix_destroy(packed);
  WORKS(headlight_packed_matrix_create(engine, &right, HEADLIGHT_FLOAT16, &packed, &error));
  CHECK(headlight_packed_matrix_type(packed) == HEADLIGHT_FLOAT16);
  WORKS(headlight_gemm_packed(engine, &left, packed, &out, NULL, &error));
  CHECK(out_values[0] == 13 && out_values[1] == -37 && out_values[2] == 23 && out_values[3] == -36);
  headlight_packed_matrix_destroy(packed);
  // Quantized without error: a row from 0 to 255, columns whose largest number is 127.
  float bytes[6] = {255, 0, 3, 17, 255, 0}, weights[6] = {127, 1, -1, -127, 3, 8};
  const headlight_tensor rows = TENSOR(bytes, 2, 3), columns = TENSOR(weights, 3, 2);
  WORKS(headlight_packed_matrix_create(engine, &columns, HEADLIGHT_INT8, &packed, &error));
  CHECK(headlight_packed_matrix_type(packed) == HEADLIGHT_INT8);
  WORKS(headlight_gemm_packed(engine, &rows, packed, &out, NULL, &error));
  CHECK(out_values[0] == 32394 && out_values[1] == 279 && out_values[2] == 1904 && out_values[3] == -32368);
  headlight_packed_matrix_destroy(packed);
  // And here a row from −127 to 127, and columns whose largest number is 7.
  float signed_bytes[6] = {-127, 0, 3, 17, 127, 0}, nibbles[6] = {7, 1, -1, -7, 3, 2};
  const headlight_tensor signed_rows = TENSOR(signed_bytes, 2, 3), narrow_columns = TENSOR(nibbles, 3, 2);
  WORKS(headlight_packed_matrix_create(engine, &narrow_columns, HEADLIGHT_INT4, &packed, &error));
  CHECK(headlight_packed_matrix_type(packed) == HEADLIGHT_INT4);
  WORKS(headlight_gemm_packed(engine, &signed_rows, packed, &out, NULL, &error));
  CHECK(out_values[0] == -880 && out_values[1] == -121 && out_values[2] == -8 && out_values[3] == -872);
  headlight_packed_matrix_destroy(packed);
  REFUSED("HEADLIGHT_INT4", headlight_packed_matrix_create(engine, &right, 99, &packed, &error));
  const headlight_type types[] = {HEADLIGHT_BFLOAT16, HEADLIGHT_FLOAT16, HEADLIGHT_INT8, HEADLIGHT_INT4};
  for (int type = 0; type < 4; ++type) {
    headlight_gemm_shape shape = {.struct_size = sizeof shape, .m = 2, .n = 2, .k = 3, .type = types[type]};
    REFUSED("not packed", headlight_gemm_reserve(engine, &shape, &error));
    shape.packed = 1;
    WORKS(headlight_gemm_reserve(engine, &shape, &error));
  }
}

static void workspace(void) {
  headlight_gemm_shape shape = {.struct_size = sizeof shape, .m = 500, .n = 600, .k = 700};
  size_t bytes = 0, twice = 0;
  headlight_engine* fresh = make_engine(1);
  WORKS(headlight_gemm_workspace_bytes(fresh, &shape, &bytes, &error));
  shape.batch = 1;
  WORKS(headlight_gemm_workspace_bytes(fresh, &shape, &twice, &error));
  CHECK(bytes > 0 && twice == bytes);
  WORKS(headlight_gemm_reserve(fresh, &shape, &error));
  CHECK(headlight_engine_scratch_bytes(fresh) >= bytes);
  headlight_engine_release_scratch(fresh);
  CHECK(headlight_engine_scratch_bytes(fresh) == 0);
  shape.packed = 1;
  WORKS(headlight_gemm_workspace_bytes(fresh, &shape, &twice, &error));
  CHECK(twice <= bytes);
  shape.m = -1;
  REFUSED("negative", headlight_gemm_workspace_bytes(fresh, &shape, &bytes, &error));
  REFUSED("negative", headlight_gemm_reserve(fresh, &shape, &error));
  REFUSED("shape", headlight_gemm_reserve(fresh, NULL, &error));
  shape.m = 1;
  REFUSED("bytes", headlight_gemm_workspace_bytes(fresh, &shape, NULL, &error));
  REFUSED("engine", headlight_gemm_workspace_bytes(NULL, &shape, &bytes, &error));
  headlight_engine_destroy(fresh);
}

int main(void) {
  engine = make_engine(2);
  fill(a, sizeof a / sizeof *a, 1);
  fill(b, sizeof b / sizeof *b, 2);
  fill(c, sizeof c / sizeof *c, 3);
  fill(bias, kN, 4);
  fill(residual, sizeof residual / sizeof *residual, 5);
  products();
  batches();
  refusals();
  narrow_types();
  workspace();
  headlight_engine_destroy(engine);
  return check_result();
}
