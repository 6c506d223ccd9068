// headlight study precision: what a model loses when its products multiply narrower numbers, and what it gains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/layers/encoder.h"
#include "headlight/number_type.h"
#include "headlight/parameters.h"
#include "headlight/tensor.h"
#include "tools/headlight/heads/heads.h"
#include "tools/headlight/heads/texts.h"

namespace headlight::program {

// Which weights share a scale, where they alone are rounded to 8-bit integers: w' = s · round(w / s), s = max|w| / 127
// over all that share it, round to nearest even. `channel_but_outliers`: the largest of each matrix, one in a thousand,
// stay as they are and have no part in the scales (Dettmers et al. 2023, SpQR, keep such weights apart).
enum class SharedScale : std::uint8_t { tensor, channel, channel_but_outliers };

inline constexpr SharedScale kSharedScales[] = {SharedScale::tensor, SharedScale::channel,
                                                SharedScale::channel_but_outliers};
[[nodiscard]] const char* name(SharedScale scale) noexcept;

// The weights of all layers' products, rounded; all others as they were.
struct RoundedWeights {
  std::vector<Tensor<float, 2>> matrices{};
  Weights weights;
  double error = 0;  // ‖W' − W‖ / ‖W‖ over all of these matrices together (Frobenius)
  std::string worst{};
  double worst_error = 0;  // that of a matrix by itself, and its name
};
[[nodiscard]] RoundedWeights rounded(const Weights& weights, SharedScale scale);

// Whether it is the matrix of a product, and not a table or a vector.
[[nodiscard]] bool is_multiplied(const std::string& name, const WeightView& weight) noexcept;

// How far results are from those of float32.
struct PrecisionLoss {
  // ‖H' − H‖ / ‖H‖ of the hidden states after 1, 2, … layers and a last norm, if there is one, over the first batch.
  std::vector<double> by_layer{};
  // Of the texts' vectors, their mean hidden states, and those of float32.
  double least_cosine = 1, mean_cosine = 1;
  double neighbours_kept = 1;  // texts whose most similar other text is the same one, of all
};

struct TypeResult {
  NumberType type = NumberType::float32;
  PrecisionLoss loss{};
  double seconds = 0;  // all texts through the network, the best of several runs in turn with the other types
  double bytes = 0;    // of the matrices of all layers as products read them, scales included
  bool busy = false;   // the runs disagree
};

struct ScaleResult {
  SharedScale scale = SharedScale::tensor;
  PrecisionLoss loss{};
  double weight_error = 0;
  std::string worst_matrix{};
  double worst_error = 0;
};

struct PrecisionReport {
  std::size_t texts = 0;
  std::int64_t tokens = 0;
  std::size_t batch_texts = 0;      // those whose layers were compared
  std::vector<TypeResult> types{};  // float32 first
  std::vector<ScaleResult> scales{};
};

// So often measure_precision() calls advance(1).
[[nodiscard]] std::size_t precision_steps(int runs);
// Over at least two texts, with a network of at least one layer.
[[nodiscard]] PrecisionReport measure_precision(Engine& engine, const ModelNetwork& network,
                                                const std::vector<TextBatch>& texts, int runs, const Advance& advance);

// What the command writes of it.
struct PrecisionSource {
  std::string model;  // its name
  EncoderOptions options;
  bool quick = false;
  int runs = 0;
};
[[nodiscard]] std::string precision_table(const Engine& engine, const PrecisionSource& source,
                                          const PrecisionReport& report);
[[nodiscard]] std::string precision_document(const PrecisionSource& source, const PrecisionReport& report);
[[nodiscard]] std::string precision_chart(const PrecisionSource& source, const PrecisionReport& report);

}  // namespace headlight::program
