#include "headlight/models/text_encoder.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "headlight/models/errors.h"
#include "headlight/normalization.h"
#include "headlight/out_of_memory.h"
#include "models/describe.h"
#include "models/module_files.h"
#include "models/out_view.h"
#include "models/score_head.h"
#include "models/text_encoder_check.h"
#include "models/text_network.h"
#include "models/text_vectors.h"
#include "models/tokenizers/text_tokenizer.h"
#include "models/workspace.h"
#include "runtime/list_text.h"

namespace headlight::models {
namespace {

TextEncoder::Texts texts_of(std::span<const std::string> texts) {
  return {texts.size(), texts.data(), [](const void* list, std::size_t number) -> std::string_view {
            return static_cast<const std::string*>(list)[number];
          }};
}

// Adds the tokens of a row that are not masked, at the positions of their columns.
auto rows_of(View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask, const PositionRule& rule) {
  return [ids, mask, rule](std::size_t number, TokenBatch& batch) {
    const auto row = static_cast<std::int64_t>(number);
    Places places(rule);
    for (std::int64_t column = 0; column < ids.extent(1); ++column) {
      const std::int64_t place = places.next(ids(row, column));
      if (!mask || mask(row, column) != 0) batch.add({ids(row, column), column, place});
    }
  };
}

// Puts each token's hidden state at its position in out [B, L, E], zeros elsewhere.
auto padded_into(View<float, 3> out) {
  return [out](std::size_t first, const EncoderInput& input, View<const float, 2> hidden) {
    for (std::size_t s = 0; s + 1 < input.offsets.size(); ++s) {
      const auto row = static_cast<std::int64_t>(first + s);
      std::int64_t column = 0;
      const auto clear_to = [&](std::int64_t end) {
        for (; column < end; ++column) std::fill_n(&out(row, column, 0), out.extent(2), 0.0f);
      };
      for (std::int64_t token = input.offsets[s]; token < input.offsets[s + 1]; ++token) {
        clear_to(input.positions[static_cast<std::size_t>(token)]);
        std::copy_n(&hidden(token, 0), out.extent(2), &out(row, column++, 0));
      }
      clear_to(out.extent(1));
    }
  };
}

// Puts the vector of each sequence into its row of out [B, D].
auto vectors_into(Engine& engine, const ModelOptions& options, const EmbedOptions& call, std::int64_t prompt_tokens,
                  View<float, 2> out, VectorScratch& scratch) {
  return [&engine, &options, normalize = call.normalize, prompt_tokens, out, &scratch](
             std::size_t first, const EncoderInput& input, View<const float, 2> hidden) {
    make_vectors(engine, options, prompt_tokens, normalize, input, hidden, rows_of_batch(out, first, input), scratch);
  };
}

// Of ids and places that were checked.
void encode_rows(Engine& engine, const TextNetwork& network, Workspace& workspace, View<const std::int64_t, 2> ids,
                 View<const std::int64_t, 2> mask, View<float, 3> out) {
  if (ids.size() == 0) return;
  workspace.run(engine, network, static_cast<std::size_t>(ids.extent(0)), rows_of(ids, mask, network.positions()),
                padded_into(out));
}
void embed_rows(Engine& engine, const TextNetwork& network, Workspace& workspace, const ModelOptions& model,
                View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask, View<float, 2> out,
                const EmbedOptions& options) {
  workspace.run(engine, network, static_cast<std::size_t>(ids.extent(0)), rows_of(ids, mask, network.positions()),
                vectors_into(engine, model, options, options.prompt_tokens, out, workspace.vectors()));
}

}  // namespace

TextEncoder::TextEncoder(const ModelOptions& options, Tokenizer tokenizer, headlight::Encoder network)
    : TextEncoder(options, make_text_tokenizer(std::move(tokenizer)), make_text_network(std::move(network)), nullptr) {}

TextEncoder::TextEncoder(TextEncoder&&) noexcept = default;
TextEncoder& TextEncoder::operator=(TextEncoder&&) noexcept = default;
TextEncoder::~TextEncoder() = default;

TextEncoder::TextEncoder(const ModelOptions& options, std::unique_ptr<TextTokenizer> tokenizer,
                         std::unique_ptr<TextNetwork> network, std::unique_ptr<ScoreHead> head)
    : options_(options),
      tokenizer_(std::move(tokenizer)),
      network_(std::move(network)),
      head_(std::move(head)),
      workspaces_(std::make_shared<WorkspacePool>()) {
  if (has_network() && options_.model_type == "bert") options_.encoder = this->network().options();
  if (has_tokenizer()) options_.tokenizer = this->tokenizer().options();
  if (options_.max_length == 0) options_.max_length = options_.encoder.max_positions;
  if (options_.embed_max_length == 0) options_.embed_max_length = options_.max_length;
  if (options_.max_length < 2 || options_.max_length > options_.encoder.max_positions) {
    fail_call("max_length is " + std::to_string(options_.max_length) + ", expected 2 to max_positions " +
              std::to_string(options_.encoder.max_positions));
  }
  if (options_.embed_max_length < 2 || options_.embed_max_length > options_.max_length) {
    fail_call("embed_max_length is " + std::to_string(options_.embed_max_length) + ", expected 2 to max_length " +
              std::to_string(options_.max_length));
  }
  check_vector_options(options_);
  if (tokenizer_->size() > options_.encoder.vocabulary) {
    fail_call("the tokenizer has " + std::to_string(tokenizer_->size()) +
              " tokens, expected at most the network's vocabulary " + std::to_string(options_.encoder.vocabulary));
  }
}

const Layer& TextEncoder::layer() const noexcept { return network_->layer(); }

Layer& TextEncoder::layer() noexcept { return network_->layer(); }

bool TextEncoder::has_network() const noexcept { return network_->encoder() != nullptr; }

bool TextEncoder::has_tokenizer() const noexcept { return tokenizer_->bert() != nullptr; }

const headlight::Encoder& TextEncoder::network() const {
  if (const headlight::Encoder* const encoder = network_->encoder()) return *encoder;
  fail_call("network: the model_type is " + in_quotes(options_.model_type) + ", expected one whose layers are BERT's");
}

headlight::Encoder& TextEncoder::network() { return const_cast<headlight::Encoder&>(std::as_const(*this).network()); }

const Tokenizer& TextEncoder::tokenizer() const {
  if (const Tokenizer* const bert = tokenizer_->bert()) return *bert;
  fail_call("tokenizer: the model of model_type " + in_quotes(options_.model_type) +
            " has a tokenizer.json of another kind, expected BERT's tokenizer");
}

std::vector<std::int64_t> TextEncoder::positions(std::span<const std::int64_t> ids,
                                                 std::span<const std::int64_t> offsets) const {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != static_cast<std::int64_t>(ids.size()) ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    fail_call("positions: offsets do not ascend from 0 to " + std::to_string(ids.size()) + ", expected such");
  }
  std::vector<std::int64_t> places;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    Places next(network_->positions());
    for (std::int64_t token = offsets[s]; token < offsets[s + 1]; ++token) {
      places.push_back(next.next(ids[static_cast<std::size_t>(token)]));
    }
  }
  return places;
}

