// Where the time of a block of a published encoder goes: its products, attention, and what lies between them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/case_name.h"
#include "harness/family_block.h"
#include "harness/statistics.h"
#include "harness/suite.h"
#include "harness/timed_network.h"
#include "headlight/layers/network.h"
#include "layers/encoder_twin.h"
#include "layers/network_case.h"

namespace headlight::bench {
namespace {

struct Batch {
  std::int64_t sequences, tokens;
};

// The same weights, as headlight runs them and operation by operation, in a precision.
struct Networks {
  Networks(const NetworkSpec& spec, NumberType precision) : whole(spec), timed(spec) {
    whole.initialize(1);
    timed.initialize(1);
    whole.set_precision(precision);
    timed.set_precision(precision);
  }
  Network whole;
  TimedNetwork timed;
};

// Cases of one come one after another.
std::shared_ptr<const Networks> networks_of(const Family& family, NumberType precision) {
  static std::pair<std::string, std::shared_ptr<const Networks>> last;
  const std::string wanted = case_name(family.name, "/", name(precision));
  if (last.first != wanted) last = {wanted, std::make_shared<const Networks>(family.network, precision)};
  return last.second;
}

test::Tokens tokens_of(const Family& family, const Batch& batch) {
  test::Random random(1);
  return {random, family.network.embedding.vocabulary,
          std::vector<std::int64_t>(static_cast<std::size_t>(batch.sequences), batch.tokens)};
}

struct Operands {
  Operands(const Family& family, const Batch& batch, NumberType precision)
      : networks(networks_of(family, precision)),
        tokens(tokens_of(family, batch)),
        hidden({tokens.count(), family.network.width}) {}
  std::shared_ptr<const Networks> networks;
  test::Tokens tokens;
  Tensor<float, 2> hidden;
  // What each pass found.
  std::vector<PartTimes> parts, within_products;
};

// A sequence of 128 tokens at most against float64, computed once for a family. Rows are off by no more than 8
// roundings of 2⁻⁹, of both operands of four products, add up to; in int8 by half of a row at most: one of other
// weights is off by 1.4 of it.
bool network_is_right(const Family& family, const Network& network, Engine& engine) {
  static std::map<std::string, Tensor<double, 2>> truths;
  const test::Tokens tokens = tokens_of(family, {1, 128});
  if (!truths.contains(family.name)) {
    const test::TwinWeights<double> weights(network.weights());
    truths.emplace(family.name, test::network_twin<double>(network.spec(), weights, tokens));
  }
  const Tensor<double, 2>& truth = truths.at(family.name);
  const double most = network.precision() == NumberType::float32 ? 1e-5
                      : network.precision() == NumberType::int8  ? 0.5
                                                                 : 8 * 0x1p-9;
  Tensor<float, 2> hidden(truth.shape());
  network.forward(engine, tokens.input(), hidden);
  for (std::int64_t row = 0; row < truth.shape()[0]; ++row) {
    double error = 0, norm = 0;
    for (std::int64_t e = 0; e < truth.shape()[1]; ++e) {
      const double off = static_cast<double>(hidden(row, e)) - truth(row, e);
      error += off * off;
      norm += truth(row, e) * truth(row, e);
    }
    if (!(error <= most * most * norm)) return false;
  }
  return true;
}

using TimedForward = PartTimes (TimedNetwork::*)(Engine&, const EncoderInput&, View<float, 2>) const;

PartTimes timed(Operands& operands, TimedForward forward, Engine& engine) {
  return (operands.networks->timed.*forward)(engine, operands.tokens.input(), operands.hidden);
}

// The network, and the bits that its operations make one by one.
bool is_right(const Family& family, Operands& operands, Engine& engine) {
  if (!network_is_right(family, operands.networks->whole, engine)) return false;
  const std::vector<float> whole(operands.hidden.begin(), operands.hidden.end());
  for (const TimedForward forward : {&TimedNetwork::forward, &TimedNetwork::forward_within_products}) {
    std::fill(operands.hidden.begin(), operands.hidden.end(), 0.0f);
    static_cast<void>(timed(operands, forward, engine));
    if (std::memcmp(whole.data(), operands.hidden.data(), whole.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

double seconds_of(const PartTimes& times, BlockPart part) { return times[static_cast<std::size_t>(part)]; }

// Of one layer of the model: of the angles, which are computed once for all layers, its share.
double layer_seconds(const Family& family, const PartTimes& times) {
  double sum = seconds_of(times, BlockPart::angles) / static_cast<double>(family.layers);
  for (const BlockPart part : {BlockPart::products, BlockPart::attention, BlockPart::norms, BlockPart::heads,
                               BlockPart::gate, BlockPart::others}) {
    sum += seconds_of(times, part);
  }
  return sum;
}

// Medians of shares of the same pass; of what is within products, whose passes are others, of that median.
std::vector<std::pair<std::string, double>> shares_of(const Family& family, const Operands& operands) {
  std::vector<double> layers;
  for (const PartTimes& times : operands.parts) layers.push_back(layer_seconds(family, times));
  const double layer = median(layers);
  const auto of = [&](std::initializer_list<BlockPart> parts) {
    std::vector<double> shares;
    for (const PartTimes& times : operands.parts) {
      double sum = 0;
      for (const BlockPart part : parts) {
        sum += seconds_of(times, part) / (part == BlockPart::angles ? static_cast<double>(family.layers) : 1);
      }
      shares.push_back(sum / layer_seconds(family, times));
    }
    return median(shares);
  };
  const auto within = [&](BlockPart part) {
    std::vector<double> seconds;
    for (const PartTimes& times : operands.within_products) seconds.push_back(seconds_of(times, part));
    return median(seconds) / layer;
  };
  using enum BlockPart;
  return {{"layer_seconds", layer},
          {"share|products", of({products})},
          {"share|attention", of({attention})},
          {"share|norms", of({norms})},
          {"share|heads", of({heads})},
          {"share|gate", of({gate})},
          {"share|angles", of({angles})},
          {"share|rows", of({norms, heads, gate, angles, others})},
          {"share|(rounding)", within(rounding)},
          {"share|(activation)", within(activation)}};
}

Work block_work(const Family& family, const Batch& batch, NumberType precision, const CaseContext& context) {
  const auto operands = std::make_shared<Operands>(family, batch, precision);
  Engine* const engine = &context.engine;
  Work work;
  work.run = [=] { operands->networks->whole.forward(*engine, operands->tokens.input(), operands->hidden); };
  work.is_right = [=] { return is_right(family, *operands, *engine); };
  work.operations = block_operations(family.network, batch.sequences, batch.tokens);
  work.type = precision;
  work.beside = {
      [=] { operands->parts.push_back(timed(*operands, &TimedNetwork::forward, *engine)); },
      [=] { operands->within_products.push_back(timed(*operands, &TimedNetwork::forward_within_products, *engine)); }};
  work.found = [=] { return shares_of(family, *operands); };
  return work;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Family& family : published_families()) {
    for (const NumberType precision : {NumberType::float32, NumberType::bfloat16, NumberType::int8}) {
      for (const Batch& batch : {Batch{1, 16}, {1, 128}, {1, 2048}, {32, 128}}) {
        all.push_back({case_name(family.name, "/", name(precision), "/", batch.sequences, "x", batch.tokens),
                       [=](const CaseContext& context) { return block_work(family, batch, precision, context); },
                       batch.sequences * batch.tokens == 128,
                       precision == NumberType::int8 && batch.tokens == 16 && family.layers == 22});
      }
    }
  }
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) { return headlight::bench::run_suite("blocks", headlight::bench::cases(), argc, argv); }
