#include "harness/minilm_case.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "harness/spans.h"
#include "headlight/layers/encoder.h"
#include "layers/encoder_twin.h"

#if defined(HEADLIGHT_BENCH_MODELS)
#include "headlight/models/text_encoder.h"
#endif

namespace headlight::bench {
namespace {

constexpr EncoderOptions kMiniLm{.vocabulary = 30522,
                                 .max_positions = 512,
                                 .token_types = 2,
                                 .width = 384,
                                 .heads = 12,
                                 .feed_forward_width = 1536,
                                 .layers = 6};

std::shared_ptr<const Encoder> load([[maybe_unused]] const std::string& folder, NumberType precision) {
#if defined(HEADLIGHT_BENCH_MODELS)
  if (std::filesystem::exists(folder + "/model.safetensors"))
    return std::make_shared<const Encoder>(std::move(models::load(folder, {.precision = precision}).network()));
#endif
  auto encoder = std::make_shared<Encoder>(kMiniLm);
  encoder->initialize(1);
  encoder->set_precision(precision);
  return encoder;
}

// One of each type, for all cases.
std::shared_ptr<const Encoder> encoder_of(const std::string& folder, NumberType precision) {
  static std::map<NumberType, std::shared_ptr<const Encoder>> loaded;
  if (!loaded.contains(precision)) loaded.emplace(precision, load(folder, precision));
  return loaded.at(precision);
}

struct Operands {
  Operands(std::shared_ptr<const Encoder> encoder_, const test::Tokens& tokens_)
      : encoder(std::move(encoder_)), tokens(tokens_), hidden({tokens.count(), encoder->options().width}) {}
  std::shared_ptr<const Encoder> encoder;
  test::Tokens tokens;
  Tensor<float, 2> hidden;
};

test::Tokens tokens_of(const TokenBatch& batch, std::int64_t vocabulary) {
  test::Random random(1);
  return {random, vocabulary, std::vector<std::int64_t>(static_cast<std::size_t>(batch.sequences), batch.tokens)};
}

// Whether rows are off by no more than 8 roundings of 2⁻⁹ a layer, of both operands of four products, add up to; in
// int8, where the largest numbers of rows decide, by half of a row: one of other weights is off by 1.4 of it.
bool is_near(const Tensor<float, 2>& hidden, const Tensor<double, 3>& truth, NumberType type) {
  const double most = type == NumberType::int8 ? 0.5 : static_cast<double>(8 * kMiniLm.layers) * 0x1p-9;
  const std::int64_t width = hidden.shape()[1];
  for (std::int64_t row = 0; row < truth.shape()[1]; ++row) {
    double error = 0, norm = 0;
    for (std::int64_t e = 0; e < width; ++e) {
      const double expected = truth(0, row, e), off = static_cast<double>(hidden(row, e)) - expected;
      error += off * off;
      norm += expected * expected;
    }
    if (!(error <= most * most * norm)) return false;
  }
  return true;
}

// The first sequence against float64, computed once for each length: a batch begins with the tokens of the single one.
bool is_right(const Operands& operands, std::int64_t length) {
  static std::map<std::int64_t, Tensor<double, 3>> truths;
  if (!truths.contains(length))
    truths.emplace(length, test::encoder_twin<double>(*operands.encoder, operands.tokens.only(0)));
  const Tensor<double, 3>& truth = truths.at(length);
  const NumberType precision = operands.encoder->precision();
  if (precision != NumberType::float32) return is_near(operands.hidden, truth, precision);
  for (std::int64_t n = 0; n < truth.size(); ++n) {
    // Six layers of float32 rounding stay far below this for normalised rows; a wrong weight or head does not.
    if (!(std::abs(operands.hidden.data()[n] - truth.data()[n]) < 1e-4)) return false;
  }
  return true;
}

// Two for each multiply-add of projections, feed-forward and attention.
double operations_of(const TokenBatch& batch, const EncoderOptions& made) {
  const auto width = static_cast<double>(made.width);
  const double layer = 2 * width * (4 * width + 2 * static_cast<double>(made.feed_forward_width)) +
                       4 * static_cast<double>(batch.tokens) * width;
  return static_cast<double>(batch.sequences * batch.tokens) * layer * static_cast<double>(made.layers);
}

}  // namespace

Work minilm_work(const TokenBatch& batch, const CaseContext& context, NumberType precision) {
  const std::shared_ptr<const Encoder> encoder = encoder_of(context.options.model, precision);
  const auto operands = std::make_shared<Operands>(encoder, tokens_of(batch, encoder->options().vocabulary));
  Engine* engine = &context.engine;
  Work work;
  work.run = [operands, engine] { operands->encoder->forward(*engine, operands->tokens.input(), operands->hidden); };
  work.is_right = [operands, batch] { return is_right(*operands, batch.tokens); };
  work.operations = operations_of(batch, encoder->options());
  work.type = precision;
  if (precision != NumberType::float32) {
    const Work wide = minilm_work(batch, context);
    work.peers.push_back({"headlight in float32", "", wide.run});
    return work;
  }
  add_weights(encoder->weights(), work.reads);
  work.writes = writes_of(operands->hidden);
  // So few tokens that the layers' weights, read once a call, may take longer than the arithmetic.
  work.bound_by_reading = batch.sequences * batch.tokens <= 8;
  return work;
}

}  // namespace headlight::bench
