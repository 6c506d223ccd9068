// The models library from C, on the model folder named by the first argument; the second is a path to save one to.
#include <headlight/models/headlight_models.h>

#include "check.h"

static headlight_engine* engine;
static headlight_encoder* encoder;
static const char* const texts[] = {"a b c", "d", ""};
enum { kTexts = 3, kLongest = 5, kMost = 64 };

static void files(const char* folder, const char* copy) {
  WORKS(headlight_encoder_load(folder, &encoder, &error));
  WORKS(headlight_encoder_save(encoder, copy, &error));
  headlight_encoder_destroy(encoder);
  WORKS(headlight_encoder_load(copy, &encoder, &error));
  CHECK(headlight_encoder_width(encoder) == 24 && headlight_encoder_embed_width(encoder) == 24 &&
        headlight_encoder_layers(encoder) == 2);
  CHECK(headlight_encoder_heads(encoder) == 3 && headlight_encoder_vocabulary(encoder) == 31);
  CHECK(headlight_encoder_max_length(encoder) == 12 && headlight_encoder_embed_max_length(encoder) == 12);

  headlight_encoder* none = encoder;
  FAILS(HEADLIGHT_FILE_ERROR, "no-such-folder", headlight_encoder_load("no-such-folder", &none, &error));
  CHECK(none == NULL);
  REFUSED("folder", headlight_encoder_load(NULL, &none, &error));
  REFUSED("result", headlight_encoder_load(folder, NULL, &error));
  REFUSED("encoder is", headlight_encoder_save(NULL, copy, &error));
  REFUSED("folder", headlight_encoder_save(encoder, NULL, &error));
  headlight_load_model_options options = HEADLIGHT_OPTIONS(headlight_load_model_options);
  options.precision = HEADLIGHT_BFLOAT16;
  WORKS(headlight_encoder_load_with(folder, &options, &none, &error));
  headlight_layer* const network = headlight_encoder_network(none);
  CHECK(headlight_layer_precision(network) == HEADLIGHT_BFLOAT16);
  WORKS(headlight_layer_set_precision(network, HEADLIGHT_FLOAT32, &error));
  CHECK(headlight_layer_precision(network) == HEADLIGHT_FLOAT32 && headlight_layer_precision(NULL) == 0);
  WORKS(headlight_layer_set_precision(network, HEADLIGHT_INT4, &error));
  CHECK(headlight_layer_precision(network) == HEADLIGHT_INT4);
  WORKS(headlight_layer_set_precision(network, HEADLIGHT_FLOAT32, &error));
  REFUSED(
      "precision is 1, expected HEADLIGHT_FLOAT32, HEADLIGHT_BFLOAT16, HEADLIGHT_FLOAT16, HEADLIGHT_INT8 or "
      "HEADLIGHT_INT4",
      headlight_layer_set_precision(network, HEADLIGHT_INT64, &error));
  REFUSED("layer is", headlight_layer_set_precision(NULL, HEADLIGHT_FLOAT32, &error));
  headlight_encoder_destroy(none);
  options.precision = HEADLIGHT_UINT8;
  REFUSED("precision is 2", headlight_encoder_load_with(folder, &options, &none, &error));
  CHECK(none == NULL);
  options.precision = HEADLIGHT_FLOAT32;
  options.reserved = 1;
  REFUSED("no field", headlight_encoder_load_with(folder, &options, &none, &error));
  FAILS(HEADLIGHT_FILE_ERROR, "/dev/null", headlight_encoder_save(encoder, "/dev/null/x", &error));
  headlight_save_model_options narrow = HEADLIGHT_OPTIONS(headlight_save_model_options);
  narrow.type = HEADLIGHT_INT8;
  WORKS(headlight_encoder_save_with(encoder, copy, &narrow, &error));
  WORKS(headlight_encoder_load(copy, &none, &error));
  CHECK(headlight_encoder_width(none) == 24);
  headlight_encoder_destroy(none);
  narrow.type = HEADLIGHT_INT64;
  REFUSED("type is 1", headlight_encoder_save_with(encoder, copy, &narrow, &error));
  REFUSED("encoder is", headlight_encoder_save_with(NULL, copy, NULL, &error));
  WORKS(headlight_encoder_save_with(encoder, copy, NULL, &error));
  headlight_encoder_destroy(NULL);
  CHECK(headlight_encoder_width(NULL) == 0 && headlight_encoder_embed_width(NULL) == 0 &&
        headlight_encoder_layers(NULL) == 0 && headlight_encoder_heads(NULL) == 0);
  CHECK(headlight_encoder_vocabulary(NULL) == 0 && headlight_encoder_max_length(NULL) == 0);
  CHECK(headlight_encoder_embed_max_length(NULL) == 0);
}

