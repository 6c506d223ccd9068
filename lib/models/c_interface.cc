// The C interface of the models library; lib/c holds that of the engine, and what both share.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "c/handles.h"
#include "headlight/models/errors.h"
#include "headlight/models/headlight_models.h"
#include "headlight/models/text_encoder.h"
#include "models/describe.h"

struct headlight_encoder {
  explicit headlight_encoder(headlight::models::TextEncoder encoder_)
      : encoder(std::move(encoder_)), network(encoder.layer()) {}
  headlight::models::TextEncoder encoder;
  headlight_layer network;
};

struct headlight_hidden_states {
  headlight::models::HiddenStates states;
};

namespace headlight::models {
namespace {

using c::refuse;
using c::required;

constexpr const char* kName = "encoder";

// c::call(), which knows nothing of files.
template <class Body>
headlight_status call(headlight_error* error, const Body& body) noexcept {
  return c::call(error, [&] {
    try {
      body();
    } catch (const FileError& failure) {
      throw c::Failure(HEADLIGHT_FILE_ERROR, failure.what());
    }
  });
}

const TextEncoder& encoder_of(const headlight_encoder* encoder) { return required(kName, "encoder", encoder).encoder; }

std::int64_t size_of(const headlight_encoder* encoder, std::int64_t EncoderOptions::*member) {
  return encoder == nullptr ? 0 : encoder->encoder.options().encoder.*member;
}

std::string_view text_of(const char& text, const std::size_t* length) {
  return length == nullptr ? std::string_view(&text) : std::string_view(&text, *length);
}

// Texts as C has them.
struct CTexts {
  [[nodiscard]] TextEncoder::Texts view() const {
    return {count, this, [](const void* list, std::size_t number) {
              return static_cast<const CTexts*>(list)->text("texts", number);
            }};
  }
  // `name` is theirs in errors.
  [[nodiscard]] std::string_view text(const char* name, std::size_t number) const {
    return text_of(c::entry(kName, name, texts, number), lengths == nullptr ? nullptr : lengths + number);
  }

  const char* const* texts;
  const std::size_t* lengths;
  std::size_t count;
};

EmbedOptions embed_options(const headlight_embed_options* options) {
  const c::Fields fields(kName, "options", options, HEADLIGHT_C_FIELDS(headlight_embed_options));
  EmbedOptions read;
  if (fields->prompt != nullptr) read.prompt = text_of(*fields->prompt, fields->prompt_length);
  if (fields->prompt_name != nullptr) read.prompt_name = fields->prompt_name;
  read.prompt_tokens = fields->prompt_tokens;
  read.normalize = fields->without_normalization == 0;
  if (fields->truncate_dim != 0) read.truncate_dim = fields->truncate_dim == -1 ? 0 : fields->truncate_dim;
  return read;
}

}  // namespace
}  // namespace headlight::models

using namespace headlight;
using namespace headlight::models;

headlight_status headlight_encoder_load(const char* folder, headlight_encoder** encoder, headlight_error* error) {
  return headlight_encoder_load_with(folder, nullptr, encoder, error);
}

headlight_status headlight_encoder_load_with(const char* folder, const headlight_load_model_options* options,
                                             headlight_encoder** encoder, headlight_error* error) {
  return models::call(error, [&] {
    required(kName, "the place for the result", encoder) = nullptr;
    const c::Fields fields(kName, "options", options, HEADLIGHT_C_FIELDS(headlight_load_model_options));
    const NumberType precision = c::number_type(kName, "precision", fields->precision);
    *encoder = new headlight_encoder(load(&required(kName, "folder", folder), {.precision = precision}));
  });
}

headlight_status headlight_encoder_save(const headlight_encoder* encoder, const char* folder, headlight_error* error) {
  return headlight_encoder_save_with(encoder, folder, nullptr, error);
}

headlight_status headlight_encoder_save_with(const headlight_encoder* encoder, const char* folder,
                                             const headlight_save_model_options* options, headlight_error* error) {
  return models::call(error, [&] {
    const auto& saved = encoder_of(encoder);
    const std::string path = &required(kName, "folder", folder);
    const c::Fields fields(kName, "options", options, HEADLIGHT_C_FIELDS(headlight_save_model_options));
    if (options == nullptr) return saved.save(path);
    saved.save(path, c::number_type(kName, "type", fields->type));
  });
}

