#include "tools/headlight/beams/relations.h"

#include <cstdio>

namespace headlight::program {
namespace {

using demonstration::Grammar;
using demonstration::Question;

// The head that looks from one word at the other most.
void find_head(const Beams& beams, FoundRelation& found) {
  for (std::size_t layer = 0; layer < beams.layers.size(); ++layer) {
    for (std::int64_t head = 0; head < beams.heads; ++head) {
      const float weight = beams.layers[layer].weights(head, found.from, found.to);
      if (weight <= found.weight) continue;
      found.layer = static_cast<std::int64_t>(layer);
      found.head = head;
      found.weight = weight;
    }
  }
}

}  // namespace

std::vector<FoundRelation> find_relations(Engine& engine, const demonstration::LoadedModel& model,
                                          const std::string& text, const Beams& beams) {
  if (!model.readout) return {};
  const models::Tokenizer& tokenizer = model.encoder.tokenizer();
  const std::vector<std::int64_t> ids = tokenizer.encode(text, model.encoder.options().max_length);
  if (static_cast<std::int64_t>(ids.size()) != beams.length()) return {};
  std::vector<std::string_view> words;
  for (const std::int64_t id : ids) words.push_back(tokenizer.find_token(id));
  const View<const std::int64_t, 2> row(ids.data(), {1, beams.length()});
  const Tensor<float, 3> hidden = model.encoder.encode(engine, row);
  const View<const float, 2> rows(hidden.data(), {beams.length(), hidden.shape()[2]});
  std::vector<FoundRelation> all;
  for (const Question& question : Grammar::questions(words)) {
    const auto from = static_cast<std::int64_t>(question.from);
    const Tensor<float, 2> scores = model.readout->scores(engine, rows, {&from, 1}, question.relation);
    // Of the words that the sentence has, but for the one that asks.
    FoundRelation found{.relation = question.relation, .from = from, .to = -1};
    for (std::int64_t to = 0; to < beams.length(); ++to) {
      if (to == from || beams.words[static_cast<std::size_t>(to)].special) continue;
      const auto score = [&](std::int64_t word) { return scores(0, ids[static_cast<std::size_t>(word)]); };
      if (found.to < 0 || score(to) > score(found.to)) found.to = to;
    }
    if (found.to < 0) continue;
    find_head(beams, found);
    all.push_back(found);
  }
  return all;
}

std::string relations_summary(const std::vector<FoundRelation>& found, const Beams& beams) {
  if (found.empty()) return "";
  std::string text = "what the merged output says, and the head that looks there most:\n";
  for (const FoundRelation& one : found) {
    char line[96];
    std::snprintf(line, sizeof line, "  %-12.12s layer %lld, head %lld  %3.0f %%  ",
                  std::string(name(one.relation)).c_str(), static_cast<long long>(one.layer),
                  static_cast<long long>(one.head), 100 * static_cast<double>(one.weight));
    text += line + name_of_word(beams, one.from) + " -> " + name_of_word(beams, one.to) + "\n";
  }
  return text;
}

}  // namespace headlight::program
