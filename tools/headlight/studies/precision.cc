#include "tools/headlight/studies/precision.h"

#include <cmath>
#include <iterator>
#include <memory>
#include <variant>

#include "tools/headlight/studies/deviation.h"
#include "tools/headlight/support/number_types.h"
#include "tools/headlight/support/repeated_times.h"

namespace headlight::program {
namespace {

// A network, or its first layers, over weights that live longer than it and are read where they lie.
class Layers {
 public:
  Layers(const ModelNetwork& model, std::int64_t layers, Weights weights, NumberType type)
      : has_token_types_(model.has_token_types()), width_(model.sizes().width), network_(model.first_layers(layers)) {
    for (auto& [name, weight] : weights) {
      weight.owner = std::shared_ptr<const void>(std::shared_ptr<const void>(), weight.values.data());
    }
    std::visit(
        [&](auto& network) {
          network.load(weights, {.ignore_extra = true});
          network.set_precision(type);
        },
        network_);
  }

  [[nodiscard]] Tensor<float, 2> hidden_of(Engine& engine, const TextBatch& batch) const {
    const models::TokenBatch packed = batch.packed();
    const EncoderInput input = packed.input_by_place(has_token_types_, packed.sequences());
    Tensor<float, 2> hidden({batch.tokens, width_});
    std::visit([&](const auto& network) { network.forward(engine, input, hidden); }, network_);
    return hidden;
  }
  [[nodiscard]] std::int64_t width() const noexcept { return width_; }

 private:
  bool has_token_types_;
  std::int64_t width_;
  std::variant<Encoder, Network> network_;
};

// One row a text, of length 1: the mean of its hidden states.
struct TextVectors {
  std::int64_t width = 0;
  std::vector<double> numbers{};

  [[nodiscard]] std::size_t size() const { return numbers.size() / static_cast<std::size_t>(width); }
  [[nodiscard]] double cosine(std::size_t text, const TextVectors& others, std::size_t other) const {
    const auto count = static_cast<std::size_t>(width);
    double sum = 0;
    for (std::size_t e = 0; e < count; ++e) sum += numbers[text * count + e] * others.numbers[other * count + e];
    return sum;
  }
  [[nodiscard]] std::size_t nearest(std::size_t text) const {
    std::size_t best = text == 0 ? 1 : 0;
    double most = -2;
    for (std::size_t other = 0; other < size(); ++other) {
      const double cosine_of = other == text ? -2 : cosine(text, *this, other);
      if (cosine_of <= most) continue;
      most = cosine_of;
      best = other;
    }
    return best;
  }
};

void append_vectors(const TextBatch& batch, const Tensor<float, 2>& hidden, TextVectors& vectors) {
  const auto width = static_cast<std::size_t>(vectors.width);
  const float* row = hidden.data();
  for (const models::Sequence& text : batch.texts) {
    std::vector<double> mean(width);
    for (std::size_t token = 0; token < text.size(); ++token, row += width) {
      for (std::size_t e = 0; e < width; ++e) mean[e] += static_cast<double>(row[e]);
    }
    double length = 0;
    for (const double number : mean) length += number * number;
    for (double& number : mean) number /= length > 0 ? std::sqrt(length) : 1;
    vectors.numbers.insert(vectors.numbers.end(), mean.begin(), mean.end());
  }
}

TextVectors vectors_of(Engine& engine, const Layers& layers, const std::vector<TextBatch>& texts) {
  TextVectors vectors{.width = layers.width()};
  for (const TextBatch& batch : texts) append_vectors(batch, layers.hidden_of(engine, batch), vectors);
  return vectors;
}

// What others are compared with.
struct Exact {
  const ModelNetwork& model;
  std::int64_t layers;
  std::vector<Tensor<float, 2>> hidden;  // after 1, 2, … layers, of the first batch
  TextVectors vectors;
  std::vector<std::size_t> nearest;

