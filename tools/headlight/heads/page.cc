// The report as one page: everything in one file, nothing from elsewhere, every text escaped.
#include <algorithm>
#include <cmath>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"
#include "tools/headlight/heads/heads.h"
#include "tools/headlight/heads/page_text.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"

namespace headlight::program {
namespace {

using analysis::HeadAttention;
using analysis::Measure;

constexpr int kShades = 10;
constexpr std::size_t kTokenColumns = 24;

// A grid of shades, one path each: 0 … 9, or −1 for a cell without a value. Cells of one shade side by side are one
// stroke, so that large matrices stay small.
template <class Shade>
std::string shaded_cells(std::int64_t rows, std::int64_t columns, Shade shade) {
  std::vector<std::string> paths(kShades + 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns;) {
      const int of_cell = shade(row, column);
      std::int64_t end = column + 1;
      while (end < columns && shade(row, end) == of_cell) ++end;
      if (of_cell != 0) {
        paths[static_cast<std::size_t>(of_cell + 1)] +=
            format("M%lld %lldh%lldv1h-%lldz", static_cast<long long>(column), static_cast<long long>(row),
                   static_cast<long long>(end - column), static_cast<long long>(end - column));
      }
      column = end;
    }
  }
  std::string text;
  for (std::size_t number = 0; number < paths.size(); ++number) {
    if (paths[number].empty()) continue;
    const std::string style = number == 0 ? std::string("none") : format("s%zu", number - 1);
    text += "<path class=\"" + style + "\" d=\"" + paths[number] + "\"/>";
  }
  return text;
}

int shade_of(double share) { return std::clamp(static_cast<int>(share * kShades), 0, kShades - 1); }

std::string heading(const std::string& model, const HeadsReport& report) {
  std::string text =
      "<h1>What the heads of the model “" + escaped(models::printable(model)) + "” do</h1>\n<p class=\"quiet\">";
  text += counted(report.layers, "layer") + " of " + counted(report.heads, "head") + ", " +
          counted(report.head_dim, "number") + " wide each; measured on " + counted(report.rows, "word piece") +
          " in " + counted(report.texts, "text") + ".";
  if (report.cut > 0) text += " " + counted(report.cut, "text") + (report.cut == 1 ? " was cut." : " were cut.");
  return text + " Layers and heads count from 0; 3.7 is head 7 of layer 3.</p>\n";
}

std::string findings(const HeadsReport& report, const PruningReport* pruning) {
  std::string text = "<ul class=\"found\">\n";
  const std::vector<HeadPair> pairs = alike(report, kRedundant);
  for (std::size_t n = 0; n < std::min<std::size_t>(pairs.size(), 12); ++n) {
    text += format("<li>layer %lld: heads <b>%lld</b> and <b>%lld</b> are redundant, CKA %.2f</li>\n",
                   static_cast<long long>(pairs[n].layer), static_cast<long long>(pairs[n].a),
                   static_cast<long long>(pairs[n].b), pairs[n].cka);
  }
  if (pairs.size() > 12) text += "<li>and " + std::to_string(pairs.size() - 12) + " more pairs</li>\n";
  if (pairs.empty())
    text +=
        format("<li>no two heads of a layer are redundant (that would be a CKA of %.1f or more)</li>\n", kRedundant);
  if (pruning != nullptr) {
    std::vector<std::string> names;
    for (const HeadName& name : pruning->silenced) names.push_back(name.text());
    text += "<li>without <b>" + runtime::list_text(names) + "</b> " +
            format(
                "the last hidden states change by %.1f %% of their length, and sentence vectors keep a cosine of "
                "%.4f on average, %.4f at worst</li>\n",
                100 * pruning->change.value_or(0), pruning->mean_cosine.value_or(0), pruning->least_cosine.value_or(0));
  }
  return text + "</ul>\n";
}

// The most alike of each layer, as text beside the matrix.
std::string closest_pairs(const HeadsReport& report) {
  const std::vector<HeadPair> pairs = alike(report, -2);
  std::string text = "<p>Most alike within a layer:</p>\n<ul>\n";
  for (std::int64_t layer = 0; layer < report.layers; ++layer) {
    const auto first =
        std::find_if(pairs.begin(), pairs.end(), [&](const HeadPair& pair) { return pair.layer == layer; });
    if (first == pairs.end()) continue;
    text += format("<li>layer %lld: heads %lld and %lld, CKA %.2f</li>\n", static_cast<long long>(layer),
                   static_cast<long long>(first->a), static_cast<long long>(first->b), first->cka);
  }
  return text + "</ul>\n";
}

std::string cka_matrix(const HeadsReport& report) {
  const std::int64_t count = report.all_heads();
  const auto shade = [&](std::int64_t row, std::int64_t column) {
    const Measure& cka = report.cka_of(row, column);
    return cka.has_value() ? shade_of(cka.value()) : -1;
  };
  // "layer 5" fits beside the heads of a layer, in a matrix of hundreds of heads as in one of four.
  const double letters =
      std::clamp(0.027 * static_cast<double>(count), std::min(0.15 * static_cast<double>(report.heads), 1.15),
                 std::max(0.16 * static_cast<double>(report.heads), 0.3));
  const double margin = 2.6 * letters;
  std::string text =
      "<h2 id=\"similarity\">How alike their outputs are</h2>\n<p class=\"quiet\">CKA of each head with each other, "
      "unbiased over minibatches: 1 where two say the same up to rotation and scale, 0 where they have nothing in "
      "common. "
      "With the matrix in focus, arrow keys move from cell to cell.</p>\n<div id=\"matrix\" class=\"tile\">\n";
  text += format(
      "<svg viewBox=\"%.1f %.1f %.1f %.1f\" style=\"width:%.1frem\" tabindex=\"0\" role=\"img\" "
      "aria-label=\"CKA matrix of %lld heads; arrow keys move from cell to cell\">",
      -margin, -margin, static_cast<double>(count) + margin, static_cast<double>(count) + margin,
      std::min(40.0, 1.5 * (static_cast<double>(count) + margin)), static_cast<long long>(count));
  text += shaded_cells(count, count, shade);
  for (std::int64_t layer = 0; layer <= report.layers; ++layer) {
    const auto at = static_cast<long long>(layer * report.heads);
    text += format("<path class=\"rule\" d=\"M%lld 0V%lldM0 %lldH%lld\"/>", at, static_cast<long long>(count), at,
                   static_cast<long long>(count));
    if (layer == report.layers) continue;
    const double middle = static_cast<double>(at) + static_cast<double>(report.heads) / 2;
    text += format("<text x=\"%.1f\" y=\"%.2f\" font-size=\"%.2f\" text-anchor=\"middle\">layer %lld</text>", middle,
                   -margin / 4, letters, static_cast<long long>(layer));
    text += format(
        "<text transform=\"translate(%.2f %.1f)rotate(-90)\" font-size=\"%.2f\" text-anchor=\"middle\">layer "
        "%lld</text>",
        -margin / 4, middle, letters, static_cast<long long>(layer));
  }
  text +=
      "<rect id=\"cursor\" width=\"1\" height=\"1\"/></svg>\n<div><output aria-live=\"polite\">Point at a cell: which "
      "heads, how alike.</output>\n"
      "<div class=\"scale\">0";
  for (int shade_number = 0; shade_number < kShades; ++shade_number) {
    text += format("<i style=\"background:var(--s%d)\"></i>", shade_number);
  }
  return text + "1</div>\n" + closest_pairs(report) + "</div>\n</div>\n";
}

// What a head sees in the example, and below it how its weight is spread over near tokens.
std::string picture(const HeadsReport& report, std::int64_t number) {
  const HeadsExample& example = report.example;
  const auto tokens = static_cast<std::int64_t>(example.tokens.size());
  const std::vector<float>& weights = example.weights[static_cast<std::size_t>(number)];
  const auto weight = [&](std::int64_t row, std::int64_t column) {
    return shade_of(static_cast<double>(weights[static_cast<std::size_t>(row * tokens + column)]));
  };
  const HeadAttention& attention = report.attention[static_cast<std::size_t>(number)];
  constexpr std::int64_t kBars = 2 * HeadAttention::kProfileReach + 1;
  const double height = static_cast<double>(tokens) * 0.4,
               step = static_cast<double>(tokens) / static_cast<double>(kBars);
  // Bars fill their height at the largest weight, but an even spread stays low.
  double top = 0.25;
  for (const double share : attention.profile) top = std::max(top, share);
  std::string bars, itself;
  for (std::int64_t n = 0; n < kBars; ++n) {
    const double length = attention.profile[static_cast<std::size_t>(n)] / top * height;
    std::string& to = n == HeadAttention::kProfileReach ? itself : bars;
    to += format("M%.2f %.2fh%.2fv%.2fh-%.2fz", static_cast<double>(n) * step + step * 0.1,
                 static_cast<double>(example.rows) + height + 1 - length, step * 0.8, length, step * 0.8);
  }
  return format("<svg viewBox=\"0 0 %lld %.1f\" aria-hidden=\"true\">", static_cast<long long>(tokens),
                static_cast<double>(example.rows) + height + 1) +
         shaded_cells(example.rows, tokens, weight) +
         format("<path class=\"rule\" d=\"M0 0H%lldV%lldH0z\"/>", static_cast<long long>(tokens),
                static_cast<long long>(example.rows)) +
         "<g class=\"bars\"><path d=\"" + bars + "\"/><path class=\"self\" d=\"" + itself + "\"/></g></svg>";
}

// For a picture's tooltip.
std::string importance_text(const HeadsReport& report, std::int64_t number) {
  if (report.importance.empty()) return {};
  const Measure& importance = report.importance[static_cast<std::size_t>(number)];
  return importance.has_value() ? format(", importance %.3f", importance.value()) : ", importance undefined";
}

std::string pictures(const HeadsReport& report) {
  std::string sentence;
  for (const std::string& token : report.example.tokens) {
    sentence.append(sentence.empty() ? "" : " ").append(escaped(label(token, kTokenColumns)));
  }
  std::string text =
      "<h2 id=\"pictures\">What they look at</h2>\n<p class=\"quiet\">In each card, above: where the words of one text "
      "(rows) "
      "look in it (columns): <span lang=\"\">" +
      sentence +
      "</span>. Below: over all texts, the weight on the tokens up to eight before and eight after; the "
      "coloured bar is the token itself.</p>\n";
  for (std::int64_t layer = 0; layer < report.layers; ++layer) {
    text +=
        format("<section class=\"layer\"><h3>layer %lld</h3><div class=\"cards\">\n", static_cast<long long>(layer));
    for (std::int64_t head = 0; head < report.heads; ++head) {
      const std::int64_t number = layer * report.heads + head;
      const HeadAttention& attention = report.attention[static_cast<std::size_t>(number)];
      const std::string name = HeadName{layer, head}.text();
      const std::string kinds = runtime::list_text(names_of(report, number));
      text += "<a class=\"card\" href=\"#head-" + name + "\" title=\"" +
              format("entropy %.2f, sharpest weight %.2f, distance %.1f", attention.entropy.value_or(0),
                     attention.confidence.value_or(0), attention.distance.value_or(0)) +
              importance_text(report, number) + "\">" + picture(report, number) + "<b>" + name +
              "</b><span class=\"kind\">" + kinds + "</span></a>\n";
    }
    text += "</div></section>\n";
  }
  return text;
}

std::string cell(const Measure& measure, const char* pattern, double factor = 1) {
  if (!measure.has_value()) {
    return "<td data-value=\"\" title=\"undefined: " + escaped(describe(measure.why())) + "\">–</td>";
  }
  return format("<td data-value=\"%.6g\">", factor * measure.value()) + format(pattern, factor * measure.value()) +
         "</td>";
}

std::string table(const HeadsReport& report) {
  std::string text =
      "<h2 id=\"table\">Head by head</h2>\n<p class=\"quiet\">A heading sorts. Undefined numbers are dashes and say "
      "why."
      "</p>\n<div class=\"scroll tile\"><table>\n<thead><tr>";
  std::vector<const char*> columns = {"head",     "looks at",       "entropy",  "sharpest", "distance",
                                      "before %", "after %",        "itself %", "[CLS] %",  "[SEP] %",
                                      "near %",   "CKA of closest", "closest"};
  if (!report.importance.empty()) columns.push_back("importance");
  for (const char* name : columns) {
    text += std::string("<th scope=\"col\"><button type=\"button\">") + name + "</button></th>";
  }
  text += "</tr></thead>\n<tbody>\n";
  for (std::int64_t number = 0; number < report.all_heads(); ++number) {
    const HeadAttention& head = report.attention[static_cast<std::size_t>(number)];
    const std::string name = report.name(number).text();
    const std::string kinds = runtime::list_text(names_of(report, number));
    const std::int64_t closest = closest_in_layer(report, number);
    text += "<tr id=\"head-" + name + "\">" + format("<td data-value=\"%lld\">", static_cast<long long>(number)) +
            name + "</td><td data-value=\"" + kinds + "\">" + kinds + "</td>";
    text += cell(head.entropy, "%.2f") + cell(head.confidence, "%.2f") + cell(head.distance, "%.1f");
    for (const Measure* share : {&head.peaks_previous, &head.peaks_next, &head.peaks_itself, &head.weight_first,
                                 &head.weight_separators, &head.weight_local}) {
      text += cell(*share, "%.0f", 100);
    }
    const bool known = closest != number;
    text += cell(known ? report.cka_of(number, closest) : Measure(analysis::Undefined::constant), "%.2f");
    text += format("<td data-value=\"%s\">", known ? std::to_string(closest).c_str() : "") +
            (known ? report.name(closest).text() : "–") + "</td>";
    if (!report.importance.empty()) text += cell(report.importance[static_cast<std::size_t>(number)], "%.3f");
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string words(const HeadsReport& report) {
  const char* const relations =
      report.relations.empty()
          ? ""
          : "<dt>coreference, subject …</dt><dd>a head with half of its weight, in the mean, on the word that the "
            "model "
            "itself names for this relation: of <i>it</i> what it stands for, of a verb who does it or what it is done "
            "to, of an adjective its noun, of <i>because</i> what comes of it (effect) and the reason (cause)</dd>\n";
  const char* const importance =
      report.importance.empty()
          ? ""
          : "<dt>importance</dt><dd>how much sentence vectors would miss the head: mean |∂(v · s)/∂ξ| over texts, s "
            "the "
            "sentence vector, v a random direction, ξ a factor of the head's output (Michel et al. 2019)</dd>\n";
  return "<h2>What the words mean</h2>\n<dl>\n"
         "<dt>entropy</dt><dd>−Σ α ln α of a row of weights, in nats; 0 looks at one token (Clark et al. 2019)</dd>\n"
         "<dt>sharpest</dt><dd>the largest weight of a row (confidence; Voita et al. 2019)</dd>\n"
         "<dt>distance</dt><dd>Σ α |i − j|, in tokens (Vig &amp; Belinkov 2019)</dd>\n"
         "<dt>before, after, itself</dt><dd>share of words whose largest weight is there; from 90 % on a head is "
         "positional (Voita et al. 2019)</dd>\n"
         "<dt>[CLS], [SEP], near</dt><dd>weight on the first token, on the end, and within two tokens</dd>\n"
         "<dt>no-op</dt><dd>a head with 80 % of its weight on [CLS] and [SEP]: it looks at no word</dd>\n" +
         std::string(relations) +
         "<dt>CKA</dt><dd>linear centred kernel alignment (Kornblith et al. 2019), by the unbiased HSIC₁ over "
         "minibatches "
         "(Nguyen et al. 2021)</dd>\n" +
         importance + "</dl>\n<p class=\"quiet\">All are means over the word pieces of all texts.</p>\n";
}

// What the script needs: numbers, and names of kinds, in which no markup can begin.
std::string script_data(const HeadsReport& report) {
  Json data{{"layers", report.layers}, {"heads", report.heads}};
  for (const Measure& cka : report.cka) {
    data["cka"].push_back(cka.has_value() ? Json(std::lround(1000 * cka.value())) : Json());
  }
  for (std::int64_t number = 0; number < report.all_heads(); ++number) {
    data["kinds"].push_back(runtime::list_text(names_of(report, number)));
  }
  return data.dump();
}

}  // namespace

std::string heads_page(const std::string& model, const HeadsReport& report, const PruningReport* pruning) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "script-src 'unsafe-inline'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Heads of " +
         escaped(models::printable(model)) + "</title>\n<style>\n" + std::string(kHeadsStyle) +
         "</style>\n</head>\n<body>\n" + heading(model, report) + findings(report, pruning) + cka_matrix(report) +
         pictures(report) + table(report) + words(report) + "<script type=\"application/json\" id=\"data\">" +
         script_data(report) + "</script>\n<script>\n" + std::string(kHeadsScript) + "</script>\n</body>\n</html>\n";
}

}  // namespace headlight::program