static void tokens(void) {
  int64_t ids[kMost] = {0}, id = 0;
  size_t count = 0, length = 1;
  WORKS(headlight_encoder_tokenize(encoder, texts[0], NULL, 0, NULL, 0, &count, &error));
  CHECK(count == 5);
  WORKS(headlight_encoder_tokenize(encoder, texts[0], NULL, 0, ids, kMost, &count, &error));
  CHECK(count == 5 && ids[0] == 2 && ids[1] == 5 && ids[2] == 6 && ids[3] == 7 && ids[4] == 3 && ids[5] == 0);
  WORKS(headlight_encoder_tokenize(encoder, texts[0], &length, 0, ids, 2, &count, &error));
  CHECK(count == 3 && ids[1] == 5 && ids[2] == 6);  // the third had no room
  WORKS(headlight_encoder_tokenize(encoder, texts[0], NULL, 3, ids, kMost, &count, &error));
  CHECK(count == 3 && ids[2] == 3);
  const char* token = NULL;
  WORKS(headlight_encoder_token(encoder, 5, &token, &error));
  CHECK(strcmp(token, "a") == 0);
  WORKS(headlight_encoder_token_id(encoder, "[SEP]", &id, &error));
  CHECK(id == 3);
  WORKS(headlight_encoder_token_id(encoder, "street", &id, &error));
  CHECK(id == -1);

  REFUSED("UTF-8", headlight_encoder_tokenize(encoder, "\xFF", NULL, 0, ids, kMost, &count, &error));
  REFUSED("max_length", headlight_encoder_tokenize(encoder, "a", NULL, 1, ids, kMost, &count, &error));
  REFUSED("text", headlight_encoder_tokenize(encoder, NULL, NULL, 0, ids, kMost, &count, &error));
  REFUSED("ids", headlight_encoder_tokenize(encoder, "a", NULL, 0, NULL, 1, &count, &error));
  REFUSED("count", headlight_encoder_tokenize(encoder, "a", NULL, 0, ids, kMost, NULL, &error));
  REFUSED("encoder is", headlight_encoder_tokenize(NULL, "a", NULL, 0, ids, kMost, &count, &error));
  REFUSED("31", headlight_encoder_token(encoder, 31, &token, &error));
  REFUSED("token", headlight_encoder_token(encoder, 1, NULL, &error));
  REFUSED("token", headlight_encoder_token_id(encoder, NULL, &id, &error));
  REFUSED("id is", headlight_encoder_token_id(encoder, "a", NULL, &error));
}

