// A published model: text in, hidden states or sentence vectors out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/layers/encoder.h"
#include "headlight/models/tokenizer.h"
#include "headlight/tensor.h"

namespace headlight::models {

// How the hidden states x_t of a text's tokens, t = 0 … n − 1, become one vector. Names as sentence-transformers has
// them.
enum class PoolingMode : std::uint8_t {
  cls,            // "cls": that of the first token
  max,            // "max": the largest of each column
  mean,           // "mean": Σ x_t / n
  mean_sqrt_len,  // "mean_sqrt_len_tokens": Σ x_t / √n
  weighted_mean,  // "weightedmean": Σ (t + 1) x_t / Σ (t + 1)
  last_token,     // "lasttoken": that of the last token
};
[[nodiscard]] HEADLIGHT_API std::string_view name(PoolingMode mode) noexcept;
[[nodiscard]] HEADLIGHT_API std::optional<PoolingMode> parse_pooling_mode(std::string_view name) noexcept;

// What is done to the vector behind the pooling: modules of sentence-transformers of those names.
struct VectorLayer {
  // v is the vector before it.
  enum class Kind : std::uint8_t {
    dense,       // f(weight · v + bias)
    layer_norm,  // (v − mean) / √(variance + epsilon) ∘ weight + bias
    normalize,   // v / max(‖v‖₂, 1e-12)
  };
  // f of a dense layer, element by element.
  enum class Function : std::uint8_t { identity, tanh, relu, gelu, silu, sigmoid };

  Kind kind = Kind::normalize;             // which of them
  std::int64_t width = 0;                  // of the vector behind it; 0: as before it
  std::vector<float> weight{};             // [width, width before] of dense, [width] of layer_norm
  std::vector<float> bias{};               // [width]; empty: none
  Function function = Function::identity;  // of dense
  float epsilon = 1e-5f;                   // of layer_norm
};

// What a model is made of.
struct ModelOptions {
  // The network. Of another one than BERT's its sizes alone, and in max_positions the tokens of the longest sequence.
  EncoderOptions encoder;
  TokenizerOptions tokenizer;  // how texts become tokens; not those of another tokenizer than BERT's
  // "bert", or what config.json has in its place.
  std::string model_type{"bert"};
  // Tokens after which a text is cut, [CLS] and [SEP] included: at most encoder.max_positions. 0: that many.
  std::int64_t max_length = 0;
  // The same for embed(), at most max_length. 0: that many. (max_seq_length of sentence_bert_config.json, or
  // model_max_length of tokenizer_config.json)
  std::int64_t embed_max_length = 0;
  // What the model's folder asks of vectors that is not built, as a sentence that names file and key: embed() and
  // save() refuse then. Empty: nothing.
  std::string unread_pooling{};
  // The poolings whose vectors, one beside the other, are that of a text; and what is done to it behind them.
  std::vector<PoolingMode> pooling{PoolingMode::mean};
  std::vector<VectorLayer> vector_layers{};
  // What embed() may put in front of texts, by name, and the name of what it does where nobody says otherwise; none
  // where that is empty.
  std::map<std::string, std::string, std::less<>> prompts{};
  std::string default_prompt{};
  bool pool_prompt = true;  // false: tokens of a prompt, [CLS] among them, are no part of the pooling (include_prompt)
  // The first so many numbers of a vector are what embed() gives: those of a model of Matryoshka embeddings stand for
  // the text alone (Kusupati et al. 2022). At most the vector's width; 0: all of them. (truncate_dim)
  std::int64_t truncate_dim = 0;
  // Keys of the folder's files that nobody here knows, "PATH: KEY", some hundred at most. They were passed over.
  std::vector<std::string> unknown_keys{};
};

// Two texts, as one sequence.
struct TextPair {
  std::string_view first;   // such as a question
  std::string_view second;  // such as a passage
};

// How a call of embed() is to be made.
struct EmbedOptions {
  // What stands in front of each text; unset: what prompt_name names. Of ids nothing does.
  std::optional<std::string> prompt{};
  // The name of one of ModelOptions::prompts; unset: default_prompt. Not read where `prompt` is set.
  std::optional<std::string> prompt_name{};
  // The first tokens of each row of ids that are a prompt's, [CLS] among them: left out of the pooling without
  // pool_prompt.
  std::int64_t prompt_tokens = 0;
  // Whether vectors are divided by their Euclidean length at last, whatever the folder says.
  bool normalize = true;
  // How many numbers of each vector are kept, the first ones, before it is divided; 0: all. Unset: what
  // ModelOptions::truncate_dim says.
  std::optional<std::int64_t> truncate_dim{};
};

// The last hidden states of B texts, L the tokens of the longest.
struct HiddenStates {
  // One row a text, without padding: ids[b].size() ≤ L.
  std::vector<std::vector<std::int64_t>> ids;
  // [B, L, E]; zeros behind the end of a text.
  Tensor<float, 3> hidden;
};

struct ScoreHead;
class TextNetwork;
class TextTokenizer;
class WorkspacePool;

// Tokenizer and network together. Computing is const and may be done by any number of threads at once.
//
// However many texts a call holds, a text's numbers have the same bits as alone, and at most a few thousand tokens are
// on their way through the network at a time, so memory beyond the results does not grow with the number of texts. A
// repeated call of the same size or a smaller one allocates its results alone, and nothing where they go into memory of
// the caller's; after reserve() the first one does not either.
class HEADLIGHT_API TextEncoder {
 public:
  // The parts, made elsewhere. Throws std::invalid_argument when their sizes or the lengths do not fit together.
  TextEncoder(const ModelOptions& options, Tokenizer tokenizer, headlight::Encoder network);
  // Internal: of any kind; options.encoder has the sizes of a network that is not BERT's.
  TextEncoder(const ModelOptions& options, std::unique_ptr<TextTokenizer> tokenizer,
              std::unique_ptr<TextNetwork> network, std::unique_ptr<ScoreHead> head);
  TextEncoder(TextEncoder&&) noexcept;
  TextEncoder& operator=(TextEncoder&&) noexcept;
  ~TextEncoder();

