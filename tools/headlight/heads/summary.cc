// The report for a terminal: first what to do about it, then a line a layer.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"
#include "tools/headlight/heads/heads.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

using analysis::HeadAttention;
using analysis::Measure;

constexpr std::size_t kMostPairs = 8;
constexpr const char* kNoOp = "no-op";  // among names_of() a head

// A dash as wide as the number would be where there is none.
std::string fixed(const Measure& measure, const char* pattern) {
  if (measure.has_value()) return format(pattern, measure.value());
  return std::string(format(pattern, 0.0).size() - 1, ' ').append("–");
}

// With spaces between.
std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

struct Style {
  std::string bold = colours_wanted() ? "\033[1m" : "";
  std::string warm = colours_wanted() ? "\033[33m" : "";
  std::string plain = colours_wanted() ? "\033[0m" : "";
};

const LayerReport& layer_of(const HeadsReport& report, std::int64_t layer) {
  return report.by_layer[static_cast<std::size_t>(layer)];
}

// Whether there are fewer word pieces than a layer's heads give numbers for each: in so few dimensions CKA is high.
bool says_little(const HeadsReport& report) { return report.rows < report.merged_width; }

std::string redundancy(const HeadsReport& report, const Style& style) {
  std::string text = style.bold + "Heads that say the same (CKA of their outputs, 1 at most)" + style.plain + "\n";
  const std::vector<HeadPair> pairs = alike(report, kRedundant);
  for (std::size_t n = 0; n < std::min(pairs.size(), kMostPairs); ++n) {
    const HeadPair& pair = pairs[n];
    text += "  " + style.warm +
            format("layer %lld: heads %lld and %lld %s redundant, CKA %.2f", static_cast<long long>(pair.layer),
                   static_cast<long long>(pair.a), static_cast<long long>(pair.b), says_little(report) ? "look" : "are",
                   pair.cka) +
            style.plain;
    const Measure& divergence =
        layer_of(report, pair.layer).divergence[static_cast<std::size_t>(pair.a * report.heads + pair.b)];
    text += format(" (they look at %s places: divergence %.2f of %.2f)",
                   divergence.value_or(0) < std::log(2.0) / 4 ? "the same" : "different", divergence.value_or(0),
                   std::log(2.0)) +
            "; to try without: --mask " + HeadName{pair.layer, pair.b}.text() + "\n";
  }
  if (pairs.size() > kMostPairs) text += "  and " + std::to_string(pairs.size() - kMostPairs) + " more pairs\n";
  if (!pairs.empty()) return text;
  const std::vector<HeadPair> all = alike(report, -2);
  if (all.empty()) return text + "  cannot be told: " + std::string(describe(report.cka_of(0, 0).why())) + "\n";
  return text + format("  none: the two most alike in a layer are heads %lld and %lld of layer %lld, CKA %.2f\n",
                       static_cast<long long>(all[0].a), static_cast<long long>(all[0].b),
                       static_cast<long long>(all[0].layer), all[0].cka);
}

// The heads that look along it, with their mean weight there.
std::string heads_along(const HeadsReport& report, const RelationLooks& relation) {
  std::string heads;
  for (std::int64_t number = 0; number < report.all_heads(); ++number) {
    const double weight = relation.weights[static_cast<std::size_t>(number)];
    if (weight < kAlongRelation) continue;
    heads += (heads.empty() ? "" : "  ") + report.name(number).text() + format(" (%.0f %%)", 100 * weight);
  }
  return heads;
}