void headlight_encoder_destroy(headlight_encoder* encoder) { delete encoder; }

headlight_layer* headlight_encoder_network(headlight_encoder* encoder) {
  return encoder == nullptr ? nullptr : &encoder->network;
}

int64_t headlight_encoder_embed_width(const headlight_encoder* encoder) {
  return encoder == nullptr ? 0 : encoder->encoder.embed_width();
}

int64_t headlight_encoder_width(const headlight_encoder* encoder) { return size_of(encoder, &EncoderOptions::width); }

int64_t headlight_encoder_layers(const headlight_encoder* encoder) { return size_of(encoder, &EncoderOptions::layers); }

int64_t headlight_encoder_heads(const headlight_encoder* encoder) { return size_of(encoder, &EncoderOptions::heads); }

int64_t headlight_encoder_vocabulary(const headlight_encoder* encoder) {
  return size_of(encoder, &EncoderOptions::vocabulary);
}

int64_t headlight_encoder_max_length(const headlight_encoder* encoder) {
  return encoder == nullptr ? 0 : encoder->encoder.options().max_length;
}

int64_t headlight_encoder_embed_max_length(const headlight_encoder* encoder) {
  return encoder == nullptr ? 0 : encoder->encoder.options().embed_max_length;
}

headlight_status headlight_encoder_tokenize(const headlight_encoder* encoder, const char* text, const size_t* length,
                                            int64_t max_length, int64_t* ids, size_t capacity, size_t* count,
                                            headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    const std::vector<std::int64_t> found = model.tokenize(text_of(required(kName, "text", text), length), max_length);
    required(kName, "count", count) = found.size();
    const std::size_t room = std::min(capacity, found.size());
    if (room > 0) std::copy_n(found.begin(), room, &required(kName, "ids", ids));
  });
}

headlight_status headlight_encoder_token(const headlight_encoder* encoder, int64_t id, const char** token,
                                         headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    const auto found = model.token(id);
    if (!found) {
      refuse(kName, "the id is " + std::to_string(id) + ", expected one of a token, 0 to " +
                        std::to_string(model.token_count() - 1));
    }
    required(kName, "token", token) = found->data();
  });
}

headlight_status headlight_encoder_token_id(const headlight_encoder* encoder, const char* token, int64_t* id,
                                            headlight_error* error) {
  return models::call(error, [&] {
    required(kName, "id", id) = encoder_of(encoder).token_id(&required(kName, "token", token)).value_or(-1);
  });
}

headlight_status headlight_encoder_reserve(const headlight_encoder* encoder, headlight_engine* engine, int64_t tokens,
                                           headlight_error* error) {
  return models::call(error, [&] { encoder_of(encoder).reserve(c::engine_of(kName, engine), tokens); });
}

headlight_status headlight_encoder_embed_texts(const headlight_encoder* encoder, headlight_engine* engine,
                                               const char* const* texts, const size_t* lengths, size_t count,
                                               const headlight_tensor* out, headlight_error* error) {
  return headlight_encoder_embed_texts_with(encoder, engine, texts, lengths, count, out, nullptr, error);
}

headlight_status headlight_encoder_embed_texts_with(const headlight_encoder* encoder, headlight_engine* engine,
                                                    const char* const* texts, const size_t* lengths, size_t count,
                                                    const headlight_tensor* out, const headlight_embed_options* options,
                                                    headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    Engine& on = c::engine_of(kName, engine);
    const CTexts list = {texts, lengths, count};
    model.embed(on, list.view(), c::view<float, 2>(kName, "out", out), embed_options(options));
  });
}

int64_t headlight_encoder_score_width(const headlight_encoder* encoder) {
  return encoder == nullptr ? 0 : encoder->encoder.score_width();
}

