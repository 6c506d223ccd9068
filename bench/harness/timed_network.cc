#include "harness/timed_network.h"

#include <algorithm>

#include "harness/clock.h"
#include "headlight/activation.h"
#include "kernels/gemm/kernels.h"
#include "layers/network/operations.h"
#include "layers/network/parts.h"
#include "layers/rows.h"
#include "ops/gemm/internal.h"
#include "ops/gemm/split.h"

namespace headlight::bench {
namespace {

using layers::GraphCall;
using layers::Operation;
using layers::RowRange;

double& time_of(PartTimes& times, BlockPart part) { return times[static_cast<std::size_t>(part)]; }

// Rows of a product's A, rounded as the product rounds them: where it does, by one thread.
void round_rows(Engine& engine, NumberType type, const TypedView<2>& x, std::vector<float>& rounded) {
  const kernels::GemmKernels& kernels = ops::gemm_kernels(engine, type);
  const kernels::GemmBlock block = ops::gemm_block(x, {}, {x.type, nullptr, {x.extent(0), 0}, {0, 1}});
  if (kernels.round_rows == nullptr || ops::lies_rounded(kernels, block)) return;
  rounded.resize(static_cast<std::size_t>(kernels.rounded_row(block.depth) * block.rows) + 16);
  const auto from = reinterpret_cast<std::uintptr_t>(rounded.data());
  kernels.round_rows(block, reinterpret_cast<float*>((from + 63) / 64 * 64));
}

// So many numbers from the first-level cache, where a product's sums are when it is done with them.
void activate_sums(Engine& engine, Activation activation, std::int64_t count) {
  constexpr std::int64_t kOfTile = 512;
  std::array<float, kOfTile> sums;
  for (std::size_t n = 0; n < sums.size(); ++n) sums[n] = static_cast<float>(n) / 128 - 2;
  for (std::int64_t first = 0; first < count; first += kOfTile) {
    const View<float, 2> rows(sums.data(), {1, std::min(kOfTile, count - first)}, {kOfTile, 1});
    activate(engine, activation, View<const float, 2>(rows), rows);
  }
}

}  // namespace

TimedNetwork::TimedNetwork(const NetworkSpec& spec) : spec_(layers::checked(spec)) {
  static_cast<void>(layers::add_network(graph_, spec_));
}

template <class Run>
void TimedNetwork::walk(Engine& engine, const EncoderInput& input, View<float, 2> hidden, const Run& run) const {
  class Runner final : public layers::Graph::Runner {
   public:
    explicit Runner(const Run& run) : run_(run) {}
    void run(const layers::Operation& operation, const GraphCall& call, const RowRange& rows) const override {
      run_(operation, call, rows);
    }

   private:
    const Run& run_;
  };
  graph_.forward(engine, {.tokens = input}, layers::one_sample(hidden), Runner(run));
}

BlockPart TimedNetwork::part_of(const Operation& of) const noexcept {
  const layers::OperationRange& block = graph_.operations().blocks().front();
  if (of.number() < block.first || of.number() >= block.end) return BlockPart::outside;
  const Operation* const operation = &of;
  if (dynamic_cast<const layers::ProductOperation*>(operation) != nullptr) return BlockPart::products;
  if (dynamic_cast<const layers::AttentionOperation*>(operation) != nullptr) return BlockPart::attention;
  if (dynamic_cast<const layers::NormOperation*>(operation) != nullptr) return BlockPart::norms;
  if (dynamic_cast<const layers::HeadsOperation*>(operation) != nullptr) return BlockPart::heads;
  if (dynamic_cast<const layers::GateOperation*>(operation) != nullptr) return BlockPart::gate;
  if (dynamic_cast<const layers::AnglesOperation*>(operation) != nullptr) return BlockPart::angles;
  return BlockPart::others;
}

PartTimes TimedNetwork::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden) const {
  PartTimes times{};
  walk(engine, input, hidden, [&](const Operation& operation, const GraphCall& call, const RowRange& rows) {
    const auto start = Clock::now();
    operation.forward(call, rows);
    time_of(times, part_of(operation)) += seconds_since(start);
  });
  return times;
}

PartTimes TimedNetwork::forward_within_products(Engine& engine, const EncoderInput& input,
                                                View<float, 2> hidden) const {
  PartTimes times{};
  std::vector<float> rounded;
  const FeedForwardSpec& spec = spec_.blocks.front().feed_forward;
  walk(engine, input, hidden, [&](const Operation& operation, const GraphCall& call, const RowRange& rows) {
    const BlockPart part = part_of(operation);
    const auto start = Clock::now();
    if (part == BlockPart::products) {
      round_rows(engine, precision(), call.at(operation.inputs()[0], rows), rounded);
      time_of(times, BlockPart::rounding) += seconds_since(start);
    } else if (dynamic_cast<const layers::ActivationOperation*>(&operation) != nullptr) {
      activate_sums(engine, spec.activation, rows.count * operation.output().columns);
      time_of(times, BlockPart::activation) += seconds_since(start);
    }
    operation.forward(call, rows);
  });
  return times;
}

void TimedNetwork::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                     const Weights*) {
  graph_.parameters().append_to(prefix, list);
}
void TimedNetwork::initialize_from(layers::Initializer& initializer) {
  graph_.parameters().initialize_from(initializer);
}
void TimedNetwork::make_gradients(bool wanted) { graph_.parameters().make_gradients(wanted); }
void TimedNetwork::set_open(bool open) noexcept { graph_.parameters().set_open(open); }

}  // namespace headlight::bench