std::string kinds(const HeadsReport& report, const Style& style) {
  std::map<std::string, std::vector<std::string>> heads;
  std::int64_t unnamed = 0;
  for (std::int64_t number = 0; number < report.all_heads(); ++number) {
    const std::vector<std::string> names = names_of(report, number);
    for (const std::string& name : names) heads[name].push_back(report.name(number).text());
    unnamed += names.empty() ? 1 : 0;
  }
  std::string text = style.bold + "What they look at (layer.head)" + style.plain + "\n";
  constexpr std::pair<const char*, const char*> kMeanings[] = {
      {"previous token", "the token before"},    {"next token", "the token after"},
      {"first token", "the first token, [CLS]"}, {"separator", "the end, [SEP]"},
      {"local", "at most two tokens away"},      {kNoOp, "[CLS] and [SEP], at no word: no-op"}};
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& [name, meaning] : kMeanings) {
    if (heads.contains(name)) rows.emplace_back(meaning, joined(heads[name]));
  }
  for (const RelationLooks& relation : report.relations) {
    std::string along = heads_along(report, relation);
    if (!along.empty()) rows.emplace_back(demonstration::meaning(relation.relation), std::move(along));
  }
  rows.emplace_back("nothing in particular", counted(unnamed, "head"));
  std::size_t widest = 0;
  for (const auto& [what, found] : rows) widest = std::max(widest, what.size());
  for (const auto& [what, found] : rows) {
    text += "  " + what + std::string(widest + 2 - what.size(), ' ') + found + "\n";
  }
  return text;
}

// The mean over the heads of a layer of what `part` takes of each.
template <class Part>
Measure mean_over_heads(const HeadsReport& report, std::int64_t layer, Part part) {
  double sum = 0;
  for (std::int64_t head = 0; head < report.heads; ++head) {
    const Measure& one = part(report.attention[static_cast<std::size_t>(layer * report.heads + head)]);
    if (!one.has_value()) return one;
    sum += one.value();
  }
  return sum / static_cast<double>(report.heads);
}

// The mean over pairs of different heads.
Measure mean_over_pairs(const HeadsReport& report, const std::vector<Measure>& matrix) {
  double sum = 0;
  for (std::int64_t a = 0; a < report.heads; ++a) {
    for (std::int64_t b = 0; b < report.heads; ++b) {
      const Measure& one = matrix[static_cast<std::size_t>(a * report.heads + b)];
      if (a != b && !one.has_value()) return one;
      if (a != b) sum += one.value();
    }
  }
  if (report.heads == 1) return analysis::Undefined::too_few_rows;
  return sum / static_cast<double>(report.heads * (report.heads - 1));
}

std::string layers(const HeadsReport& report, const Style& style) {
  std::string text = style.bold + "Layer by layer (means over heads)" + style.plain +
                     "\n  layer   entropy  sharpest  distance  directions used  overlap of W_Q  of W_K   most alike\n";
  for (std::int64_t layer = 0; layer < report.layers; ++layer) {
    const LayerReport& found = layer_of(report, layer);
    text += format("  %5lld", static_cast<long long>(layer));
    text += fixed(mean_over_heads(report, layer, [](const HeadAttention& head) { return head.entropy; }), "%10.2f");
    text += fixed(mean_over_heads(report, layer, [](const HeadAttention& head) { return head.confidence; }), "%10.2f");
    text += fixed(mean_over_heads(report, layer, [](const HeadAttention& head) { return head.distance; }), "%10.1f");
    text += fixed(found.effective_rank, "%9.0f") + format(" of %-4lld", static_cast<long long>(report.merged_width));
    text += fixed(mean_over_pairs(report, found.query_overlap), "%15.2f");
    text += fixed(mean_over_pairs(report, found.key_overlap), "%8.2f");
    HeadPair closest{.cka = -2};
    for (const HeadPair& pair : alike(report, -2)) {
      if (pair.layer == layer && pair.cka > closest.cka) closest = pair;
    }
    if (closest.cka > -2) {
      text += format("   %lld and %lld, %.2f", static_cast<long long>(closest.a), static_cast<long long>(closest.b),
                     closest.cka);
    }
    text += "\n";
  }
  return text;
}

// Heads that the sentence vectors would miss most and least.
std::string importance_text(const HeadsReport& report, const Style& style) {
  std::vector<std::int64_t> order(report.importance.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](std::int64_t head) { return report.importance[static_cast<std::size_t>(head)].value_or(0); };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return value(a) > value(b); });
  const auto listed = [&](std::size_t first, std::size_t count) {
    std::string text;
    for (std::size_t n = first; n < first + count; ++n) {
      text += "  " + report.name(order[n]).text() + format(" (%.3f)", value(order[n]));
    }
    return text + "\n";
  };
  const std::size_t count = std::clamp<std::size_t>(order.size() / 2, 1, 5);  // no head in both
  return style.bold + "Importance for sentence vectors, by gradient" + style.plain + "\n  the most " +
         listed(0, count) + "  the least" + listed(order.size() - count, count);
}

