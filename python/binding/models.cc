#include "models.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.h"
#include "engine.h"
#include "headlight/models/errors.h"
#include "headlight/models/text_encoder.h"
#include "interruptible.h"
#include "models_text.h"
#include "progress.h"
#include "results.h"
#include "text_slices.h"
#include "values.h"
#include "vector_stream.h"

namespace headlight::python {
namespace {

// An encoder that knows where it came from.
class Encoder : public models::TextEncoder {
 public:
  Encoder(models::TextEncoder encoder, std::filesystem::path folder)
      : models::TextEncoder(std::move(encoder)), folder_(std::move(folder)) {}
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::filesystem::path folder_;
};

constexpr const char* kLoad = "load";
constexpr const char* kEmbed = "embed";
constexpr const char* kEmbedStream = "embed_stream";
constexpr const char* kEncode = "encode";
constexpr const char* kEncodeIds = "encode_ids";
constexpr const char* kScore = "score";
constexpr const char* kEmbedIds = "embed_ids";
constexpr EngineWord kTruncateDim{"embed: truncate_dim", "truncate_dim"};
constexpr std::array kWordsOfTexts{EngineWord{"embed: prompt_name", "prompt_name"}, kTruncateDim};
constexpr std::array kWordsOfPairs{EngineWord{"score: pair", "pairs"}};
constexpr std::array kWordsOfIds{EngineWord{"embed: prompt_tokens", "prompt_tokens"}, EngineWord{"ids have", "ids has"},
                                 EngineWord{"the id at", "ids at"}, EngineWord{"the attention mask", "mask"},
                                 kTruncateDim};

// D of a call, whose options get its truncate_dim.
std::int64_t width_of(const char* operation, const Encoder& model, nb::handle truncate_dim,
                      models::EmbedOptions& options) {
  if (!truncate_dim.is_none()) options.truncate_dim = integer(operation, "truncate_dim", truncate_dim);
  std::int64_t width = 0;
  with_names_of_python(operation, std::array{kTruncateDim}, [&] { width = model.embed_width(options); });
  return width;
}

nb::object embed(const Encoder& model, nb::handle texts, nb::handle batch_tokens, nb::handle progress,
                 nb::handle engine, nb::handle prompt_name, nb::handle prompt, nb::handle truncate_dim) {
  Engine& on = engine_of(kEmbed, engine);
  models::EmbedOptions options;
  if (!prompt.is_none()) options.prompt = text(kEmbed, "prompt", prompt);
  if (!prompt_name.is_none()) options.prompt_name = text(kEmbed, "prompt_name", prompt_name);
  with_names_of_python(kEmbed, kWordsOfTexts, [&] { options.prompt = model.prompt(options); });
  const std::int64_t width = width_of(kEmbed, model, truncate_dim, options);
  const std::vector<std::string> list = texts_of(kEmbed, texts);
  const nb::object result = new_array(std::array{static_cast<std::int64_t>(list.size()), width});
  const Array array(kEmbed, "out", result, Array::Access::write);
  const View<float, 2> out = array.floats<2>();
  const TextSlices slices(kEmbed, model, list, *options.prompt, model.options().embed_max_length, batch_tokens);
  for_texts(slices, Progress(kEmbed, progress, list.size()), [&](std::size_t first, std::span<const std::string> some) {
    View<float, 2> rows = out;
    rows.data += static_cast<std::int64_t>(first) * rows.strides[0];
    rows.shape[0] = static_cast<std::int64_t>(some.size());
    model.embed(on, some, rows, options);
  });
  return result;
}

VectorStream* embed_stream(nb::object model, nb::handle texts, nb::handle memory, nb::handle engine,
                           nb::handle prompt_name, nb::handle prompt, nb::handle truncate_dim) {
  Engine& on = engine_of(kEmbedStream, engine);
  const auto& encoder = nb::cast<const Encoder&>(model);
  models::EmbedOptions options;
  if (!prompt.is_none()) options.prompt = text(kEmbedStream, "prompt", prompt);
  if (!prompt_name.is_none()) options.prompt_name = text(kEmbedStream, "prompt_name", prompt_name);
  with_names_of_python(kEmbedStream, kWordsOfTexts, [&] { options.prompt = encoder.prompt(options); });
  static_cast<void>(width_of(kEmbedStream, encoder, truncate_dim, options));
  const std::int64_t bytes = integer(kEmbedStream, "memory", memory);
  return new VectorStream(encoder, on, texts, std::move(options), bytes, nb::make_tuple(model, engine));
}

nb::object encode(const Encoder& model, nb::handle texts, nb::handle batch_tokens, nb::handle progress,
                  nb::handle engine) {
  Engine& on = engine_of(kEncode, engine);
  const std::vector<std::string> list = texts_of(kEncode, texts);
  const std::int64_t width = model.options().encoder.width;
  const TextSlices slices(kEncode, model, list, "", model.options().max_length, batch_tokens);
  nb::list results;
  for_texts(slices, Progress(kEncode, progress, list.size()), [&](std::size_t, std::span<const std::string> some) {
    const models::HiddenStates states = model.encode(on, some);
    const nb::gil_scoped_acquire held;
    for (std::size_t number = 0; number < states.ids.size(); ++number) {
      const auto tokens = static_cast<std::int64_t>(states.ids[number].size());
      const nb::object result = new_array(std::array{tokens, width});
      const Array array(kEncode, "out", result, Array::Access::write);
      const float* const from = &states.hidden(static_cast<std::int64_t>(number), 0, 0);
      std::copy_n(from, tokens * width, array.floats<2>().data);
      results.append(result);
    }
  });
  return results;
}

// Tokens as they are, [B, L].
template <int Rank>
nb::object of_ids(const Encoder& model, nb::handle given, nb::handle given_mask, nb::handle out, nb::handle engine,
                  std::int64_t width, const models::EmbedOptions& options) {
  constexpr const char* operation = Rank == 3 ? kEncodeIds : kEmbedIds;
  using Ids = View<const std::int64_t, 2>;
  const Array array(operation, "ids", given);
  Engine& on = engine_of(operation, engine);
  const Ids ids = array.integers<std::int64_t, 2>();
  std::optional<Array> held;
  Ids mask;
  if (!given_mask.is_none()) mask = held.emplace(operation, "mask", given_mask).integers<std::int64_t, 2>();
  std::array<std::int64_t, Rank> shape{ids.shape[0], ids.shape[1]};
  shape.back() = width;
  const Result result(operation, "out", out, array, shape);
  const View<float, Rank> written = result.array().floats<Rank>();

  with_names_of_python(operation, kWordsOfIds, [&] {
    compute([&] {
      if constexpr (Rank == 3) {
        model.encode(on, ids, mask, written);
      } else {
        model.embed(on, ids, mask, written, options);
      }
    });
  });
  return result.object();
}

nb::object encode_ids(const Encoder& model, nb::handle ids, nb::handle mask, nb::handle out, nb::handle engine) {
  return of_ids<3>(model, ids, mask, out, engine, model.options().encoder.width, {});
}

nb::object embed_ids(const Encoder& model, nb::handle ids, nb::handle mask, nb::handle prompt_tokens,
                     nb::handle normalize, nb::handle truncate_dim, nb::handle out, nb::handle engine) {
  models::EmbedOptions options;
  options.prompt_tokens = integer(kEmbedIds, "prompt_tokens", prompt_tokens);
  options.normalize = truth(kEmbedIds, "normalize", normalize);
  const std::int64_t width = width_of(kEmbedIds, model, truncate_dim, options);
  return of_ids<2>(model, ids, mask, out, engine, width, options);
}

// The pairs of a list, whose texts live as long as `held`.
std::vector<models::TextPair> pairs_of(nb::handle given, std::vector<std::string>& held) {
  for (const nb::handle pair : nb::iter(given)) {
    if (nb::isinstance<nb::str>(pair) || !nb::isinstance<nb::sequence>(pair) || nb::len(pair) != 2) {
      refuse_type(kScore, "pairs has " + kind_of(pair) + ", expected pairs of texts");
    }
    for (const std::size_t n : {0, 1}) held.emplace_back(text(kScore, "pairs", nb::object(pair[n])));
  }
  std::vector<models::TextPair> pairs;
  for (std::size_t n = 0; n + 1 < held.size(); n += 2) pairs.push_back({held[n], held[n + 1]});
  return pairs;
}

nb::object score(const Encoder& model, nb::handle given, nb::handle engine) {
  Engine& on = engine_of(kScore, engine);
  std::vector<std::string> held;
  const std::vector<models::TextPair> pairs = pairs_of(given, held);
  const auto count = static_cast<std::int64_t>(pairs.size());
  const std::int64_t width = std::max<std::int64_t>(model.score_width(), 1);
  const nb::object result = width == 1 ? new_array(std::array{count}) : new_array(std::array{count, width});
  const Array array(kScore, "out", result, Array::Access::write);
  const View<float, 2> out = width == 1 ? View<float, 2>(array.floats<1>().data, {count, 1}) : array.floats<2>();
  with_names_of_python(kScore, kWordsOfPairs, [&] { compute([&] { model.score(on, pairs, out); }); });
  return result;
}

nb::list tokenize(const Encoder& model, nb::handle given) {
  const std::string_view words = text("tokenize", "text", given);
  std::vector<std::int64_t> found;
  {
    const nb::gil_scoped_release released;  // `given` keeps the words, for as long as its caller waits
    found = model.tokenize(words);
  }
  nb::list ids;
  for (const std::int64_t id : found) ids.append(id);
  return ids;
}

nb::list list_of(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(nb::steal(PyUnicode_DecodeFSDefault(text.c_str())));
  return list;
}

nb::dict prompts_of(const Encoder& model) {
  nb::dict prompts;
  for (const auto& [name, text] : model.options().prompts) prompts[nb::str(name.data(), name.size())] = text;
  return prompts;
}

nb::object default_prompt_of(const Encoder& model) {
  const std::string& name = model.options().default_prompt;
  if (name.empty()) return nb::none();
  return nb::str(name.data(), name.size());
}

std::string decode(const Encoder& model, nb::handle given) {
  const std::vector<std::int64_t> ids = integers("decode", "ids", given);
  for (const std::int64_t id : ids) {
    if (!model.token(id)) {
      refuse_value("decode",
                   "ids has " + std::to_string(id) + ", expected 0 to " + std::to_string(model.token_count() - 1));
    }
  }
  return model.decode(ids);
}

// What looks like a name on a hub most often is one.
[[noreturn]] void refuse_folder(const std::string& name) {
  throw models::FileError(
      name,
      "is not there, expected a model's folder (config.json, model.safetensors, and vocab.txt or tokenizer.json) or a "
      ".gguf file. Nothing is downloaded: huggingface_hub.snapshot_download(name) fetches such "
      "a folder and returns its path, git clone makes one, and so does save_pretrained(folder) of a "
      "model and its tokenizer in Transformers");
}

Encoder* load(nb::handle folder, nb::handle precision) {
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(folder.ptr(), &encoded) == 0) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    refuse_type(kLoad, "folder is " + kind_of(folder) + ", expected a str or a path");
  }
  const auto path = nb::steal<nb::bytes>(encoded);
  const std::string name(path.c_str(), path.size());
  const NumberType type = precision_of(kLoad, precision);
  std::error_code error;
  if (!name.ends_with(".gguf") && !std::filesystem::exists(name, error)) refuse_folder(name);
  const nb::gil_scoped_release released;
  return new Encoder(models::load(name, {.precision = type}), std::filesystem::absolute(name));
}