std::vector<std::int64_t> TextEncoder::tokenize(std::string_view text, std::int64_t max_length) const {
  std::vector<std::int64_t> ids;
  tokenizer_->append(text, max_length == 0 ? options_.max_length : max_length, workspaces_->take()->text(), ids);
  return ids;
}

std::string TextEncoder::decode(std::span<const std::int64_t> ids) const {
  for (const std::int64_t id : ids) {
    if (!token(id)) {
      fail_call("decode: ids has " + std::to_string(id) + ", expected 0 to " + std::to_string(tokenizer_->size() - 1));
    }
  }
  return tokenizer_->decode(ids);
}

std::optional<std::string_view> TextEncoder::token(std::int64_t id) const noexcept { return tokenizer_->token(id); }

std::optional<std::int64_t> TextEncoder::token_id(std::string_view token) const { return tokenizer_->id(token); }

std::int64_t TextEncoder::token_count() const noexcept { return tokenizer_->size(); }

template <class Function>
void TextEncoder::for_each_text(const Texts& texts, Function take) const {
  for (std::size_t number = 0; number < texts.count; ++number) {
    try {
      take(number, texts.at(texts.list, number));
    } catch (const std::invalid_argument& error) {
      fail_call("text " + std::to_string(number) + ": " + error.what());
    }
  }
}

HiddenStates TextEncoder::encode(Engine& engine, std::span<const std::string> texts) const {
  return encode(engine, texts_of(texts));
}

HiddenStates TextEncoder::encode(Engine& engine, const Texts& texts) const {
  HiddenStates states;
  states.ids.resize(texts.count);
  std::size_t length = 0;
  for_each_text(texts, [&](std::size_t number, std::string_view text) {
    states.ids[number] = tokenize(text);
    length = std::max(length, states.ids[number].size());
  });
  states.hidden = Tensor<float, 3>(
      {static_cast<std::int64_t>(texts.count), static_cast<std::int64_t>(length), options_.encoder.width});
  const auto add = [&](std::size_t number, TokenBatch& batch) {
    batch.add_ids(network_->positions(), [&](std::vector<std::int64_t>& ids, std::vector<std::int64_t>&) {
      ids.insert(ids.end(), states.ids[number].begin(), states.ids[number].end());
    });
  };
  workspaces_->take()->run(engine, *network_, texts.count, add, padded_into(states.hidden));
  return states;
}

