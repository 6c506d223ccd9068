// The report as one JSON document. A measure is a number, or {"undefined": "why"}.

#include "tools/headlight/support/json.h"

#include "headlight/models/errors.h"
#include "tools/headlight/heads/heads.h"

namespace headlight::program {
namespace {

using analysis::HeadAttention;
using analysis::Measure;

Json number(const Measure& measure) {
  if (measure.has_value()) return measure.value();
  return {{"undefined", describe(measure.why())}};
}

// [n, n] measures as n lists.
Json matrix(const std::vector<Measure>& measures, std::int64_t n) {
  Json rows = Json::list();
  for (std::int64_t row = 0; row < n; ++row) {
    Json& list = rows.push_back(Json::list());
    for (std::int64_t column = 0; column < n; ++column) {
      list.push_back(number(measures[static_cast<std::size_t>(row * n + column)]));
    }
  }
  return rows;
}

Json kinds_of(const HeadAttention& attention) {
  const analysis::HeadKinds kinds = attention.kinds();
  if (kinds.why == analysis::Undefined::none) return kind_names(kinds);
  return {{"undefined", describe(kinds.why)}};
}

Json of_head(const HeadsReport& report, std::int64_t head) {
  const HeadAttention& attention = report.attention[static_cast<std::size_t>(head)];
  const HeadName name = report.name(head);
  Json found{{"layer", name.layer},
             {"head", name.head},
             {"kinds", kinds_of(attention)},
             {"entropy", number(attention.entropy)},
             {"confidence", number(attention.confidence)},
             {"distance", number(attention.distance)}};
  found["peaks"] = {{"previous", number(attention.peaks_previous)},
                    {"next", number(attention.peaks_next)},
                    {"itself", number(attention.peaks_itself)},
                    {"first", number(attention.peaks_first)},
                    {"separator", number(attention.peaks_separator)}};
  found["weights"] = {{"first", number(attention.weight_first)},
                      {"separators", number(attention.weight_separators)},
                      {"local", number(attention.weight_local)}};
  found["profile"] = attention.profile;
  if (!report.importance.empty()) {
    found["importance"] = number(report.importance[static_cast<std::size_t>(head)]);
  }
  for (const RelationLooks& relation : report.relations) {
    found["relations"][std::string(demonstration::name(relation.relation))] =
        relation.weights[static_cast<std::size_t>(head)];
  }
  const std::int64_t closest = closest_in_layer(report, head);
  if (closest != head) {
    found["closest"] = {{"head", report.name(closest).head}, {"cka", number(report.cka_of(head, closest))}};
  }
  return found;
}

Json of_layer(const HeadsReport& report, std::int64_t layer) {
  const LayerReport& found = report.by_layer[static_cast<std::size_t>(layer)];
  return {{"layer", layer},
          {"effective_rank", number(found.effective_rank)},
          {"orthogonality", {{"query", number(found.query_orthogonality)}, {"key", number(found.key_orthogonality)}}},
          {"divergence", matrix(found.divergence, report.heads)},
          {"query_overlap", matrix(found.query_overlap, report.heads)},
          {"key_overlap", matrix(found.key_overlap, report.heads)}};
}

Json of_pruning(const PruningReport& pruning) {
  Json names = Json::list();
  for (const HeadName& name : pruning.silenced) names.push_back(name.text());
  return {{"heads", names},
          {"change", number(pruning.change)},
          {"mean_cosine", number(pruning.mean_cosine)},
          {"least_cosine", number(pruning.least_cosine)},
          {"least_text", pruning.least_text}};
}

}  // namespace

std::string heads_json(const std::string& model, const HeadsReport& report, const PruningReport* pruning) {
  Json document{{"model", models::printable(model)}, {"layers", report.layers}, {"heads_per_layer", report.heads},
                {"head_dim", report.head_dim},       {"texts", report.texts},   {"texts_cut", report.cut},
                {"tokens", report.tokens},           {"words", report.rows},    {"merged_width", report.merged_width}};
  document["redundant"] = Json::list();
  for (const HeadPair& pair : alike(report, kRedundant)) {
    document["redundant"].push_back(
        {{"layer", pair.layer}, {"heads", std::vector<std::int64_t>{pair.a, pair.b}}, {"cka", pair.cka}});
  }
  if (pruning != nullptr) document["mask"] = of_pruning(*pruning);
  document["heads"] = Json::list();
  for (std::int64_t head = 0; head < report.all_heads(); ++head) document["heads"].push_back(of_head(report, head));
  document["by_layer"] = Json::list();
  for (std::int64_t layer = 0; layer < report.layers; ++layer) document["by_layer"].push_back(of_layer(report, layer));
  // Heads in the order of "heads".
  document["cka"] = matrix(report.cka, report.all_heads());
  return document.dump(1) + "\n";
}

}  // namespace headlight::program