static void hidden_states(void) {
  headlight_hidden_states* states = NULL;
  WORKS(headlight_encoder_encode_texts(encoder, engine, texts, NULL, kTexts, &states, &error));
  headlight_tensor hidden = {0};
  WORKS(headlight_hidden_states_tensor(states, &hidden, &error));
  CHECK(hidden.type == HEADLIGHT_FLOAT32 && hidden.rank == 3 && hidden.strides == NULL);
  CHECK(hidden.shape[0] == kTexts && hidden.shape[1] == kLongest && hidden.shape[2] == 24);
  const float* const values = hidden.data;

  // The same by ids, padded and masked; and to rows that lie apart.
  int64_t ids[kTexts * kLongest], mask[kTexts * kLongest] = {0};
  for (size_t text = 0; text < kTexts; ++text) {
    headlight_indices row = {0};
    WORKS(headlight_hidden_states_ids(states, text, &row, &error));
    CHECK(row.count == (text == 0 ? 5 : text == 1 ? 3 : 2) && row.data[0] == 2);
    for (int64_t column = 0; column < row.count; ++column) {
      ids[(int64_t)text * kLongest + column] = row.data[column];
      mask[(int64_t)text * kLongest + column] = 1;
    }
    for (int64_t column = row.count; column < kLongest; ++column) ids[(int64_t)text * kLongest + column] = 0;
  }
  static float apart[kTexts * kLongest * 30];
  const headlight_tensor in = {ids, HEADLIGHT_INT64, 2, INTS(kTexts, kLongest), NULL};
  const headlight_tensor seen = {mask, HEADLIGHT_INT64, 2, INTS(kTexts, kLongest), NULL};
  const headlight_tensor out = {apart, HEADLIGHT_FLOAT32, 3, INTS(kTexts, kLongest, 24), INTS(kLongest * 30, 30, 1)};
  WORKS(headlight_encoder_encode_ids(encoder, engine, &in, &seen, &out, &error));
  for (int row = 0; row < kTexts * kLongest; ++row) {
    CHECK(memcmp(&apart[row * 30], &values[row * 24], 24 * sizeof(float)) == 0 && apart[row * 30 + 24] == 0.0f);
  }
  CHECK(values[0] != 0.0f && values[4 * 24] != 0.0f && values[(kLongest + 3) * 24] == 0.0f);

  // Sentence vectors are the normalised means of those rows.
  float vectors[kTexts * 24], by_ids[kTexts * 24];
  WORKS(headlight_encoder_embed_texts(encoder, engine, texts, NULL, kTexts, &TENSOR(vectors, kTexts, 24), &error));
  WORKS(headlight_encoder_embed_ids(encoder, engine, &in, &seen, &TENSOR(by_ids, kTexts, 24), &error));
  CHECK(memcmp(vectors, by_ids, sizeof vectors) == 0);
  double mean[24], square = 0;
  for (int e = 0; e < 24; ++e) {
    mean[e] = 0;
    for (int row = 0; row < 3; ++row) mean[e] += (double)values[(kLongest + row) * 24 + e] / 3;
    square += mean[e] * mean[e];
  }
  for (int e = 0; e < 24; ++e) mean[e] /= sqrt(square);
  CHECK(worst(&vectors[24], mean, 24) < 1e-6);
  const size_t lengths[] = {5, 1, 0};
  WORKS(headlight_encoder_embed_texts(encoder, engine, texts, lengths, kTexts, &TENSOR(by_ids, kTexts, 24), &error));
  CHECK(memcmp(vectors, by_ids, sizeof vectors) == 0);

  REFUSED("text is 3", headlight_hidden_states_ids(states, 3, &(headlight_indices){0}, &error));
  REFUSED("ids is", headlight_hidden_states_ids(states, 0, NULL, &error));
  REFUSED("states is", headlight_hidden_states_ids(NULL, 0, &(headlight_indices){0}, &error));
  REFUSED("hidden is", headlight_hidden_states_tensor(states, NULL, &error));
  REFUSED("states is", headlight_hidden_states_tensor(NULL, &hidden, &error));
  headlight_hidden_states_destroy(states);
  headlight_hidden_states_destroy(NULL);

  CHECK(headlight_encoder_score_width(encoder) == 0 && headlight_encoder_score_width(NULL) == 0);
  REFUSED("no head for classification", headlight_encoder_score(encoder, engine, texts, NULL, texts, NULL, kTexts,
                                                                &TENSOR(vectors, kTexts, 1), &error));
}