  Exact(Engine& engine, const ModelNetwork& of, const Weights& weights, const std::vector<TextBatch>& texts)
      : model(of), layers(of.sizes().layers) {
    for (std::int64_t count = 1; count <= layers; ++count) {
      const Layers first(model, count, weights, NumberType::float32);
      hidden.push_back(first.hidden_of(engine, texts.front()));
      if (count == layers) vectors = vectors_of(engine, first, texts);
    }
    for (std::size_t text = 0; text < vectors.size(); ++text) nearest.push_back(vectors.nearest(text));
  }
};

PrecisionLoss loss_of(Engine& engine, const Exact& exact, const Weights& weights, NumberType type,
                      const std::vector<TextBatch>& texts) {
  PrecisionLoss loss;
  for (std::int64_t count = 1; count <= exact.layers; ++count) {
    const Layers first(exact.model, count, weights, type);
    loss.by_layer.push_back(
        relative_deviation(first.hidden_of(engine, texts.front()), exact.hidden[static_cast<std::size_t>(count) - 1]));
    if (count < exact.layers) continue;
    const TextVectors vectors = vectors_of(engine, first, texts);
    double sum = 0, kept = 0;
    for (std::size_t text = 0; text < vectors.size(); ++text) {
      const double cosine = vectors.cosine(text, exact.vectors, text);
      loss.least_cosine = std::min(loss.least_cosine, cosine);
      sum += cosine;
      kept += vectors.nearest(text) == exact.nearest[text] ? 1 : 0;
    }
    loss.mean_cosine = sum / static_cast<double>(vectors.size());
    loss.neighbours_kept = kept / static_cast<double>(vectors.size());
  }
  return loss;
}

double packed_bytes(Engine& engine, const Weights& weights, NumberType type) {
  double bytes = 0;
  for (const auto& [name, weight] : weights) {
    if (!is_multiplied(name, weight)) continue;
    const View<const float, 2> matrix(weight.values.data(), {weight.shape[0], weight.shape[1]});
    bytes += static_cast<double>(PackedMatrix(engine, matrix, Transpose::yes, type).bytes());
  }
  return bytes;
}

// All types in turn, so that what else the machine does disturbs them alike.
void time_types(Engine& engine, const ModelNetwork& model, const Weights& weights, const std::vector<TextBatch>& texts,
                int runs, const Advance& advance, std::vector<TypeResult>& results) {
  std::vector<Layers> networks;
  for (const TypeResult& result : results) {
    networks.emplace_back(model, model.sizes().layers, weights, result.type);
    static_cast<void>(networks.back().hidden_of(engine, texts.front()));  // packs
  }
  std::vector<RepeatedTimes> times(results.size());
  for (int run = 0; run < runs; ++run) {
    for (std::size_t n = 0; n < results.size(); ++n) {
      times[n].run([&] {
        for (const TextBatch& batch : texts) static_cast<void>(networks[n].hidden_of(engine, batch));
      });
    }
    advance(1);
  }
  for (std::size_t n = 0; n < results.size(); ++n) {
    results[n].seconds = times[n].best();
    results[n].busy = times[n].disagree();
  }
}

}  // namespace

std::size_t precision_steps(int runs) {
  return 1 + std::size(kNumberTypes) + std::size(kSharedScales) + static_cast<std::size_t>(runs);
}

PrecisionReport measure_precision(Engine& engine, const ModelNetwork& network, const std::vector<TextBatch>& texts,
                                  int runs, const Advance& advance) {
  PrecisionReport report{.batch_texts = texts.front().texts.size()};
  for (const TextBatch& batch : texts) {
    report.texts += batch.texts.size();
    report.tokens += batch.tokens;
  }
  const Weights weights = network.weights();
  const Exact exact(engine, network, weights, texts);
  advance(1);
  for (const NumberType type : kNumberTypes) {
    report.types.push_back({.type = type,
                            .loss = loss_of(engine, exact, weights, type, texts),
                            .bytes = packed_bytes(engine, weights, type)});
    advance(1);
  }
  for (const SharedScale scale : kSharedScales) {
    const RoundedWeights narrow = rounded(weights, scale);
    report.scales.push_back({.scale = scale,
                             .loss = loss_of(engine, exact, narrow.weights, NumberType::float32, texts),
                             .weight_error = narrow.error,
                             .worst_matrix = narrow.worst,
                             .worst_error = narrow.worst_error});
    advance(1);
  }
  time_types(engine, network, weights, texts, runs, advance, report.types);
  return report;
}

}  // namespace headlight::program
