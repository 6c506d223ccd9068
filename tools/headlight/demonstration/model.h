// The demonstration model: a small encoder over the words of the grammar, and what tells relations from its output.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/layers/encoder.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "headlight/tensor.h"
#include "tools/headlight/demonstration/readout.h"

namespace headlight::demonstration {

// The encoder that `headlight train` makes, for the grammar's vocabulary and lengths.
[[nodiscard]] EncoderOptions default_encoder();
// Whole words, lower case.
[[nodiscard]] models::TokenizerOptions tokenizer_options();

struct Losses {
  double total = 0;
  std::array<double, kRelations> relation{};  // mean cross-entropy

  Losses& operator+=(const Losses& other) noexcept;
};

class Model {
 public:
  // Any encoder with the grammar's vocabulary and at least its length; see default_encoder().
  Model(const EncoderOptions& encoder, std::uint64_t seed);
  Model(headlight::Encoder network, Readout readout);

  [[nodiscard]] const headlight::Encoder& network() const noexcept { return network_; }
  [[nodiscard]] headlight::Encoder& network() noexcept { return network_; }
  [[nodiscard]] const Readout& readout() const noexcept { return readout_; }

  // Those of the encoder, then those of the readout. Opens the layers, as Layer::parameters() does.
  [[nodiscard]] std::vector<Parameter> parameters();
  [[nodiscard]] std::int64_t parameter_count() const;
  void set_training(bool training);
  // In which type learn() computes from then on: that of a SavedState. Throws std::invalid_argument for another.
  void set_activations(NumberType activations) { saved_ = SavedState(activations); }
  // Bytes that lie between the passes of the encoder.
  [[nodiscard]] std::size_t saved_bytes() const noexcept { return saved_.bytes(); }

  // The encoder's output [N, E].
  [[nodiscard]] Tensor<float, 2> hidden(Engine& engine, const Batch& batch) const;

  // Forward and backward of a shard of a batch: adds the gradients of its part of Σ_r mean cross-entropy of relation r
  // over the questions of all of the batch, of_batch[r], to the parameters', and returns that part. `visitor`, where
  // given, looks at the heads on the way back.
  Losses learn(Engine& engine, const Batch& shard, const QuestionCounts& of_batch, const TrainingStep& step,
               HeadVisitor* visitor = nullptr);

  // Writes a folder that models::load() and load() read; `metadata` goes into model.safetensors. Throws
  // models::FileError.
  void save(const std::string& folder, const std::map<std::string, std::string>& metadata) const;

 private:
  headlight::Encoder network_;
  Readout readout_;
  SavedState saved_;
};

// The readout in a model's weights; nothing where they are of another model, or its vocabulary is not the grammar's.
[[nodiscard]] std::optional<Readout> find_readout(const models::TextEncoder& model, models::SafetensorsFile& weights);

}  // namespace headlight::demonstration
