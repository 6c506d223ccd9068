// The C interface of the models library; lib/c holds that of the engine, and what both share.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "c/handles.h"
#include "headlight/models/encoder.h"
#include "headlight/models/errors.h"
#include "headlight/models/headlight_models.h"
#include "models/describe.h"

struct headlight_encoder {
  explicit headlight_encoder(headlight::models::Encoder encoder_)
      : encoder(std::move(encoder_)), network(encoder.network()) {}
  headlight::models::Encoder encoder;
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

const Encoder& encoder_of(const headlight_encoder* encoder) { return required(kName, "encoder", encoder).encoder; }

std::int64_t size_of(const headlight_encoder* encoder, std::int64_t EncoderOptions::*member) {
  return encoder == nullptr ? 0 : encoder->encoder.network().options().*member;
}

std::string_view text_of(const char& text, const std::size_t* length) {
  return length == nullptr ? std::string_view(&text) : std::string_view(&text, *length);
}

std::vector<std::string> texts_of(const char* const* texts, const std::size_t* lengths, std::size_t count) {
  std::vector<std::string> copies;
  for (std::size_t number = 0; number < count; ++number) {
    copies.emplace_back(
        text_of(c::entry(kName, "texts", texts, number), lengths == nullptr ? nullptr : lengths + number));
  }
  return copies;
}

// `out` if it has that shape and memory: found before anything is computed.
template <int Rank>
View<float, Rank> out_view(const headlight_tensor* tensor, const std::array<std::int64_t, Rank>& shape) {
  const auto out = c::view<float, Rank>(kName, "out", tensor);
  if (out.shape != shape) refuse(kName, "out has shape " + describe(out.shape) + ", expected " + describe(shape));
  if (out.size() > 0 && !out) refuse(kName, "out has no memory (a null pointer)");
  if (out.extent(Rank - 1) > 1 && out.stride(Rank - 1) != 1) {
    refuse(kName, "out has the last stride " + std::to_string(out.stride(Rank - 1)) + ", expected 1");
  }
  return out;
}

void copy_rows(View<const float, 2> from, View<float, 2> to) {
  for (std::int64_t row = 0; row < from.extent(0); ++row) std::copy_n(&from(row, 0), from.extent(1), &to(row, 0));
}

void copy_matrices(View<const float, 3> from, View<float, 3> to) {
  for (std::int64_t matrix = 0; matrix < from.extent(0); ++matrix) {
    copy_rows({from.data + matrix * from.stride(0), {from.extent(1), from.extent(2)}, {from.stride(1), from.stride(2)}},
              {to.data + matrix * to.stride(0), {to.extent(1), to.extent(2)}, {to.stride(1), to.stride(2)}});
  }
}

}  // namespace
}  // namespace headlight::models

using namespace headlight;
using namespace headlight::models;

headlight_status headlight_encoder_load(const char* folder, headlight_encoder** encoder, headlight_error* error) {
  return models::call(error, [&] {
    required(kName, "the place for the result", encoder) = nullptr;
    *encoder = new headlight_encoder(load(&required(kName, "folder", folder)));
  });
}

headlight_status headlight_encoder_save(const headlight_encoder* encoder, const char* folder, headlight_error* error) {
  return models::call(error, [&] { encoder_of(encoder).save(&required(kName, "folder", folder)); });
}

void headlight_encoder_destroy(headlight_encoder* encoder) { delete encoder; }

headlight_layer* headlight_encoder_network(headlight_encoder* encoder) {
  return encoder == nullptr ? nullptr : &encoder->network;
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
    const std::vector<std::int64_t> found = model.tokenizer().encode(
        text_of(required(kName, "text", text), length), max_length == 0 ? model.options().max_length : max_length);
    required(kName, "count", count) = found.size();
    const std::size_t room = std::min(capacity, found.size());
    if (room > 0) std::copy_n(found.begin(), room, &required(kName, "ids", ids));
  });
}

headlight_status headlight_encoder_token(const headlight_encoder* encoder, int64_t id, const char** token,
                                         headlight_error* error) {
  return models::call(error,
                      [&] { required(kName, "token", token) = encoder_of(encoder).tokenizer().token(id).c_str(); });
}

headlight_status headlight_encoder_token_id(const headlight_encoder* encoder, const char* token, int64_t* id,
                                            headlight_error* error) {
  return models::call(error, [&] {
    required(kName, "id", id) = encoder_of(encoder).tokenizer().id(&required(kName, "token", token)).value_or(-1);
  });
}

headlight_status headlight_encoder_embed_texts(const headlight_encoder* encoder, headlight_engine* engine,
                                               const char* const* texts, const size_t* lengths, size_t count,
                                               const headlight_tensor* out, headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    Engine& on = c::engine_of(kName, engine);
    const auto rows = out_view<2>(out, {static_cast<std::int64_t>(count), model.options().encoder.width});
    copy_rows(model.embed(on, texts_of(texts, lengths, count)), rows);
  });
}

headlight_status headlight_encoder_encode_texts(const headlight_encoder* encoder, headlight_engine* engine,
                                                const char* const* texts, const size_t* lengths, size_t count,
                                                headlight_hidden_states** states, headlight_error* error) {
  return models::call(error, [&] {
    required(kName, "the place for the result", states) = nullptr;
    *states = new headlight_hidden_states{
        encoder_of(encoder).encode(c::engine_of(kName, engine), texts_of(texts, lengths, count))};
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
    const auto hidden = out_view<3>(out, {tokens.extent(0), tokens.extent(1), model.options().encoder.width});
    const auto left_out = c::optional_view<const std::int64_t, 2>(kName, "mask", mask);
    copy_matrices(model.encode(on, tokens, left_out), hidden);
  });
}

headlight_status headlight_encoder_embed_ids(const headlight_encoder* encoder, headlight_engine* engine,
                                             const headlight_tensor* ids, const headlight_tensor* mask,
                                             const headlight_tensor* out, headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    Engine& on = c::engine_of(kName, engine);
    const auto tokens = c::view<const std::int64_t, 2>(kName, "ids", ids);
    const auto rows = out_view<2>(out, {tokens.extent(0), model.options().encoder.width});
    const auto left_out = c::optional_view<const std::int64_t, 2>(kName, "mask", mask);
    copy_rows(model.embed(on, tokens, left_out), rows);
  });
}

headlight_status headlight_encoder_probabilities(const headlight_encoder* encoder, headlight_engine* engine,
                                                 const headlight_indices* ids, int64_t layer,
                                                 const headlight_tensor* out, headlight_error* error) {
  return models::call(error, [&] {
    const auto& model = encoder_of(encoder);
    Engine& on = c::engine_of(kName, engine);
    const auto tokens = c::indices(kName, "ids", required(kName, "ids", ids));
    const auto weights = out_view<3>(out, {model.options().encoder.heads, static_cast<std::int64_t>(tokens.size()),
                                           static_cast<std::int64_t>(tokens.size())});
    copy_matrices(model.probabilities(on, tokens, layer), weights);
  });
}
