// What the demonstration model says of a sentence, and which heads look where its answers lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/headlight/beams/beams.h"
#include "tools/headlight/demonstration/default_model.h"

namespace headlight::program {

// One relation that the model has found, read off the merged output at `from`, and the head that looks along it most.
struct FoundRelation {
  demonstration::Relation relation{};
  std::int64_t from = 0, to = 0;  // words of the picture
  std::int64_t layer = 0, head = 0;
  float weight = 0;
};

// Empty where the model knows no relations, or the picture shows no word for each token.
[[nodiscard]] std::vector<FoundRelation> find_relations(Engine& engine, const demonstration::LoadedModel& model,
                                                        const std::string& text, const Beams& beams);

// Lines for the terminal.
[[nodiscard]] std::string relations_summary(const std::vector<FoundRelation>& found, const Beams& beams);

}  // namespace headlight::program
