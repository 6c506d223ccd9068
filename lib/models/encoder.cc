#include "headlight/models/encoder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "headlight/models/atomic_file.h"
#include "headlight/models/errors.h"
#include "headlight/models/safetensors.h"
#include "headlight/normalization.h"
#include "models/bert_config.h"
#include "models/bert_weights.h"
#include "models/describe.h"
#include "models/model_folder.h"
#include "models/token_batch.h"
#include "models/vocabulary.h"

namespace headlight::models {
namespace {

[[noreturn]] void fail(const std::string& message) { throw std::invalid_argument("models::Encoder: " + message); }

std::vector<Sequence> sequences_of(const std::vector<std::vector<std::int64_t>>& ids) {
  std::vector<Sequence> sequences(ids.size());
  for (std::size_t number = 0; number < ids.size(); ++number) {
    for (const std::int64_t id : ids[number]) {
      sequences[number].push_back({id, static_cast<std::int64_t>(sequences[number].size())});
    }
  }
  return sequences;
}

// The tokens that are not masked, at the positions of their columns.
std::vector<Sequence> sequences_of(const EncoderOptions& options, View<const std::int64_t, 2> ids,
                                   View<const std::int64_t, 2> mask) {
  if (ids.extent(0) < 0 || ids.extent(1) < 0) {
    fail("ids have shape " + describe(ids.shape) + ", expected no negative extent");
  }
  if (ids.size() > 0 && !ids) fail("ids of shape " + describe(ids.shape) + " have no memory (a null pointer)");
  if (ids.extent(1) > options.max_positions) {
    fail("ids have shape " + describe(ids.shape) + ", expected at most " + std::to_string(options.max_positions) +
         " columns");
  }
  if (mask && mask.shape != ids.shape) {
    fail("the attention mask has shape " + describe(mask.shape) + ", expected that of ids, " + describe(ids.shape));
  }
  std::vector<Sequence> sequences(static_cast<std::size_t>(ids.extent(0)));
  for (std::int64_t row = 0; row < ids.extent(0); ++row) {
    for (std::int64_t column = 0; column < ids.extent(1); ++column) {
      if (mask && mask(row, column) == 0) continue;
      const std::int64_t id = ids(row, column);
      if (id < 0 || id >= options.vocabulary) {
        fail("the id at row " + std::to_string(row) + ", column " + std::to_string(column) + " is " +
             std::to_string(id) + ", expected 0 to " + std::to_string(options.vocabulary - 1));
      }
      sequences[static_cast<std::size_t>(row)].push_back({id, column});
    }
  }
  return sequences;
}

// [B, L, E], each token's hidden state at its position, zeros elsewhere.
Tensor<float, 3> padded(Engine& engine, const headlight::Encoder& network, const std::vector<Sequence>& sequences,
                        std::int64_t length) {
  const std::int64_t width = network.options().width;
  Tensor<float, 3> hidden({static_cast<std::int64_t>(sequences.size()), length, width});
  for_each_batch(engine, network, sequences, [&](const TokenBatch& batch, View<const float, 2> rows) {
    const float* from = rows.data;
    for (std::size_t number = batch.first(); number < batch.first() + batch.sequences(); ++number) {
      for (const Token& token : sequences[number]) {
        std::copy_n(from, width, &hidden(static_cast<std::int64_t>(number), token.position, 0));
        from += width;
      }
    }
  });
  return hidden;
}

// [B, E]
Tensor<float, 2> pooled(Engine& engine, const headlight::Encoder& network, const std::vector<Sequence>& sequences) {
  const std::int64_t width = network.options().width;
  Tensor<float, 2> vectors({static_cast<std::int64_t>(sequences.size()), width});
  for_each_batch(engine, network, sequences, [&](const TokenBatch& batch, View<const float, 2> rows) {
    float* first = vectors.data() + static_cast<std::int64_t>(batch.first()) * width;
    const View<float, 2> out(first, {static_cast<std::int64_t>(batch.sequences()), width});
    mean_pool(engine, rows, batch.offsets(), out, true);
  });
  return vectors;
}

}  // namespace

Encoder::Encoder(const ModelOptions& options, Tokenizer tokenizer, headlight::Encoder network)
    : options_(options), tokenizer_(std::move(tokenizer)), network_(std::move(network)) {
  options_.encoder = network_.options();
  options_.tokenizer = tokenizer_.options();
  if (options_.max_length == 0) options_.max_length = options_.encoder.max_positions;
  if (options_.embed_max_length == 0) options_.embed_max_length = options_.max_length;
  if (options_.max_length < 2 || options_.max_length > options_.encoder.max_positions) {
    fail("max_length is " + std::to_string(options_.max_length) + ", expected 2 to max_positions " +
         std::to_string(options_.encoder.max_positions));
  }
  if (options_.embed_max_length < 2 || options_.embed_max_length > options_.max_length) {
    fail("embed_max_length is " + std::to_string(options_.embed_max_length) + ", expected 2 to max_length " +
         std::to_string(options_.max_length));
  }
  if (tokenizer_.size() > options_.encoder.vocabulary) {
    fail("the tokenizer has " + std::to_string(tokenizer_.size()) +
         " tokens, expected at most the network's vocabulary " + std::to_string(options_.encoder.vocabulary));
  }
}

std::vector<std::vector<std::int64_t>> Encoder::tokenize(std::span<const std::string> texts,
                                                         std::int64_t max_length) const {
  std::vector<std::vector<std::int64_t>> ids;
  ids.reserve(texts.size());
  for (std::size_t number = 0; number < texts.size(); ++number) {
    try {
      ids.push_back(tokenizer_.encode(texts[number], max_length));
    } catch (const std::invalid_argument& error) {
      fail("text " + std::to_string(number) + ": " + error.what());
    }
  }
  return ids;
}

HiddenStates Encoder::encode(Engine& engine, std::span<const std::string> texts) const {
  HiddenStates states{tokenize(texts, options_.max_length), {}};
  std::size_t length = 0;
  for (const auto& row : states.ids) length = std::max(length, row.size());
  states.hidden = padded(engine, network_, sequences_of(states.ids), static_cast<std::int64_t>(length));
  return states;
}

Tensor<float, 3> Encoder::encode(Engine& engine, View<const std::int64_t, 2> ids,
                                 View<const std::int64_t, 2> mask) const {
  return padded(engine, network_, sequences_of(options_.encoder, ids, mask), ids.extent(1));
}

Tensor<float, 2> Encoder::embed(Engine& engine, std::span<const std::string> texts) const {
  return pooled(engine, network_, sequences_of(tokenize(texts, options_.embed_max_length)));
}

Tensor<float, 2> Encoder::embed(Engine& engine, View<const std::int64_t, 2> ids,
                                View<const std::int64_t, 2> mask) const {
  return pooled(engine, network_, sequences_of(options_.encoder, ids, mask));
}

Tensor<float, 3> Encoder::probabilities(Engine& engine, std::span<const std::int64_t> ids, std::int64_t layer) const {
  const auto length = static_cast<std::int64_t>(ids.size());
  const View<const std::int64_t, 2> row(ids.data(), {1, length});
  const std::vector<Sequence> sequences = sequences_of(options_.encoder, row, {});
  const TokenBatch batch(sequences, 0, ids.size());
  Tensor<float, 2> hidden({length, options_.encoder.width});
  Tensor<float, 3> weights({options_.encoder.heads, length, length});
  LayerProbabilities wanted{.layer = layer};
  wanted.probabilities.per_head = View<float, 4>(weights.data(), {1, options_.encoder.heads, length, length});
  network_.forward(engine, batch.input(options_.encoder.token_types > 0), hidden, {&wanted, 1});
  return weights;
}

void Encoder::save(const std::string& folder) const {
  std::vector<std::string> vocabulary;
  for (std::int64_t id = 0; id < tokenizer_.size(); ++id) vocabulary.push_back(tokenizer_.token(id));
  write_model_folder(folder, options_, vocabulary, name_as_bert(network_), {});
}

void write_model_folder(const std::string& folder, const ModelOptions& options, std::span<const std::string> vocabulary,
                        const Weights& weights, std::map<std::string, std::string> metadata) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(folder, "cannot make the folder: " + error.message());
  metadata.emplace("format", "pt");
  write_safetensors(path_in(folder, kWeightsFile), weights, metadata);
  AtomicFile file(path_in(folder, kVocabularyFile));
  for (const std::string& token : vocabulary) file.write((token + "\n").data(), token.size() + 1);
  file.commit();
  write_bert_config(folder, options);
}

