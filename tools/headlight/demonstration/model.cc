#include "tools/headlight/demonstration/model.h"

#include <utility>

#include "headlight/models/safetensors.h"
#include "models/bert_config.h"
#include "models/bert_weights.h"

namespace headlight::demonstration {

EncoderOptions default_encoder() {
  EncoderOptions options;
  options.vocabulary = static_cast<std::int64_t>(Grammar::vocabulary().size());
  options.max_positions = static_cast<std::int64_t>(Grammar::kLongest) + 2;  // [CLS] and [SEP]
  options.width = 64;
  options.heads = 4;
  options.feed_forward_width = 128;
  options.layers = 2;
  options.dropout = 0.1f;
  return options;
}

models::TokenizerOptions tokenizer_options() {
  models::TokenizerOptions options;
  options.whole_words = true;
  return options;
}

Model::Model(const EncoderOptions& encoder, std::uint64_t seed) : network_(encoder), readout_(encoder.width, seed + 1) {
  network_.initialize(seed);
}

Model::Model(headlight::Encoder network, Readout readout)
    : network_(std::move(network)), readout_(std::move(readout)) {}

std::vector<Parameter> Model::parameters() {
  std::vector<Parameter> list = network_.parameters();
  for (Parameter& parameter : readout_.parameters()) list.push_back(std::move(parameter));
  return list;
}

std::int64_t Model::parameter_count() const { return network_.parameter_count() + readout_.parameter_count(); }

void Model::set_training(bool training) {
  network_.set_training(training);
  if (!training) network_.freeze();
  readout_.set_training(training);
}

Tensor<float, 2> Model::hidden(Engine& engine, const Batch& batch) const {
  Tensor<float, 2> hidden({batch.tokens(), network_.options().width});
  network_.forward(engine, batch.input(), hidden);
  return hidden;
}

Losses& Losses::operator+=(const Losses& other) noexcept {
  total += other.total;
  for (std::size_t n = 0; n < kRelations; ++n) relation[n] += other.relation[n];
  return *this;
}

Losses Model::learn(Engine& engine, const Batch& shard, const QuestionCounts& of_batch, const TrainingStep& step,
                    HeadVisitor* visitor) {
  const std::int64_t width = network_.options().width;
  Tensor<float, 2> hidden({shard.tokens(), width}), hidden_gradient({shard.tokens(), width});
  network_.forward(engine, shard.input(), hidden, saved_, step);
  Losses losses;
  for (std::size_t n = 0; n < kRelations; ++n) {
    const auto relation = static_cast<Relation>(n);
    const Questions& questions = shard.questions(relation);
    if (questions.tokens.empty()) continue;
    losses.relation[n] = readout_.learn(engine, questions, of_batch[n], relation, hidden, hidden_gradient);
    losses.total += losses.relation[n];
  }
  network_.backward(engine, shard.input(), saved_, hidden_gradient, visitor);
  return losses;
}

void Model::save(const std::string& folder, const std::map<std::string, std::string>& metadata) const {
  models::ModelOptions options;
  options.encoder = network_.options();
  options.tokenizer = tokenizer_options();
  options.max_length = options.encoder.max_positions;
  options.embed_max_length = options.max_length;
  Weights weights = models::name_as_bert(network_);
  weights.merge(readout_.weights());
  models::write_model_folder(folder, options, Grammar::vocabulary(), weights, metadata);
}

std::optional<Readout> find_readout(const models::TextEncoder& model, models::SafetensorsFile& weights) {
  const std::vector<std::string>& vocabulary = Grammar::vocabulary();
  if (!model.has_tokenizer()) return std::nullopt;
  const models::Tokenizer& tokenizer = model.tokenizer();
  if (weights.find("words.weight") == nullptr) return std::nullopt;
  if (tokenizer.size() != static_cast<std::int64_t>(vocabulary.size())) return std::nullopt;
  for (std::int64_t id = 0; id < tokenizer.size(); ++id) {
    if (tokenizer.find_token(id) != vocabulary[static_cast<std::size_t>(id)]) return std::nullopt;
  }
  Readout readout(model.options().encoder.width, 0);
  readout.load(weights.weights());
  return readout;
}

}  // namespace headlight::demonstration