// What stands in front of a text, which the folder leaves out of the pooling.
static void prompts(void) {
  const char* const letters[] = {"c", "d"};
  float expected[2 * 24], found[2 * 24];
  int64_t ids[] = {2, 5, 6, 7, 3, 2, 5, 6, 8, 3};
  const headlight_tensor in = {ids, HEADLIGHT_INT64, 2, INTS(2, 5), NULL}, out = TENSOR(found, 2, 24);
  headlight_embed_options options = HEADLIGHT_OPTIONS(headlight_embed_options);
  options.prompt_tokens = 3;
  WORKS(headlight_encoder_embed_ids_with(encoder, engine, &in, NULL, &TENSOR(expected, 2, 24), &options, &error));
  WORKS(headlight_encoder_embed_ids(encoder, engine, &in, NULL, &out, &error));
  CHECK(memcmp(expected, found, sizeof found) != 0);
  WORKS(headlight_encoder_embed_texts(encoder, engine, letters, NULL, 2, &out, &error));
  CHECK(memcmp(expected, found, sizeof found) != 0);
  options.prompt_tokens = 0;
  options.prompt_name = "letters";
  WORKS(headlight_encoder_embed_texts_with(encoder, engine, letters, NULL, 2, &out, &options, &error));
  CHECK(memcmp(expected, found, sizeof found) == 0);
  options.prompt = "a b ";
  options.prompt_name = "none";
  WORKS(headlight_encoder_embed_texts_with(encoder, engine, letters, NULL, 2, &out, &options, &error));
  CHECK(memcmp(expected, found, sizeof found) == 0);
  const size_t length = 4;
  options.prompt = "a b but not this";
  options.prompt_length = &length;
  WORKS(headlight_encoder_embed_texts_with(encoder, engine, letters, NULL, 2, &out, &options, &error));
  CHECK(memcmp(expected, found, sizeof found) == 0);

  // The first of a vector's numbers.
  float some[2 * 7];
  options.truncate_dim = 7;
  WORKS(headlight_encoder_embed_texts_with(encoder, engine, letters, NULL, 2, &TENSOR(some, 2, 7), &options, &error));
  for (int e = 1; e < 7; ++e) CHECK(fabsf(some[e] * expected[0] - expected[e] * some[0]) < 1e-6f);
  options.truncate_dim = 25;
  REFUSED("truncate_dim is 25",
          headlight_encoder_embed_texts_with(encoder, engine, letters, NULL, 2, &out, &options, &error));
  options.truncate_dim = -1;  // all of them
  WORKS(headlight_encoder_embed_texts_with(encoder, engine, letters, NULL, 2, &out, &options, &error));
  CHECK(memcmp(expected, found, sizeof found) == 0);

  // As the last layer gives them.
  options.without_normalization = 1;
  WORKS(headlight_encoder_embed_texts_with(encoder, engine, letters, NULL, 2, &out, &options, &error));
  double product = 0, square = 0;
  for (int e = 0; e < 24; ++e) {
    product += (double)found[e] * (double)expected[e];
    square += (double)found[e] * (double)found[e];
  }
  CHECK(fabs(square - 1) > 0.1 && fabs(product / sqrt(square) - 1) < 1e-6);

  options.prompt = NULL;
  REFUSED("prompt_name is 'none', expected the name of one of the model's: document, letters, query",
          headlight_encoder_embed_texts_with(encoder, engine, letters, NULL, 2, &out, &options, &error));
  options.prompt = "\xFF";
  options.prompt_length = NULL;
  REFUSED("UTF-8", headlight_encoder_embed_texts_with(encoder, engine, letters, NULL, 2, &out, &options, &error));
  options.prompt_tokens = -1;
  REFUSED("prompt_tokens is -1", headlight_encoder_embed_ids_with(encoder, engine, &in, NULL, &out, &options, &error));
  options.reserved = 1;
  REFUSED("no field", headlight_encoder_embed_ids_with(encoder, engine, &in, NULL, &out, &options, &error));
}

static void reserved(void) {
  float before[kTexts * 24], after[kTexts * 24];
  WORKS(headlight_encoder_embed_texts(encoder, engine, texts, NULL, kTexts, &TENSOR(before, kTexts, 24), &error));
  WORKS(headlight_encoder_reserve(encoder, engine, 1000, &error));
  WORKS(headlight_encoder_embed_texts(encoder, engine, texts, NULL, kTexts, &TENSOR(after, kTexts, 24), &error));
  CHECK(memcmp(before, after, sizeof before) == 0);
  REFUSED("-1 tokens", headlight_encoder_reserve(encoder, engine, -1, &error));
  REFUSED("encoder is", headlight_encoder_reserve(NULL, engine, 1, &error));
  REFUSED("engine is", headlight_encoder_reserve(encoder, NULL, 1, &error));
}

