// What the output loses when heads are silenced: every batch goes through the network twice.
#include <algorithm>
#include <cmath>
#include <map>

#include "headlight/normalization.h"
#include "tools/headlight/heads/heads.h"
#include "tools/headlight/heads/texts.h"

namespace headlight::program {
namespace {

// Last hidden states [N, E] and sentence vectors [texts, E] of unit length.
struct Output {
  Tensor<float, 2> hidden;
  Tensor<float, 2> vectors;
};

Output run_network(Engine& engine, const ModelNetwork& network, const TextBatch& batch,
                   std::span<const LayerHeads> heads) {
  const std::int64_t width = network.sizes().width;
  const models::TokenBatch packed = batch.packed();
  Output output{Tensor<float, 2>({batch.tokens, width}),
                Tensor<float, 2>({static_cast<std::int64_t>(batch.texts.size()), width})};
  network.forward(engine, packed.input_by_place(network.has_token_types(), packed.sequences()), output.hidden, {},
                  heads);
  mean_pool(engine, output.hidden, packed.offsets(), output.vectors, true);
  return output;
}

double dot(const float* a, const float* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t n = 0; n < count; ++n) sum += static_cast<double>(a[n]) * static_cast<double>(b[n]);
  return sum;
}

}  // namespace

PruningReport run_without(Engine& engine, const models::TextEncoder& model, const ModelNetwork& network,
                          TextSource& texts, const std::vector<HeadName>& silenced, const Advance& advance) {
  PruningReport report;
  report.silenced = silenced;
  std::map<std::int64_t, std::vector<std::int64_t>> by_layer;
  for (const HeadName& name : silenced) by_layer[name.layer].push_back(name.head);
  std::vector<LayerHeads> heads;
  for (const auto& [layer, numbers] : by_layer) heads.push_back({.layer = layer, .silenced = numbers});

  double squares = 0, changed = 0, cosines = 0, least = 2;
  TextBatches batches(model, texts);
  for (TextBatch batch; batches.next(batch);) {
    const Output before = run_network(engine, network, batch, {});
    const Output after = run_network(engine, network, batch, heads);
    for (std::int64_t n = 0; n < before.hidden.size(); ++n) {
      const auto h = static_cast<double>(before.hidden.data()[n]);
      const double step = static_cast<double>(after.hidden.data()[n]) - h;
      squares += h * h;
      changed += step * step;
    }
    const std::int64_t width = before.vectors.shape()[1];
    for (std::int64_t text = 0; text < before.vectors.shape()[0]; ++text) {
      const double cosine = dot(&before.vectors(text, 0), &after.vectors(text, 0), width);
      cosines += cosine;
      if (cosine < least) {
        least = cosine;
        report.least_text = batch.first + static_cast<std::size_t>(text);
      }
    }
    advance(batch.texts.size());
  }
  report.change = squares == 0 ? analysis::Measure(analysis::Undefined::zero) : std::sqrt(changed / squares);
  report.mean_cosine = cosines / static_cast<double>(texts.size());
  report.least_cosine = least;
  return report;
}

}  // namespace headlight::program