const EncoderOptions& network_of(const Encoder& model) { return model.options().encoder; }

constexpr const char* kEmbedSignature =
    "def embed(self, texts: str | Iterable[str], batch_tokens: int | None = None, progress: Progress = None, "
    "engine: Engine | None = None, *, prompt_name: str | None = None, prompt: str | None = None, "
    "truncate_dim: int | None = None) -> Floats";
constexpr const char* kEmbedStreamSignature =
    "def embed_stream(self, texts: str | Iterable[str], memory: int = 268435456, engine: Engine | None = None, *, "
    "prompt_name: str | None = None, prompt: str | None = None, truncate_dim: int | None = None) -> VectorStream";
constexpr const char* kEncodeSignature =
    "def encode(self, texts: str | Iterable[str], batch_tokens: int | None = None, progress: Progress = None, "
    "engine: Engine | None = None) -> list[Floats]";
constexpr const char* kEncodeIdsSignature =
    "def encode_ids(self, ids: A, mask: Array | None = None, *, out: Array | None = None, "
    "engine: Engine | None = None) -> A";
constexpr const char* kEmbedIdsSignature =
    "def embed_ids(self, ids: A, mask: Array | None = None, *, prompt_tokens: int = 0, normalize: bool = True, "
    "truncate_dim: int | None = None, out: Array | None = None, engine: Engine | None = None) -> A";
