// The parts of a network: which parameters and operations each consists of. This is where a specification becomes a
// graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headlight/layers/network_spec.h"
#include "layers/network/graph.h"
#include "layers/network/logits.h"
#include "layers/network/operations.h"
#include "runtime/inner_api.h"

namespace headlight::layers {

// Throws std::invalid_argument naming the field where sizes do not fit together. The specification with every size set.
[[nodiscard]] HEADLIGHT_INNER_API NetworkSpec checked(const NetworkSpec& spec);

// Adds all of a checked specification, and finishes the graph; and what logits are made with, which are no part of it.
// Throws OutOfMemory.
HEADLIGHT_INNER_API Logits add_network(Graph& graph, const NetworkSpec& spec);
// The same of one block alone, its names behind "block.", every size set: of what is given, which is that wide. With a
// memory it attends to that, too, behind itself, by the same specification: then heads have no norms, no rotary angles
// and no relative bias, which are of a block's own tokens alone.
HEADLIGHT_INNER_API void add_block(Graph& graph, std::int64_t width, const BlockSpec& spec, float dropout,
                                   bool has_memory);

// Parts that parts consist of.
class Parts {
 public:
  // `skips_biases`: whether what comes behind a bias that is missing has the first values that it has behind one.
  Parts(Graph& graph, float dropout, bool skips_biases = false) noexcept
      : graph_(graph), dropout_(dropout), skips_biases_(skips_biases) {}

  // What follows belongs to the part of that number, for dropout: a block, or, behind the last one, the embeddings. Its
  // parameters get their first values as a TransformerEncoderLayer's do: those of products, then those of norms.
  void begin(std::size_t part, int turn) noexcept {
    part_ = static_cast<std::uint32_t>(part);
    turn_ = turn;
    graph_.parameters().begin_turn(turn);
  }

  [[nodiscard]] Slice embedding(const std::string& name, std::int64_t width, const EmbeddingSpec& spec);
  [[nodiscard]] Slice block(const std::string& name, const BlockSpec& spec, const Slice& x, bool has_memory = false);
  // Of the embeddings that there are.
  [[nodiscard]] Logits logits(const std::string& name, std::int64_t width, const EmbeddingSpec& embedding,
                              const LogitsSpec& spec);
  // norm(x) + added, where that is given; x itself where there is no norm (and nothing is added).
  [[nodiscard]] Slice norm(const std::string& name, const NormSpec& spec, const Slice& x, const Slice& added = {});

 private:
  // x with a residual part F of it: `normalized` is before(x).
  template <class Part>
  [[nodiscard]] Slice residual(const std::string& name, const ResidualSpec& spec, const Slice& x,
                               const Slice& normalized, const Part& part);
  // [query | key | value] of x as attention reads them, or the query alone and what projects the memory; and the weight
  // that makes them.
  struct Projected {
    Slice heads;
    MatrixParameter* by = nullptr;
    std::optional<MemoryProjection> memory{};
  };
  [[nodiscard]] Projected project(const std::string& name, const AttentionSpec& spec, const Slice& x, bool of_memory);
  [[nodiscard]] Slice attention(const std::string& name, const AttentionSpec& spec, const Projected& projected,
                                const Slice& x, const Slice& added);
  [[nodiscard]] Slice heads(const std::string& name, const AttentionSpec& spec, MatrixParameter& projection,
                            const Slice& x);
  // What the last product takes of the heads that x was attended to with.
  [[nodiscard]] Slice merge(const std::string& name, const AttentionSpec& spec, const Slice& x, const Slice& heads);
  [[nodiscard]] Slice feed_forward(const std::string& name, const FeedForwardSpec& spec, const Slice& x,
                                   const Slice& added);

  // Those that heads are turned by: computed for the first block that asks for them, and for all others.
  [[nodiscard]] Slice angles(const RotarySpec& spec, std::int64_t head_dim);
  // What a table makes of distances: for the first block that asks for it, and for all others, which ask for the same.
  struct RelativeBias {
    MatrixParameter* table = nullptr;
    Slice value;
  };
  [[nodiscard]] const RelativeBias& relative_bias(const AttentionSpec& spec);
  struct NormParameters {
    VectorParameter* weight = nullptr;
    VectorParameter* bias = nullptr;
  };
  [[nodiscard]] NormParameters norm_parameters(const std::string& name, const NormSpec& spec, std::int64_t width);
  // The bias of a product, or null.
  [[nodiscard]] VectorParameter* bias(const MatrixParameter& weight, bool wanted);

  struct Angles {
    RotarySpec spec;
    std::int64_t head_dim;
    Slice value;
  };

  [[nodiscard]] DropoutPlace dropout(std::uint32_t place) const noexcept { return {dropout_, part_, place}; }

  Graph& graph_;
  float dropout_;
  bool skips_biases_;
  std::uint32_t part_ = 0;
  int turn_ = 0;  // of products' parameters
  std::vector<Angles> angles_;
  RelativeBias relative_bias_;
  MatrixParameter* words_ = nullptr;  // the table
};

}  // namespace headlight::layers
