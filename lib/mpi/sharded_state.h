// What a rank keeps for training over ranks, and what it sends and gets in a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headlight/gradient_tree.h"
#include "headlight/mpi.h"
#include "mpi/shares.h"
#include "mpi/transport.h"

namespace headlight::mpi {

inline constexpr std::string_view kShardedAdamW = "mpi::ShardedAdamW";
inline constexpr std::size_t kMoments = 2;  // of AdamW

// Elements of one parameter that one rank updates: a run of the optimiser's.
struct Slice {
  std::size_t parameter;
  std::size_t begin;  // in the parameter
  std::size_t first;  // among the elements of all parameters
  std::size_t count;
};

// Elements or slices `begin` … end − 1.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const noexcept { return end - begin; }
};

// A sum over shards first … first + count − 1 of a rank, of the elements that this one updates.
struct Node {
  std::int64_t first;
  std::int64_t count;
  int rank;
  float* sum;
};

struct ShardedAdamW::State {
  State(Transport& of, std::vector<Parameter> list, std::int64_t count)
      : transport(of), parameters(std::move(list)), shards(count) {}

  void cut();
  void lay_out_nodes();
  void make_optimizer(const AdamWOptions& options);

  // Of step(): the sum of all shards' gradients, of the own elements; sums of squares of all slices; the others'
  // parameters.
  void add_up();
  void add_nodes();
  void exchange_sums(Engine& engine);
  void give_round();

  // Of collect_moments().
  void check_whole(std::span<const Parameter> whole) const;
  void bring_together(int root, std::span<const Parameter> own);
  void give_slices(std::span<const Parameter> to) const;

  // Of a rank.
  [[nodiscard]] Range slices_of(int rank) const noexcept {
    const auto r = static_cast<std::size_t>(rank);
    return {first_slices[r], first_slices[r + 1]};
  }
  [[nodiscard]] Range elements_of(int rank) const noexcept {
    const Range range = slices_of(rank);
    const auto first = [&](std::size_t slice) { return slice < slices.size() ? slices[slice].first : elements; };
    return {first(range.begin), first(range.end)};
  }
  [[nodiscard]] Range own_slices() const noexcept { return slices_of(transport.rank()); }
  [[nodiscard]] Range own_elements() const noexcept { return elements_of(transport.rank()); }
  [[nodiscard]] std::span<float> values(const Slice& slice) const noexcept {
    return parameters[slice.parameter].values.subspan(slice.begin, slice.count);
  }
  [[nodiscard]] std::span<float> gradient(const Slice& slice) const noexcept {
    return parameters[slice.parameter].gradient.subspan(slice.begin, slice.count);
  }
  [[nodiscard]] Run own_shards() const noexcept { return shards_of(shards, transport.rank(), transport.size()); }
  [[nodiscard]] bool all_taken() const noexcept {
    const std::int64_t count = own_shards().count;
    if (count == 0) return true;
    return !tree->nodes().empty() &&
           tree->nodes().back().first + tree->nodes().back().count == own_shards().first + count;
  }

  Transport& transport;
  std::vector<Parameter> parameters;
  std::int64_t shards;
  std::size_t elements = 0;
  std::vector<Slice> slices;
  std::vector<std::size_t> first_slices;    // of each rank, and the end
  std::optional<GradientTree> tree;         // where the rank has shards
  std::optional<AdamW> adamw;               // of the own slices, each a parameter
  std::vector<Node> nodes;                  // of all ranks, ascending
  std::vector<Node> joined;                 // room for as many
  std::vector<float> communication_buffer;  // nodes' sums as they come, or parameters as they go and come
  std::vector<double> sums;                 // of squares, of each slice
};

}  // namespace headlight::mpi
