// How much the sentence vectors would miss a head: every batch goes through the network and back.
#include "headlight/normalization.h"
#include "runtime/random.h"
#include "tools/headlight/heads/heads.h"
#include "tools/headlight/heads/texts.h"

namespace headlight::program {
namespace {

class ImportanceOfHeads final : public HeadVisitor {
 public:
  explicit ImportanceOfHeads(const NetworkSizes& sizes)
      : heads_(sizes.heads), layers_(static_cast<std::size_t>(sizes.layers), analysis::HeadImportance(heads_)) {}

  // The texts of the pass that comes next.
  void set_offsets(std::span<const std::int64_t> offsets) noexcept { offsets_ = offsets; }

  void visit(Engine& engine, std::int64_t layer, View<const float, 3> outputs, View<float, 3> gradient) override {
    static_cast<void>(engine);
    const std::int64_t head_dim = outputs.extent(2) / heads_;
    const std::array<std::int64_t, 3> shape = {outputs.extent(1), heads_, head_dim};
    layers_[static_cast<std::size_t>(layer)].add({outputs.data, shape, {outputs.stride(1), head_dim, 1}},
                                                 {gradient.data, shape, {gradient.stride(1), head_dim, 1}}, offsets_);
  }

  [[nodiscard]] std::vector<analysis::Measure> all() const {
    std::vector<analysis::Measure> measures;
    for (const analysis::HeadImportance& layer : layers_) {
      for (std::int64_t head = 0; head < heads_; ++head) measures.push_back(layer.importance(head));
    }
    return measures;
  }

 private:
  std::int64_t heads_;
  std::vector<analysis::HeadImportance> layers_;
  std::span<const std::int64_t> offsets_;
};

// A direction for each text: its own whatever texts stand beside it.
void draw_directions(const TextBatch& batch, std::uint64_t seed, Tensor<float, 2>& directions) {
  const auto width = static_cast<std::size_t>(directions.shape()[1]);
  for (std::size_t text = 0; text < batch.texts.size(); ++text) {
    const auto stream = static_cast<std::uint32_t>(batch.first + text);
    runtime::fill_normal({directions.data() + text * width, width}, 0.0f, 1.0f, seed, stream);
  }
}

}  // namespace

std::vector<analysis::Measure> run_importance(Engine& engine, const models::TextEncoder& model,
                                              const ModelNetwork& network, TextSource& texts, std::uint64_t seed,
                                              const Advance& advance) {
  std::variant<Encoder, Network> trained = network.trainable();
  ImportanceOfHeads importance(network.sizes());
  SavedState saved;
  TextBatches batches(model, texts);
  const std::int64_t width = network.sizes().width;
  for (TextBatch batch; batches.next(batch);) {
    const models::TokenBatch packed = batch.packed();
    const EncoderInput input = packed.input_by_place(network.has_token_types(), packed.sequences());
    Tensor<float, 2> hidden({batch.tokens, width}), gradient(hidden.shape());
    Tensor<float, 2> directions({static_cast<std::int64_t>(batch.texts.size()), width});
    draw_directions(batch, seed, directions);
    std::visit([&](auto& layer) { layer.forward(engine, input, hidden, saved, TrainingStep()); }, trained);
    mean_pool_backward(engine, hidden, packed.offsets(), directions, gradient, true);
    importance.set_offsets(packed.offsets());
    std::visit([&](auto& layer) { layer.backward(engine, input, saved, gradient, &importance); }, trained);
    advance(batch.texts.size());
  }
  return importance.all();
}

}  // namespace headlight::program