constexpr const char* kScoreSignature =
    "def score(self, pairs: Iterable[Sequence[str]], engine: Engine | None = None) -> Floats";
constexpr const char* kLoadSignature =
    "def load(folder: str | os.PathLike[str], precision: PrecisionLike = 'float32') -> Encoder";

void define_functions(nb::class_<Encoder>& type) {
  define(type, "embed", kEmbedSignature, &embed, kEmbedText, argument("texts"), argument("batch_tokens") = nb::none(),
         argument("progress") = nb::none(), argument("engine") = nb::none(), nb::kw_only(),
         argument("prompt_name") = nb::none(), argument("prompt") = nb::none(), argument("truncate_dim") = nb::none());
  define(type, "embed_stream", kEmbedStreamSignature, &embed_stream, kEmbedStreamText, argument("texts"),
         argument("memory") = std::int64_t{1} << 28, argument("engine") = nb::none(), nb::kw_only(),
         argument("prompt_name") = nb::none(), argument("prompt") = nb::none(), argument("truncate_dim") = nb::none());
  define(type, "encode", kEncodeSignature, &encode, kEncodeText, argument("texts"),
         argument("batch_tokens") = nb::none(), argument("progress") = nb::none(), argument("engine") = nb::none());
  define(type, "encode_ids", kEncodeIdsSignature, &encode_ids, kEncodeIdsText, argument("ids"),
         argument("mask") = nb::none(), nb::kw_only(), argument("out") = nb::none(), argument("engine") = nb::none());
  define(type, "embed_ids", kEmbedIdsSignature, &embed_ids, kEmbedIdsText, argument("ids"),
         argument("mask") = nb::none(), nb::kw_only(), argument("prompt_tokens") = 0, argument("normalize") = true,
         argument("truncate_dim") = nb::none(), argument("out") = nb::none(), argument("engine") = nb::none());
  define(type, "score", kScoreSignature, &score, kScoreText, argument("pairs"), argument("engine") = nb::none());
  define(type, "tokenize", "def tokenize(self, text: str) -> list[int]", &tokenize,
         "The ids of a text's tokens, [CLS] and [SEP] included, cut at max_length.", argument("text"));
  define(type, "decode", "def decode(self, ids: Integers) -> str", &decode,
         "The tokens of ids as text: pieces of a word together, words with spaces between, special tokens as they "
         "are.",
         argument("ids"));
}