namespace {

Encoder load(const ModelFolder& folder) {
  const ModelOptions options = read_bert_config(folder);
  const std::string vocabulary_path = folder.path(kVocabularyFile);
  Tokenizer tokenizer(vocabulary_lines(folder.text(kVocabularyFile, kLargestVocabularyFile), vocabulary_path),
                      options.tokenizer, vocabulary_path);
  if (tokenizer.size() > options.encoder.vocabulary) {
    throw FileError(vocabulary_path, "has " + std::to_string(tokenizer.size()) +
                                         " tokens, expected at most the vocab_size of config.json, " +
                                         std::to_string(options.encoder.vocabulary));
  }
  SafetensorsFile file = folder.safetensors(kWeightsFile);
  const EncoderWeights found = find_bert_weights(file, options.encoder);
  headlight::Encoder network(options.encoder);
  network.load(found.weights);
  return {options, std::move(tokenizer), std::move(network)};
}

}  // namespace

Encoder load(const std::string& folder) { return load(ModelFolder(folder)); }

Encoder load(std::string_view name, std::span<const FileInMemory> files) { return load(ModelFolder(name, files)); }

Encoder make_random(const ModelOptions& options, Tokenizer tokenizer, std::uint64_t seed) {
  EncoderOptions encoder = options.encoder;
  if (encoder.vocabulary == 0) encoder.vocabulary = tokenizer.size();
  headlight::Encoder network(encoder);
  network.initialize(seed);
  return {options, std::move(tokenizer), std::move(network)};
}

}  // namespace headlight::models