headlight_status headlight_encoder_score(const headlight_encoder* encoder, headlight_engine* engine,
                                         const char* const* first, const size_t* first_lengths,
                                         const char* const* second, const size_t* second_lengths, size_t count,
                                         const headlight_tensor* out, headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    Engine& on = c::engine_of(kName, engine);
    const CTexts firsts = {first, first_lengths, count}, seconds = {second, second_lengths, count};
    std::vector<TextPair> pairs;
    for (std::size_t n = 0; n < count; ++n) pairs.push_back({firsts.text("first", n), seconds.text("second", n)});
    model.score(on, pairs, c::view<float, 2>(kName, "out", out));
  });
}

headlight_status headlight_encoder_encode_texts(const headlight_encoder* encoder, headlight_engine* engine,
                                                const char* const* texts, const size_t* lengths, size_t count,
                                                headlight_hidden_states** states, headlight_error* error) {
  return models::call(error, [&] {
    required(kName, "the place for the result", states) = nullptr;
    *states = new headlight_hidden_states{
        encoder_of(encoder).encode(c::engine_of(kName, engine), CTexts{texts, lengths, count}.view())};
  });
}

void headlight_hidden_states_destroy(headlight_hidden_states* states) { delete states; }

headlight_status headlight_hidden_states_tensor(const headlight_hidden_states* states, headlight_tensor* hidden,
                                                headlight_error* error) {
  return models::call(error, [&] {
    const Tensor<float, 3>& tensor = required(kName, "states", states).states.hidden;
    required(kName, "hidden", hidden) = {const_cast<float*>(tensor.data()), HEADLIGHT_FLOAT32, 3, tensor.shape().data(),
                                         nullptr};
  });
}

headlight_status headlight_hidden_states_ids(const headlight_hidden_states* states, size_t text, headlight_indices* ids,
                                             headlight_error* error) {
  return models::call(error, [&] {
    const auto& rows = required(kName, "states", states).states.ids;
    if (text >= rows.size()) {
      refuse(kName, "text is " + std::to_string(text) + ", there are " + std::to_string(rows.size()));
    }
    required(kName, "ids", ids) = {rows[text].data(), static_cast<std::int64_t>(rows[text].size())};
  });
}

headlight_status headlight_encoder_encode_ids(const headlight_encoder* encoder, headlight_engine* engine,
                                              const headlight_tensor* ids, const headlight_tensor* mask,
                                              const headlight_tensor* out, headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    Engine& on = c::engine_of(kName, engine);
    const auto tokens = c::view<const std::int64_t, 2>(kName, "ids", ids);
    const auto hidden = c::view<float, 3>(kName, "out", out);
    const auto left_out = c::optional_view<const std::int64_t, 2>(kName, "mask", mask);
    model.encode(on, tokens, left_out, hidden);
  });
}

headlight_status headlight_encoder_embed_ids(const headlight_encoder* encoder, headlight_engine* engine,
                                             const headlight_tensor* ids, const headlight_tensor* mask,
                                             const headlight_tensor* out, headlight_error* error) {
  return headlight_encoder_embed_ids_with(encoder, engine, ids, mask, out, nullptr, error);
}

headlight_status headlight_encoder_embed_ids_with(const headlight_encoder* encoder, headlight_engine* engine,
                                                  const headlight_tensor* ids, const headlight_tensor* mask,
                                                  const headlight_tensor* out, const headlight_embed_options* options,
                                                  headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    Engine& on = c::engine_of(kName, engine);
    const auto tokens = c::view<const std::int64_t, 2>(kName, "ids", ids);
    const auto rows = c::view<float, 2>(kName, "out", out);
    const auto left_out = c::optional_view<const std::int64_t, 2>(kName, "mask", mask);
    model.embed(on, tokens, left_out, rows, embed_options(options));
  });
}

headlight_status headlight_encoder_probabilities(const headlight_encoder* encoder, headlight_engine* engine,
                                                 const headlight_indices* ids, int64_t layer,
                                                 const headlight_tensor* out, headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    Engine& on = c::engine_of(kName, engine);
    const auto tokens = c::indices(kName, "ids", required(kName, "ids", ids));
    model.probabilities(on, tokens, layer, c::view<float, 3>(kName, "out", out));
  });
}