void define_properties(nb::class_<Encoder>& type) {
  type.def_prop_ro(
          "width", [](const Encoder& model) { return network_of(model).width; }, "E, the numbers of a hidden state.")
      .def_prop_ro(
          "embed_width", [](const Encoder& model) { return model.embed_width(); },
          "D, the numbers of a vector where no truncate_dim is given.")
      .def_prop_ro(
          "layers", [](const Encoder& model) { return network_of(model).layers; }, "Layers of the network.")
      .def_prop_ro(
          "heads", [](const Encoder& model) { return network_of(model).heads; }, "Heads of each layer.")
      .def_prop_ro(
          "vocabulary", [](const Encoder& model) { return model.token_count(); }, "Tokens that the tokenizer knows.")
      .def_prop_ro(
          "max_length", [](const Encoder& model) { return model.options().max_length; },
          "Tokens after which a text is cut, [CLS] and [SEP] included.")
      .def_prop_ro(
          "embed_max_length", [](const Encoder& model) { return model.options().embed_max_length; },
          "The same where a text becomes a vector: max_seq_length of the folder, or model_max_length.")
      .def_prop_ro(
          "prompts", [](const Encoder& model) { return prompts_of(model); },
          nb::sig("def prompts(self) -> dict[str, str]"),
          "What may stand in front of texts, by name: what the folder says, and an empty \"query\" and \"document\".")
      .def_prop_ro(
          "default_prompt_name", [](const Encoder& model) { return default_prompt_of(model); },
          nb::sig("def default_prompt_name(self) -> str | None"), "The prompt of texts that are given none.")
      .def_prop_ro(
          "unknown_keys", [](const Encoder& model) { return list_of(model.options().unknown_keys); },
          nb::sig("def unknown_keys(self) -> list[str]"),
          "Keys of the folder's files that nobody here knows, and that were passed over.")
      .def_prop_ro(
          "precision", [](const Encoder& model) { return name(model.layer().precision()); },
          "What products multiply in: 'float32', 'bfloat16', 'float16', 'int8' or 'int4'.")
      .def_prop_ro(
          "folder", [](const Encoder& model) { return nb::steal(PyUnicode_DecodeFSDefault(model.folder().c_str())); },
          nb::sig("def folder(self) -> str"), "The folder that it was loaded from, absolute.")
      .def("__repr__", [](const Encoder& model) {
        const EncoderOptions& network = network_of(model);
        return "<headlight.Encoder of " + std::to_string(network.layers) + " layers, " + std::to_string(network.heads) +
               " heads, width " + std::to_string(network.width) + ", in " +
               std::string(name(model.layer().precision())) + ">";
      });
}

}  // namespace

void define_models(nb::module_& module) {
  define_vector_stream(module);
  nb::class_<Encoder> type(module, "Encoder",
                           "A published model: text in, hidden states, vectors or scores out. load() makes it.");
  define_functions(type);
  define_properties(type);
  define(module, "load", kLoadSignature, &load, kLoadText, argument("folder"), argument("precision") = "float32");
}

}  // namespace headlight::python