Tensor<float, 3> TextEncoder::encode(Engine& engine, View<const std::int64_t, 2> ids,
                                     View<const std::int64_t, 2> mask) const {
  check_ids(options_.encoder, ids, mask, network_->counts_distances());
  Tensor<float, 3> out({ids.extent(0), ids.extent(1), options_.encoder.width});
  encode_rows(engine, *network_, *workspaces_->take(), ids, mask, out);
  return out;
}

void TextEncoder::encode(Engine& engine, View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask,
                         View<float, 3> out) const {
  check_ids(options_.encoder, ids, mask, network_->counts_distances());
  check_out(out, {ids.extent(0), ids.extent(1), options_.encoder.width});
  encode_rows(engine, *network_, *workspaces_->take(), ids, mask, out);
}

void TextEncoder::check_pooling() const {
  if (!options_.unread_pooling.empty()) fail_call("embed: " + options_.unread_pooling);
}

std::string TextEncoder::prompt(const EmbedOptions& options) const { return std::string(prompt_of(options)); }

std::string_view TextEncoder::prompt_of(const EmbedOptions& options) const {
  if (options.prompt) return *options.prompt;
  if (!options.prompt_name && options_.default_prompt.empty()) return "";
  const std::string& name = options.prompt_name ? *options.prompt_name : options_.default_prompt;
  if (const auto found = options_.prompts.find(name); found != options_.prompts.end()) return found->second;
  std::string names;
  for (const auto& [known, text] : options_.prompts) runtime::append_item(names, printable(known));
  fail_call("embed: prompt_name is " + in_quotes(name) +
            ", expected the name of one of the model's: " + (names.empty() ? "it has none" : names));
}

std::int64_t TextEncoder::embed_width() const noexcept {
  return options_.truncate_dim == 0 ? vector_width(options_) : options_.truncate_dim;
}

std::int64_t TextEncoder::embed_width(const EmbedOptions& options) const {
  if (!options.truncate_dim) return embed_width();
  const std::int64_t width = vector_width(options_), kept = *options.truncate_dim;
  if (kept < 0 || kept > width) {
    fail_call("embed: truncate_dim is " + std::to_string(kept) + ", expected 0 to the width of a vector, " +
              std::to_string(width));
  }
  return kept == 0 ? width : kept;
}

Tensor<float, 2> TextEncoder::embed(Engine& engine, std::span<const std::string> texts) const {
  Tensor<float, 2> out({static_cast<std::int64_t>(texts.size()), embed_width()});
  embed(engine, texts, out);
  return out;
}

void TextEncoder::embed(Engine& engine, std::span<const std::string> texts, View<float, 2> out) const {
  embed(engine, texts_of(texts), out, {});
}

void TextEncoder::embed(Engine& engine, std::span<const std::string> texts, View<float, 2> out,
                        const EmbedOptions& options) const {
  embed(engine, texts_of(texts), out, options);
}

void TextEncoder::embed(Engine& engine, const Texts& texts, View<float, 2> out) const { embed(engine, texts, out, {}); }

void TextEncoder::embed(Engine& engine, const Texts& texts, View<float, 2> out, const EmbedOptions& options) const {
  check_pooling();
  check_out(out, {static_cast<std::int64_t>(texts.count), embed_width(options)});
  for_each_text(texts, [](std::size_t, std::string_view text) { Tokenizer::check(text); });
  const std::string_view prompt = prompt_of(options);
  const auto workspace = workspaces_->take();
  // Its tokens but for a special one at its end, as sentence-transformers counts them.
  std::int64_t prompt_tokens = 0;
  if (!prompt.empty()) {
    std::vector<std::int64_t>& ids = workspace->ids();
    ids.clear();
    tokenizer_->append(prompt, options_.embed_max_length, workspace->text(), ids);
    prompt_tokens = std::ssize(ids) - (!ids.empty() && tokenizer_->is_special(ids.back()) ? 1 : 0);
  }
  std::string& joined = workspace->joined();
  const auto add = [&](std::size_t number, TokenBatch& batch) {
    std::string_view text = texts.at(texts.list, number);
    if (!prompt.empty()) text = joined.assign(prompt).append(text);
    batch.add_ids(network_->positions(), [&](std::vector<std::int64_t>& ids, std::vector<std::int64_t>&) {
      tokenizer_->append(text, options_.embed_max_length, workspace->text(), ids);
    });
  };
  workspace->run(engine, *network_, texts.count, add,
                 vectors_into(engine, options_, options, prompt_tokens, out, workspace->vectors()));
}

Tensor<float, 2> TextEncoder::embed(Engine& engine, View<const std::int64_t, 2> ids,
                                    View<const std::int64_t, 2> mask) const {
  check_pooling();
  check_ids(options_.encoder, ids, mask, network_->counts_distances());
  if (ids.extent(0) > INT64_MAX / 8 / embed_width()) throw OutOfMemory("models::TextEncoder", SIZE_MAX);
  Tensor<float, 2> out({ids.extent(0), embed_width()});
  embed_rows(engine, *network_, *workspaces_->take(), options_, ids, mask, out, {});
  return out;
}