std::string pruning_text(const PruningReport& pruning, const Style& style) {
  std::vector<std::string> names;
  for (const HeadName& name : pruning.silenced) names.push_back(name.text());
  std::string text = style.bold + "Without " + runtime::list_text(names) + style.plain + "\n";
  text += "  the last hidden states change by " + fixed(Measure(100 * pruning.change.value_or(0)), "%.1f") +
          " % of their length\n";
  text += "  sentence vectors keep a cosine of " + fixed(pruning.mean_cosine, "%.4f") +
          " to what they were, on average; the worst, " + fixed(pruning.least_cosine, "%.4f") + ", is that of text " +
          std::to_string(pruning.least_text + 1) + "\n";
  return text;
}

// What the tables above speak of.
std::string terms(const HeadsReport& report, const Style& style) {
  const bool redundant = !alike(report, kRedundant).empty();
  bool idle = false, along = false;
  for (std::int64_t number = 0; number < report.all_heads(); ++number) {
    const std::vector<std::string> names = names_of(report, number);
    idle = idle || std::find(names.begin(), names.end(), kNoOp) != names.end();
  }
  for (const RelationLooks& relation : report.relations) along = along || !heads_along(report, relation).empty();
  const std::pair<const char*, std::string> kTerms[] = {
      {"CKA", "linear centred kernel alignment of two heads' outputs: 1 the same but for rotation and scale, 0 unlike"},
      {"divergence",
       redundant ? "Jensen-Shannon, of where two heads look: 0 at the same tokens, 0.69 (ln 2) at no same one" : ""},
      {"(94 %)",
       along ? format("mean weight that the word left of the colon gives to what is right of it, from %.0f %% on",
                      100 * kAlongRelation)
             : ""},
      {kNoOp, idle ? "80 % of the weight on [CLS] and [SEP], where a head rests that finds nothing to do" : ""},
      {"entropy", "-sum of w ln w over the weights w of a word: 0 looks at one token, ln L at L tokens alike"},
      {"sharpest", "the largest weight of a word"},
      {"distance", "how many tokens away the weight of a word lies"},
      {"directions used", "effective rank of what the heads give to W_O, the matrix that puts them together"},
      {"overlap",
       format("of what W_Q or W_K of two heads read: 1 the same directions, 0 at right angles, %.2f by chance",
              1 / static_cast<double>(report.heads))}};
  std::string text = style.bold + "Terms (means over all words)" + style.plain + "\n";
  for (const auto& [term, meaning] : kTerms) {
    if (!meaning.empty()) text += format("  %-17s", term) + meaning + "\n";
  }
  return text;
}

}  // namespace

std::string heads_summary(const std::string& model, const HeadsReport& report, const PruningReport* pruning) {
  const Style style;
  std::string text = style.bold + models::printable(model) + style.plain + ": " + counted(report.layers, "layer") +
                     " of " + counted(report.heads, "head") + "; " + counted(report.texts, "text") + ", " +
                     counted(report.rows, "word piece") + ", from which everything below is measured\n";
  if (report.cut > 0) {
    text += counted(report.cut, "text") + (report.cut == 1 ? " was" : " were") + " cut after " +
            std::to_string(report.longest) + " tokens, the most that the model takes\n";
  }
  if (says_little(report)) {
    text += "too few to say much: with fewer word pieces than the " + std::to_string(report.merged_width) +
            " numbers of a layer's heads, heads look alike by chance; give hundreds of texts\n";
  }
  text.append("\n").append(redundancy(report, style));
  text.append("\n").append(kinds(report, style));
  text.append("\n").append(layers(report, style));
  if (!report.importance.empty()) text.append("\n").append(importance_text(report, style));
  if (pruning != nullptr) text.append("\n").append(pruning_text(*pruning, style));
  text.append("\n").append(terms(report, style));
  return text;
}

}  // namespace headlight::program
