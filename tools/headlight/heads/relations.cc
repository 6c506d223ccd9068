// Which heads look where a demonstration model finds subjects, objects, and what `it` stands for.
#include "tools/headlight/beams/relations.h"

#include "tools/headlight/heads/heads.h"

namespace headlight::program {

std::vector<RelationLooks> run_relations(Engine& engine, const demonstration::LoadedModel& model, TextSource& texts,
                                         const Advance& advance) {
  if (!model.readout) return {};
  const EncoderOptions& options = model.encoder.options().encoder;
  const ModelNetwork network(model.encoder, "the model");
  std::vector<RelationLooks> relations;
  std::vector<double> counts(demonstration::kRelations);
  for (std::size_t number = 0; number < demonstration::kRelations; ++number) {
    relations.push_back({static_cast<demonstration::Relation>(number),
                         std::vector<double>(static_cast<std::size_t>(options.layers * options.heads))});
  }
  texts.rewind();
  for (std::string text; texts.next(text);) {
    const Beams beams = beams_of_text(engine, model.encoder, network, text, /*pieces=*/true);
    for (const FoundRelation& found : find_relations(engine, model, text, beams)) {
      const auto relation = static_cast<std::size_t>(found.relation);
      ++counts[relation];
      auto weight = relations[relation].weights.begin();
      for (const BeamLayer& layer : beams.layers) {
        for (std::int64_t head = 0; head < options.heads; ++head) {
          *weight++ += static_cast<double>(layer.weights(head, found.from, found.to));
        }
      }
    }
    advance(1);
  }
  const auto count_of = [&](const RelationLooks& one) { return counts[static_cast<std::size_t>(one.relation)]; };
  std::erase_if(relations, [&](const RelationLooks& one) { return count_of(one) == 0; });
  for (RelationLooks& one : relations) {
    for (double& weight : one.weights) weight /= count_of(one);
  }
  return relations;
}

std::vector<std::string> names_of(const HeadsReport& report, std::int64_t number) {
  const auto head = static_cast<std::size_t>(number);
  std::vector<std::string> names = kind_names(report.attention[head].kinds());
  for (const RelationLooks& relation : report.relations) {
    if (relation.weights[head] >= kAlongRelation) names.emplace_back(name(relation.relation));
  }
  return names;
}

}  // namespace headlight::program