  // Texts in UTF-8 → hidden states. Throws std::invalid_argument when one is not, naming its number and the byte.
  [[nodiscard]] HiddenStates encode(Engine& engine, std::span<const std::string> texts) const;

  // Token ids [B, L] (special tokens included, as they are) → hidden states [B, L, E]. `mask` [B, L], where given, is 0
  // for tokens to leave out: nothing sees them, their rows are zeros, the others keep their positions. Throws
  // std::invalid_argument for ids outside the vocabulary, more than max_positions columns, another shape of the mask.
  [[nodiscard]] Tensor<float, 3> encode(Engine& engine, View<const std::int64_t, 2> ids,
                                        View<const std::int64_t, 2> mask = {}) const;

  // [B, D], D = embed_width(): a vector of each text, pooled of its hidden states as options() say (the mean, unless
  // the folder says otherwise), with the default prompt in front of it, and divided by its Euclidean length, so that a
  // dot product of two is their cosine similarity. (Reimers & Gurevych 2019) Throws std::invalid_argument for a model
  // whose folder asks for what is not built.
  [[nodiscard]] Tensor<float, 2> embed(Engine& engine, std::span<const std::string> texts) const;
  [[nodiscard]] Tensor<float, 2> embed(Engine& engine, View<const std::int64_t, 2> ids,
                                       View<const std::int64_t, 2> mask = {}) const;

  // The same into memory of the caller's, in which the numbers of a row are side by side, and rows and matrices apart
  // from each other. Throw before anything is written, but where memory ends on the way; see Layer.
  void encode(Engine& engine, View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask,
              View<float, 3> out) const;
  void embed(Engine& engine, std::span<const std::string> texts, View<float, 2> out) const;
  void embed(Engine& engine, View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask,
             View<float, 2> out) const;
  // With options, D = embed_width(options). Throw std::invalid_argument also for a prompt that is not UTF-8 or that
  // there is none of, for negative prompt_tokens, and for a truncate_dim that is negative or more than a vector has.
  void embed(Engine& engine, std::span<const std::string> texts, View<float, 2> out, const EmbedOptions& options) const;
  void embed(Engine& engine, View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask, View<float, 2> out,
             const EmbedOptions& options) const;

  // What embed() with these options puts in front of each text; "": nothing. Throws std::invalid_argument for a name
  // that no prompt has.
  [[nodiscard]] std::string prompt(const EmbedOptions& options = {}) const;

  // The scores of pairs of texts, such as a query and a document, by the head for classification of a cross-encoder:
  // [n, score_width()], each through the function that the folder names (the logistic one for a single score). The
  // longer text of a pair is cut, so that both have embed_max_length tokens at most. Throws std::invalid_argument for a
  // model without such a head, and for what is not UTF-8.
  [[nodiscard]] Tensor<float, 2> score(Engine& engine, std::span<const TextPair> pairs) const;
  // The same into memory of the caller's.
  void score(Engine& engine, std::span<const TextPair> pairs, View<float, 2> out) const;
  // The scores of a pair; 0 without a head.
  [[nodiscard]] std::int64_t score_width() const noexcept;