static void refusals(void) {
  int64_t ids[] = {2, 5, 3, 99};
  float memory[3 * 4 * 24];
  headlight_tensor in = {ids, HEADLIGHT_INT64, 2, INTS(1, 3), NULL}, out = TENSOR(memory, 1, 3, 24);
  headlight_tensor vector = TENSOR(memory, 1, 24);
  headlight_hidden_states* states = NULL;
  WORKS(headlight_encoder_encode_ids(encoder, engine, &in, NULL, &out, &error));
  REFUSED("engine", headlight_encoder_encode_ids(encoder, NULL, &in, NULL, &out, &error));
  REFUSED("encoder is", headlight_encoder_encode_ids(NULL, engine, &in, NULL, &out, &error));
  REFUSED("ids is", headlight_encoder_encode_ids(encoder, engine, NULL, NULL, &out, &error));
  REFUSED("out is", headlight_encoder_encode_ids(encoder, engine, &in, NULL, NULL, &error));
  REFUSED("mask has shape [1, 2]",
          headlight_encoder_encode_ids(encoder, engine, &in,
                                       &(headlight_tensor){ids, HEADLIGHT_INT64, 2, INTS(1, 2), NULL}, &out, &error));
  REFUSED("out has shape [1, 3, 23], expected [1, 3, 24]",
          headlight_encoder_encode_ids(encoder, engine, &in, NULL, &TENSOR(memory, 1, 3, 23), &error));
  REFUSED("out has no memory",
          headlight_encoder_encode_ids(encoder, engine, &in, NULL, &TENSOR(NULL, 1, 3, 24), &error));
  out.strides = INTS(72, 24, 2);
  REFUSED("last stride 2", headlight_encoder_encode_ids(encoder, engine, &in, NULL, &out, &error));

  // Rows that lie over one another, or before the memory; rows of [L, B, E] memory are welcome.
  const int64_t* const apart[] = {INTS(0, 24, 1),   INTS(72, 0, 1),  INTS(72, 23, 1),
                                  INTS(-72, 24, 1), INTS(24, 24, 1), INTS(INT64_MAX, INT64_MAX, 1)};
  int64_t two[] = {2, 5, 3, 2, 5, 3};
  const headlight_tensor pair = {two, HEADLIGHT_INT64, 2, INTS(2, 3), NULL};
  headlight_tensor rows = {memory, HEADLIGHT_FLOAT32, 3, INTS(2, 3, 24), NULL};
  for (size_t n = 0; n < sizeof apart / sizeof *apart; ++n) {
    rows.strides = apart[n];
    REFUSED("apart from each other", headlight_encoder_encode_ids(encoder, engine, &pair, NULL, &rows, &error));
  }
  rows.strides = INTS(24, 48, 1);
  WORKS(headlight_encoder_encode_ids(encoder, engine, &pair, NULL, &rows, &error));
  CHECK(memcmp(memory, memory + 24, 24 * sizeof(float)) == 0);
  headlight_tensor vectors = {memory, HEADLIGHT_FLOAT32, 2, INTS(3, 24), INTS(0, 1)};
  REFUSED("apart from each other",
          headlight_encoder_embed_texts(encoder, engine, texts, NULL, kTexts, &vectors, &error));
  vectors.strides = INTS(-8, 1);
  REFUSED("apart from each other",
          headlight_encoder_embed_texts(encoder, engine, texts, NULL, kTexts, &vectors, &error));
  in.type = HEADLIGHT_FLOAT32;
  REFUSED("ids has type 0, expected 1", headlight_encoder_embed_ids(encoder, engine, &in, NULL, &vector, &error));
  in.type = HEADLIGHT_INT64;
  in.data = NULL;
  REFUSED("no memory", headlight_encoder_embed_ids(encoder, engine, &in, NULL, &vector, &error));
  in.data = ids + 1;
  REFUSED("99", headlight_encoder_embed_ids(encoder, engine, &in, NULL, &vector, &error));
  in.shape = INTS(1, -1);
  REFUSED("negative", headlight_encoder_embed_ids(encoder, engine, &in, NULL, &vector, &error));
  REFUSED("engine", headlight_encoder_embed_texts(encoder, NULL, texts, NULL, 1, &vector, &error));
  REFUSED("texts is", headlight_encoder_embed_texts(encoder, engine, NULL, NULL, 1, &vector, &error));
  REFUSED("out has shape", headlight_encoder_embed_texts(encoder, engine, texts, NULL, 2, &vector, &error));
  REFUSED("texts[1] is",
          headlight_encoder_encode_texts(encoder, engine, (const char* const[]){"a", NULL}, NULL, 2, &states, &error));
  REFUSED("text 1", headlight_encoder_encode_texts(encoder, engine, (const char* const[]){"a", "\xFF"}, NULL, 2,
                                                   &states, &error));
  REFUSED("result", headlight_encoder_encode_texts(encoder, engine, texts, NULL, 1, NULL, &error));
  CHECK(states == NULL);
}

static void probabilities(void) {
  const int64_t row[] = {2, 5, 6, 3};
  const headlight_indices ids = {row, 4};
  float weights[3 * 4 * 4];
  WORKS(headlight_encoder_probabilities(encoder, engine, &ids, 1, &TENSOR(weights, 3, 4, 4), &error));
  for (int n = 0; n < 3 * 4; ++n) {
    double sum = 0;
    for (int column = 0; column < 4; ++column) sum += (double)weights[n * 4 + column];
    CHECK(fabs(sum - 1) < 1e-6);
  }
  REFUSED("layer", headlight_encoder_probabilities(encoder, engine, &ids, 2, &TENSOR(weights, 3, 4, 4), &error));
  REFUSED("out has", headlight_encoder_probabilities(encoder, engine, &ids, 0, &TENSOR(weights, 3, 4, 3), &error));
  REFUSED("ids is", headlight_encoder_probabilities(encoder, engine, NULL, 0, &TENSOR(weights, 3, 4, 4), &error));
  REFUSED("engine", headlight_encoder_probabilities(encoder, NULL, &ids, 0, &TENSOR(weights, 3, 4, 4), &error));
}

