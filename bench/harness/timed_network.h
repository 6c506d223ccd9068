// A network with a look at the clock around each of its operations, on the same way through the same graph as
// Network::forward(): what an operation reads has just been written, and what lies in a cache does so here, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/layers/layer.h"
#include "headlight/layers/network_spec.h"
#include "layers/network/graph.h"

namespace headlight::bench {

// What a block consists of. Products quantize, or round, the rows that they read, and apply an activation that no gate
// has: those two are within the products' time.
enum class BlockPart : std::uint8_t {
  products,
  attention,
  norms,  // with the residual, where that is added there
  heads,  // turned, and normalised where the family does so; rounded to bfloat16 where attention multiplies that
  gate,
  angles,   // which heads are turned by
  others,   // sums with a factor
  outside,  // of the block: tokens that are looked up
  rounding,
  activation,
};
inline constexpr std::size_t kBlockParts = 10;

// Seconds of each in one pass.
using PartTimes = std::array<double, kBlockParts>;

class TimedNetwork final : public Layer {
 public:
  explicit TimedNetwork(const NetworkSpec& spec);

  // hidden [N, E]. The bits are those of Network::forward().
  [[nodiscard]] PartTimes forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden) const;
  // The same, where each product finds its rows rounded once more, and each of its results activated once more, into
  // memory that nobody reads: how long that takes is all that is told, as `rounding` and `activation`.
  [[nodiscard]] PartTimes forward_within_products(Engine& engine, const EncoderInput& input,
                                                  View<float, 2> hidden) const;

  void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                         const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void make_gradients(bool wanted) override;
  void set_open(bool open) noexcept override;

 private:
  [[nodiscard]] std::string_view type_name() const noexcept override { return "TimedNetwork"; }
  template <class Run>
  void walk(Engine& engine, const EncoderInput& input, View<float, 2> hidden, const Run& run) const;
  [[nodiscard]] BlockPart part_of(const layers::Operation& operation) const noexcept;

  layers::Graph graph_{"TimedNetwork"};
  NetworkSpec spec_;
};

}  // namespace headlight::bench
