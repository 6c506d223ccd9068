// What help() says of load() and of a model's functions.
#pragma once

namespace headlight::python {

inline constexpr const char* kEmbedText =
    R"(Vectors of texts, [n, D] float32: pooled of the hidden states of each as the folder says (the mean, where it
says nothing), with a prompt in front, and divided by their length, so that a dot product of two is their
cosine. A str is one text.

batch_tokens: how many tokens go through the network at a time at most (a text is never cut for it); None
leaves it to the engine. A text's bits do not depend on it, nor on the texts beside.
progress: None shows a bar on a terminal or in a notebook when the work takes more than a second, False never,
True at once; a function is called with (texts done, of all).
prompt: what stands in front of each text; None is the one of `prompts` that prompt_name names, or else
default_prompt_name.
truncate_dim: how many numbers of each vector are kept, the first ones, before it is divided by its length; 0 is
all, None what the folder says.

Raises ValueError for a prompt_name that there is none of, a truncate_dim that is more than a vector has, and for
a model whose folder asks of vectors what is not built.)";

inline constexpr const char* kEmbedStreamText =
    R"(Vectors of any number of texts, such as a file's lines: an iterator of arrays [D], each with the bits of embed().

memory: how many bytes the texts that are read, what they become and what computing takes may hold together,
beside the model's weights. Texts are read a few at a time, when their vectors are asked for.
prompt_name, prompt and truncate_dim: as embed() takes them.

Raises ValueError for a memory in which no text has room, and on the way for a text that it has no room for.)";

inline constexpr const char* kEncodeText =
    R"(The last hidden states of texts: for each an array [tokens, E] of float32, [CLS] and [SEP] included. A str is
one text. batch_tokens and progress as embed() takes them.)";

inline constexpr const char* kEncodeIdsText =
    R"(The last hidden states of tokens: ids [B, L] of int64, as another tokenizer gives them, [CLS] and [SEP] included
-> [B, L, E] float32. mask [B, L] of int64 is 0 for tokens to leave out, which nothing sees and whose rows are zeros.

Raises ValueError for ids outside the vocabulary and more than max_length of them.)";

inline constexpr const char* kEmbedIdsText =
    R"(Vectors [B, D] of tokens, which encode_ids() takes, as embed() makes them of texts, without a prompt.

prompt_tokens: so many tokens at the beginning of each row are a prompt's, and no part of the pooling where the
folder says include_prompt: false. normalize: False leaves vectors as the folder's last layer gives them.
truncate_dim: as embed() takes it.)";

inline constexpr const char* kScoreText =
    R"(Scores of pairs of texts, such as a query and a document, by the head for classification of a cross-encoder:
[n] float32, or [n, labels] of a head with several. Scores go through the function that the folder names, or
else, where there is one for each pair, the logistic one. The longer text of a pair is cut.

Raises ValueError for a model without such a head.)";

inline constexpr const char* kLoadText =
    R"(A model from a published folder (config.json, model.safetensors, vocab.txt or tokenizer.json) or GGUF file.

precision: what products multiply in: 'float32', 'bfloat16', 'float16', 'int8' or 'int4'; 'fp32', 'bf16' and
'fp16' are the first three. Matrices in float32, bfloat16 or float16 are read where the file is mapped: nobody may
change it in place as long as the model lives. Raises FileError.)";

}  // namespace headlight::python