  // D, the numbers of a vector of embed(): E, unless poolings, a dense layer or truncate_dim make it another.
  [[nodiscard]] std::int64_t embed_width() const noexcept;
  // With these options. Throws std::invalid_argument for a truncate_dim that is negative or more than a vector has.
  [[nodiscard]] std::int64_t embed_width(const EmbedOptions& options) const;

  // Takes now what calls with at most so many tokens (of all their texts, [CLS] and [SEP] included) will work in; what
  // goes through the network at a time is bounded, and so is this. For one call at a time on that engine: others at the
  // same time take memory of their own, which is kept too. Throws OutOfMemory.
  void reserve(Engine& engine, std::int64_t tokens) const;

  // What a call works in with one text of at most so many tokens, which it takes as reserve() does, and what it takes
  // more with each further one, so long as few thousand tokens are all of them; and the tokenizer of a long text where
  // no token must end, for each byte of it. Beside the model's weights, the texts and the results. Throws as reserve().
  struct CallBytes {
    std::int64_t one_text = 0;      // bytes
    std::int64_t further_text = 0;  // bytes
    std::int64_t text_byte = 0;     // bytes
  };
  [[nodiscard]] CallBytes call_bytes(Engine& engine, std::int64_t tokens) const;

  // Internal: texts wherever they lie.
  struct Texts {
    std::size_t count = 0;
    const void* list = nullptr;
    std::string_view (*at)(const void* list, std::size_t number) = nullptr;
  };
  [[nodiscard]] HiddenStates encode(Engine& engine, const Texts& texts) const;
  void embed(Engine& engine, const Texts& texts, View<float, 2> out) const;
  void embed(Engine& engine, const Texts& texts, View<float, 2> out, const EmbedOptions& options) const;

  // [H, L, L]: how much each token (row) of one sequence looks at each other in layer 0 … layers − 1; rows sum to 1.
  [[nodiscard]] Tensor<float, 3> probabilities(Engine& engine, std::span<const std::int64_t> ids,
                                               std::int64_t layer) const;
  void probabilities(Engine& engine, std::span<const std::int64_t> ids, std::int64_t layer, View<float, 3> out) const;

  // [N], where the network has the tokens of sequences, as EncoderInput wants them for layer(): from 0 on in each, or
  // in families that begin elsewhere (RoBERTa's) their rows of the table of positions. `offsets` are those of
  // EncoderInput. Throws std::invalid_argument for others.
  [[nodiscard]] std::vector<std::int64_t> positions(std::span<const std::int64_t> ids,
                                                    std::span<const std::int64_t> offsets) const;

  // The ids of a text's tokens with those around it, at most max_length; 0: options().max_length. Throws
  // std::invalid_argument for what is not UTF-8.
  [[nodiscard]] std::vector<std::int64_t> tokenize(std::string_view text, std::int64_t max_length = 0) const;
  // The text of ids; BERT's tokens with spaces between words. Throws std::invalid_argument for an id that no token has.
  [[nodiscard]] std::string decode(std::span<const std::int64_t> ids) const;
  // The token of an id as its file spells it, with a zero byte behind it, as long as this lives; nothing for an id that
  // no token has. And the other way. One more than the largest id.
  [[nodiscard]] std::optional<std::string_view> token(std::int64_t id) const noexcept;
  [[nodiscard]] std::optional<std::int64_t> token_id(std::string_view token) const;
  [[nodiscard]] std::int64_t token_count() const noexcept;

  // Writes a folder that load() and other tools read, of any family: config.json, model.safetensors,
  // sentence_bert_config.json; of BERT's tokenizer vocab.txt and tokenizer_config.json, and tokenizer.json where these
  // do not say all of it; of another one tokenizer.json and what stood beside it; where vectors are more than the mean,
  // or there are prompts, modules.json, the files of the modules and config_sentence_transformers.json. Such files of
  // an earlier model that are not written are removed. Makes the folder; each file appears whole or not at all.
  //
  // config.json and the names of tensors are those of the folder that the model came from, those of the head of scores
  // among them; what load() left aside there (poolers, heads of other tasks) is not in it. Of a GGUF file they are
  // those of its family.
  //
  // Without a type, every matrix and table is as it was loaded: of 16 bits, of int8 or int4 byte for byte, and of
  // float32 otherwise, which blocks of GGUF become, too. `type` is that of all of them: float32, or rounded as
  // write_safetensors() does, bfloat16, float16 (which other tools read too), int8 or int4 (which load() reads). A
  // model loaded from it again with that type as its precision has the panels of this one at that precision, but for
  // the scales of int8 (write_safetensors()) and the tables of embeddings, which are rounded too. Throws FileError;
  // std::invalid_argument for another type, and where load() would read another model than this one, before anything is
  // written: a token that does not fit into a line, an encoder made elsewhere that normalises before its halves,
  // vectors that are not built, a GGUF file whose converter changed tensors (Llama's and Gemma's).
  void save(const std::string& folder) const;
  void save(const std::string& folder, NumberType type) const;