// The network inside: its parameters by name, and heads that are silent.
static void network(void) {
  CHECK(headlight_encoder_network(NULL) == NULL);
  headlight_layer* const inside = headlight_encoder_network(encoder);
  CHECK(headlight_layer_parameter_count(inside) == 5 + 2 * 12);
  headlight_layer_destroy(inside);  // it stays where it is
  const char* name = NULL;
  int32_t rank = 0;
  const int64_t* shape = NULL;
  WORKS(headlight_layer_parameter(inside, 0, &name, &rank, &shape, &error));
  CHECK(strcmp(name, "word_embeddings.weight") == 0 && rank == 2 && shape[0] == 31 && shape[1] == 24);

  int64_t ids[] = {2, 5, 6, 3};
  const int64_t positions[] = {0, 1, 2, 3}, types[] = {0, 0, 0, 0}, offsets[] = {0, 4};
  const headlight_tensor row = {ids, HEADLIGHT_INT64, 2, INTS(1, 4), NULL};
  float all[4 * 24], same[4 * 24], fewer[4 * 24], changed[4 * 24];
  WORKS(headlight_encoder_encode_ids(encoder, engine, &row, NULL, &TENSOR(all, 1, 4, 24), &error));
  const headlight_encoder_network_input input = {.struct_size = sizeof input,
                                                 .ids = {ids, 4},
                                                 .positions = {positions, 4},
                                                 .token_types = {types, 4},
                                                 .offsets = {offsets, 2}};
  const headlight_head_access heads = {.struct_size = sizeof heads, .silenced = {offsets, 1}};
  const headlight_layer_access first = {.struct_size = sizeof first, .layer = 1, .heads = &heads};
  WORKS(headlight_encoder_network_forward(inside, engine, &input, &TENSOR(same, 4, 24), NULL, 0, &error));
  WORKS(headlight_encoder_network_forward(inside, engine, &input, &TENSOR(fewer, 4, 24), &first, 1, &error));
  CHECK(memcmp(all, same, sizeof all) == 0 && memcmp(all, fewer, sizeof all) != 0);

  // What is set counts in the encoder.
  float scale[24], twice[24];
  WORKS(headlight_layer_get_parameter(inside, "layers.1.norm2.weight", &TENSOR(scale, 24), &error));
  for (int e = 0; e < 24; ++e) twice[e] = 2.0f * scale[e];
  WORKS(headlight_layer_set_parameter(inside, "layers.1.norm2.weight", &TENSOR(twice, 24), &error));
  WORKS(headlight_encoder_encode_ids(encoder, engine, &row, NULL, &TENSOR(changed, 1, 4, 24), &error));
  CHECK(memcmp(all, changed, sizeof all) != 0);
  WORKS(headlight_layer_set_parameter(inside, "layers.1.norm2.weight", &TENSOR(scale, 24), &error));
  WORKS(headlight_encoder_encode_ids(encoder, engine, &row, NULL, &TENSOR(changed, 1, 4, 24), &error));
  CHECK(memcmp(all, changed, sizeof all) == 0);
}

// An optimiser of the network inside, which goes with the encoder.
static void destroy_in_training(void) {
  headlight_layer* const inside = headlight_encoder_network(encoder);
  headlight_optimizer* optimizer = NULL;
  WORKS(headlight_layer_set_training(inside, 1, &error));
  WORKS(headlight_sgd_create(&inside, 1, NULL, &optimizer, &error));
  WORKS(headlight_optimizer_step(optimizer, engine, NULL, NULL, &error));
  headlight_encoder_destroy(encoder);
  REFUSED("layers[0] has left", headlight_optimizer_step(optimizer, engine, NULL, NULL, &error));
  headlight_optimizer_zero_gradients(optimizer);
  headlight_optimizer_destroy(optimizer);
}

int main(int count, char** arguments) {
  if (count != 3) return EXIT_FAILURE;
  engine = make_engine(2);
  files(arguments[1], arguments[2]);
  tokens();
  hidden_states();
  prompts();
  reserved();
  refusals();
  probabilities();
  network();
  destroy_in_training();
  headlight_engine_destroy(engine);
  return check_result();
}
