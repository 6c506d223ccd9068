// The models library of headlight from C: a published BERT model, text in, hidden states or sentence
// vectors out. The rules of headlight/headlight.h hold here too; hidden states of texts, whose size only the texts
// tell, are allocated in each call.
#pragma once

#include "headlight/headlight.h"

#ifdef __cplusplus
extern "C" {
#endif

// Tokenizer and network together. Computing leaves it as it is, so any number of threads may use one at once. A text's
// numbers have the same bits whatever else the call holds.
typedef struct headlight_encoder headlight_encoder;

// Reads a published model: a GGUF file, or a folder: config.json, model.safetensors, vocab.txt or tokenizer.json, and
// where they are there the other files of its tokenizer and of sentence-transformers. HEADLIGHT_FILE_ERROR names the
// file and the key, tensor or line. As long as the encoder lives model.safetensors may be removed or replaced, but not
// changed in place: who shortens it ends the process, where a page that is gone is read.
HEADLIGHT_API headlight_status headlight_encoder_load(const char* folder, headlight_encoder** encoder,
                                                      headlight_error* error);
typedef struct headlight_load_model_options {
  size_t struct_size;
  headlight_type precision;  // of its products: headlight_layer_set_precision
  int32_t reserved;          // 0
} headlight_load_model_options;
// The same with options, which may be NULL.
HEADLIGHT_API headlight_status headlight_encoder_load_with(const char* folder,
                                                           const headlight_load_model_options* options,
                                                           headlight_encoder** encoder, headlight_error* error);
// Writes such a folder, of a model of any family, matrices and tables in the types that they were loaded in; each file
// appears whole or not at all. What cannot be written, such as some models out of GGUF files, is
// HEADLIGHT_INVALID_ARGUMENT.
HEADLIGHT_API headlight_status headlight_encoder_save(const headlight_encoder* encoder, const char* folder,
                                                      headlight_error* error);
typedef struct headlight_save_model_options {
  size_t struct_size;
  headlight_type
      type;  // of matrices and tables in the file: HEADLIGHT_INT8 or _INT4 for a quarter or a seventh of its bytes
  int32_t reserved;  // 0
} headlight_save_model_options;
// The same with options, which may be NULL: then as above.
HEADLIGHT_API headlight_status headlight_encoder_save_with(const headlight_encoder* encoder, const char* folder,
                                                           const headlight_save_model_options* options,
                                                           headlight_error* error);
HEADLIGHT_API void headlight_encoder_destroy(headlight_encoder* encoder);

// The network inside, as headlight_encoder_network_create makes one: for its parameters, its heads, its training. It is
// the encoder's own and goes with it: headlight_layer_destroy leaves it. Changing it needs the encoder to oneself.
HEADLIGHT_API headlight_layer* headlight_encoder_network(headlight_encoder* encoder);

// D, the numbers of a vector of a text: E, unless the folder's poolings, a dense layer or its truncate_dim make it
// another.
HEADLIGHT_API int64_t headlight_encoder_embed_width(const headlight_encoder* encoder);
// E, the width of hidden states; layers; H, heads of each; rows of the word table.
HEADLIGHT_API int64_t headlight_encoder_width(const headlight_encoder* encoder);
HEADLIGHT_API int64_t headlight_encoder_layers(const headlight_encoder* encoder);
HEADLIGHT_API int64_t headlight_encoder_heads(const headlight_encoder* encoder);
HEADLIGHT_API int64_t headlight_encoder_vocabulary(const headlight_encoder* encoder);
// Tokens after which a text is cut, the special ones included: where it is encoded, and where it is embedded.
HEADLIGHT_API int64_t headlight_encoder_max_length(const headlight_encoder* encoder);
HEADLIGHT_API int64_t headlight_encoder_embed_max_length(const headlight_encoder* encoder);

// Texts are UTF-8. A length counts bytes; NULL in place of the length or lengths: each text ends before its first zero
// byte.

// [CLS], the tokens of the text, [SEP]: *count of them, at most max_length (≥ 2; 0: that of the encoder). The first
// `capacity` are written to ids (NULL with a capacity of 0).
HEADLIGHT_API headlight_status headlight_encoder_tokenize(const headlight_encoder* encoder, const char* text,
                                                          const size_t* length, int64_t max_length, int64_t* ids,
                                                          size_t capacity, size_t* count, headlight_error* error);
// The token of an id, "##s", which belongs to the encoder; and the id of a token, −1 where there is none.
HEADLIGHT_API headlight_status headlight_encoder_token(const headlight_encoder* encoder, int64_t id, const char** token,
                                                       headlight_error* error);
HEADLIGHT_API headlight_status headlight_encoder_token_id(const headlight_encoder* encoder, const char* token,
                                                          int64_t* id, headlight_error* error);

// Takes now what calls with at most so many tokens (of all their texts, [CLS] and [SEP] included) will work in, so that
// the first call allocates no more than the second; what goes through the network at a time is bounded, and so is this.
// For one call at a time on that engine: others at the same time take memory of their own, which is kept too.
HEADLIGHT_API headlight_status headlight_encoder_reserve(const headlight_encoder* encoder, headlight_engine* engine,
                                                         int64_t tokens, headlight_error* error);

// B texts → out [B, D]: a vector of each, pooled of its hidden states as the folder says (the mean, where it says
// nothing), with the folder's default prompt in front of it, and divided by its Euclidean length, so that a dot product
// of two is their cosine similarity.
HEADLIGHT_API headlight_status headlight_encoder_embed_texts(const headlight_encoder* encoder, headlight_engine* engine,
                                                             const char* const* texts, const size_t* lengths,
                                                             size_t count, const headlight_tensor* out,
                                                             headlight_error* error);
typedef struct headlight_embed_options {
  size_t struct_size;
  // What stands in front of each text, and the bytes of it. NULL: what prompt_name names. Of ids nothing does.
  const char* prompt;
  const size_t* prompt_length;  // NULL: it ends before its first zero byte
  // The name of one of the folder's prompts ("query"). NULL: the folder's default. Not read where prompt is given.
  const char* prompt_name;
  // The first tokens of each row of ids that are a prompt's, [CLS] among them: left out of the pooling where the folder
  // leaves prompts out.
  int64_t prompt_tokens;
  int32_t without_normalization;  // not 0: vectors keep the length that the folder's last layer gives them
  // How many numbers of each vector are kept, the first ones, before it is normalised: D of out. 0: as the folder says;
  // −1: all of them.
  int32_t truncate_dim;
  int64_t reserved;  // 0
} headlight_embed_options;
// The same with options, which may be NULL.
HEADLIGHT_API headlight_status headlight_encoder_embed_texts_with(
    const headlight_encoder* encoder, headlight_engine* engine, const char* const* texts, const size_t* lengths,
    size_t count, const headlight_tensor* out, const headlight_embed_options* options, headlight_error* error);

// The numbers of a score of a pair of texts, one of most cross-encoders; 0 of a model without a head for
// classification.
HEADLIGHT_API int64_t headlight_encoder_score_width(const headlight_encoder* encoder);
// n pairs of texts, such as a query and a document each → out [n, score_width]: their scores by the head for
// classification of a cross-encoder, each through the function that the folder names (the logistic one for a single
// score). The longer text of a pair is cut, so that both have embed_max_length tokens at most.
// HEADLIGHT_INVALID_ARGUMENT for a model without such a head. first[n] may be the same text of all pairs.
HEADLIGHT_API headlight_status headlight_encoder_score(const headlight_encoder* encoder, headlight_engine* engine,
                                                       const char* const* first, const size_t* first_lengths,
                                                       const char* const* second, const size_t* second_lengths,
                                                       size_t count, const headlight_tensor* out,
                                                       headlight_error* error);

// The last hidden states of B texts.
typedef struct headlight_hidden_states headlight_hidden_states;
HEADLIGHT_API headlight_status headlight_encoder_encode_texts(const headlight_encoder* encoder,
                                                              headlight_engine* engine, const char* const* texts,
                                                              const size_t* lengths, size_t count,
                                                              headlight_hidden_states** states, headlight_error* error);
HEADLIGHT_API void headlight_hidden_states_destroy(headlight_hidden_states* states);
// [B, L, E], L the tokens of the longest text, zeros behind the end of a text; and the ids of one text. Their memory is
// that of `states`.
HEADLIGHT_API headlight_status headlight_hidden_states_tensor(const headlight_hidden_states* states,
                                                              headlight_tensor* hidden, headlight_error* error);
HEADLIGHT_API headlight_status headlight_hidden_states_ids(const headlight_hidden_states* states, size_t text,
                                                           headlight_indices* ids, headlight_error* error);

// The same for token ids: INT64 [B, L] as they are, special tokens included, → out [B, L, E] or [B, E]. mask: INT64
// [B, L] or not given; 0 says that a token is left out: nothing sees it, its row is zeros, others keep their positions.
HEADLIGHT_API headlight_status headlight_encoder_encode_ids(const headlight_encoder* encoder, headlight_engine* engine,
                                                            const headlight_tensor* ids, const headlight_tensor* mask,
                                                            const headlight_tensor* out, headlight_error* error);
HEADLIGHT_API headlight_status headlight_encoder_embed_ids(const headlight_encoder* encoder, headlight_engine* engine,
                                                           const headlight_tensor* ids, const headlight_tensor* mask,
                                                           const headlight_tensor* out, headlight_error* error);
// The same with options, which may be NULL.
HEADLIGHT_API headlight_status headlight_encoder_embed_ids_with(const headlight_encoder* encoder,
                                                                headlight_engine* engine, const headlight_tensor* ids,
                                                                const headlight_tensor* mask,
                                                                const headlight_tensor* out,
                                                                const headlight_embed_options* options,
                                                                headlight_error* error);

// out [H, L, L]: how much each token (row) of one sequence of L ids looks at each other in `layer`; rows sum to 1.
HEADLIGHT_API headlight_status headlight_encoder_probabilities(const headlight_encoder* encoder,
                                                               headlight_engine* engine, const headlight_indices* ids,
                                                               int64_t layer, const headlight_tensor* out,
                                                               headlight_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
