// What a demonstration model has learned: how often it is right, and which heads look where.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/headlight/demonstration/model.h"

namespace headlight::demonstration {

// Sentences 0 … count − 1 of the seed.
[[nodiscard]] std::vector<Sentence> sentences(std::uint64_t seed, std::size_t count, Part part);

struct Evaluation {
  std::array<double, kRelations> accuracy{};  // the share of questions whose best-scored word is the right one
  std::array<std::int64_t, kRelations> questions{};
  std::array<double, kRelations> loss{};  // mean cross-entropy

  [[nodiscard]] double least_accuracy() const noexcept;
};
[[nodiscard]] Evaluation evaluate(Engine& engine, const Model& model, std::span<const Sentence> sentences);

// How much a head looks along a relation.
struct RelationHead {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  double weight = 0;  // the mean softmax weight from a word to the one at the other end
};
// For each relation all heads, the one that looks along it most first.
[[nodiscard]] std::array<std::vector<RelationHead>, kRelations> heads_of_relations(Engine& engine, const Model& model,
                                                                                   std::span<const Sentence> sentences);

}  // namespace headlight::demonstration