void TextEncoder::embed(Engine& engine, View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask,
                        View<float, 2> out) const {
  embed(engine, ids, mask, out, {});
}

void TextEncoder::embed(Engine& engine, View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask,
                        View<float, 2> out, const EmbedOptions& options) const {
  check_pooling();
  check_ids(options_.encoder, ids, mask, network_->counts_distances());
  check_out(out, {ids.extent(0), embed_width(options)});
  if (options.prompt_tokens < 0) {
    fail_call("embed: prompt_tokens is " + std::to_string(options.prompt_tokens) + ", expected at least 0");
  }
  embed_rows(engine, *network_, *workspaces_->take(), options_, ids, mask, out, options);
}

void TextEncoder::reserve(Engine& engine, std::int64_t tokens) const {
  if (tokens < 0) fail_call("reserve() for " + std::to_string(tokens) + " tokens, expected at least 0");
  const std::int64_t longest = options_.encoder.max_positions;
  network_->reserve(engine, std::min(tokens, std::max(kTokensAtATime, longest)));
  const auto workspace = workspaces_->take();
  workspace->reserve(*network_, tokens, longest);
  const std::int64_t sequences = Workspace::sequences_at_a_time(tokens);
  workspace->vectors().reserve(engine, options_, sequences);
  if (head_ == nullptr) return;
  workspace->vectors().reserve(engine, head_->pooled, sequences);
  workspace->vectors().reserve_tokens(engine, head_->of_tokens, network_->width(),
                                      std::min(tokens, std::max(kTokensAtATime, longest)));
}

TextEncoder::CallBytes TextEncoder::call_bytes(Engine& engine, std::int64_t tokens) const {
  reserve(engine, tokens);
  tokens = std::min(tokens, std::max(kTokensAtATime, options_.encoder.max_positions));  // as many as reserve() takes
  constexpr std::int64_t kLists = 4;  // of a token: its id, its positions, its type
  const std::int64_t of_token = network_->width() * static_cast<std::int64_t>(sizeof(float)) +
                                kLists * static_cast<std::int64_t>(sizeof(std::int64_t));
  const std::int64_t of_vectors =
      2 * static_cast<std::int64_t>(sizeof(float)) * std::max(vector_width(options_), network_->width());
  const std::int64_t more = static_cast<std::int64_t>(engine.scratch_bytes()) + tokens * of_token + of_vectors;
  return {.one_text = more + static_cast<std::int64_t>(workspaces_->take()->text().bytes()),
          .further_text = more,
          .text_byte = tokenizer_->bytes_of_byte()};
}

namespace {

// Of ids and a place that were checked.
void look_at(Engine& engine, const TextNetwork& network, Workspace& workspace, View<const std::int64_t, 2> row,
             std::int64_t layer, View<float, 3> out) {
  const std::int64_t length = row.extent(1);
  LayerProbabilities wanted{.layer = layer};
  wanted.probabilities.per_head = {
      out.data, {1, out.extent(0), length, length}, {0, out.stride(0), out.stride(1), out.stride(2)}};
  workspace.look(engine, network, rows_of(row, {}, network.positions()), wanted);
}

}  // namespace

Tensor<float, 3> TextEncoder::probabilities(Engine& engine, std::span<const std::int64_t> ids,
                                            std::int64_t layer) const {
  const auto length = static_cast<std::int64_t>(ids.size());
  const View<const std::int64_t, 2> row(ids.data(), {1, length});
  check_ids(options_.encoder, row, {}, false);
  Tensor<float, 3> out({options_.encoder.heads, length, length});
  look_at(engine, *network_, *workspaces_->take(), row, layer, out);
  return out;
}

void TextEncoder::probabilities(Engine& engine, std::span<const std::int64_t> ids, std::int64_t layer,
                                View<float, 3> out) const {
  const auto length = static_cast<std::int64_t>(ids.size());
  const View<const std::int64_t, 2> row(ids.data(), {1, length});
  check_ids(options_.encoder, row, {}, false);
  check_out(out, {options_.encoder.heads, length, length});
  look_at(engine, *network_, *workspaces_->take(), row, layer, out);
}

TextEncoder make_random(const ModelOptions& options, Tokenizer tokenizer, std::uint64_t seed) {
  EncoderOptions encoder = options.encoder;
  if (encoder.vocabulary == 0) encoder.vocabulary = tokenizer.size();
  headlight::Encoder network(encoder);
  network.initialize(seed);
  return {options, std::move(tokenizer), std::move(network)};
}

}  // namespace headlight::models