  // With every length set.
  [[nodiscard]] const ModelOptions& options() const noexcept { return options_; }
  // The network as a layer, whichever it is: its parameters, its precision.
  [[nodiscard]] const Layer& layer() const noexcept;
  [[nodiscard]] Layer& layer() noexcept;
  // Whether there is a network(): BERT's, or one like it, such as RoBERTa's; and whether there is a tokenizer().
  [[nodiscard]] bool has_network() const noexcept;
  [[nodiscard]] bool has_tokenizer() const noexcept;
  // Throw std::invalid_argument where there is none.
  [[nodiscard]] const Tokenizer& tokenizer() const;
  [[nodiscard]] const headlight::Encoder& network() const;
  [[nodiscard]] headlight::Encoder& network();

 private:
  void check_pooling() const;
  void check_can_be_saved() const;
  void save_as(const std::string& folder, std::optional<NumberType> type) const;
  [[nodiscard]] std::string_view prompt_of(const EmbedOptions& options) const;
  // Calls take(number, text); an error names the number.
  template <class Function>
  void for_each_text(const Texts& texts, Function take) const;

  ModelOptions options_;
  std::unique_ptr<TextTokenizer> tokenizer_;
  std::unique_ptr<TextNetwork> network_;
  std::unique_ptr<ScoreHead> head_;  // null without one
  std::shared_ptr<WorkspacePool> workspaces_;
};

// How a model is to compute.
struct LoadModelOptions {
  // What products multiply in: Layer::set_precision() of the network. The types of the file are another matter: its
  // numbers of 16 bits are widened, and those of bfloat16 are rounded to themselves again.
  NumberType precision = NumberType::float32;
  // In place of the poolings that the folder asks for.
  std::optional<std::vector<PoolingMode>> pooling{};
};

// Reads a published model: a GGUF file (the path of one, or of the first of several of one model, or a folder with them
// and no config.json; docs/models.md lists its architectures), or a folder: config.json, model.safetensors, vocab.txt
// or tokenizer.json, and where they are there the other files of its tokenizer and of sentence-transformers.
// docs/model-folders.md lists the families by their model_type, and every key. What a file says is done, or refused; a
// key that nobody knows is in ModelOptions::unknown_keys. Tensor names with or without their family's prefix ("bert."),
// LayerNorm's weight and bias also as gamma and beta; the pooler, task heads and position ids are left aside. Whatever
// the files say, nothing is allocated that the weight file does not back. Throws FileError naming the file and the key,
// tensor or line: files that are missing or malformed, a family, activation, kind of position or tokenizer that is not
// known, weights that disagree with the configuration, a vocabulary larger than its table. What only vectors need and
// is not built is refused by embed().
//
// Matrices in float32, bfloat16 and float16 are read where the file is mapped, as long as the model lives: the file may
// be removed or replaced, but nobody may change or shorten it in place, for reading a page that is gone ends the
// process (SIGBUS). So it is with a tokenizer.json of another kind than BERT's, which save() writes again. A call of
// network().parameters() copies them all for as long as the model lives. Whatever the
// precision, save() writes the numbers of the file.
[[nodiscard]] HEADLIGHT_API TextEncoder load(const std::string& folder, const LoadModelOptions& options = {});

// A file of such a folder that is in memory already: a program's own model, somebody's archive.
struct FileInMemory {
  std::string_view name;             // "config.json"
  std::span<const std::byte> bytes;  // the whole file
};
// The same from memory, which need not outlive the call (one file whose name ends in .gguf is such a model); `name`
// stands for the folder in errors.
[[nodiscard]] HEADLIGHT_API TextEncoder load(std::string_view name, std::span<const FileInMemory> files,
                                             const LoadModelOptions& options = {});

// A model of that shape with weights drawn from the seed, the same on every machine. options.encoder.vocabulary = 0: as
// many as the tokenizer has.
[[nodiscard]] HEADLIGHT_API TextEncoder make_random(const ModelOptions& options, Tokenizer tokenizer,
                                                    std::uint64_t seed);

}  // namespace headlight::models
