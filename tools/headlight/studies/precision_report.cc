// What the study found, as a table, a document and a chart.
#include <algorithm>

#include "tools/headlight/pictures/chart.h"
#include "tools/headlight/studies/precision.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/number_types.h"
#include "tools/headlight/support/quantity_text.h"
#include "tools/headlight/support/repeated_times.h"

namespace headlight::program {
namespace {

constexpr std::size_t kNameWidth = 22;

std::string at_left(const std::string& text, std::size_t columns) {
  const std::size_t width = columns_of(text);
  return text + std::string(width < columns ? columns - width : 0, ' ');
}

// The same columns in both tables.
std::string loss_cells(const PrecisionLoss& loss) {
  return at_right(number_text(loss.by_layer.back()), 12) + at_right(format("%.5f", loss.least_cosine), 11) +
         at_right(format("%.5f", loss.mean_cosine), 10) + at_right(percent_text(loss.neighbours_kept), 12) + "\n";
}

std::string table_of_types(const Engine& engine, const PrecisionReport& report) {
  std::string text = "  " + at_left("products multiply", kNameWidth) + at_left("with", 28) + at_right("weights", 10) +
                     at_right("time", 10) + at_right("of float32", 12) + at_right("error", 12) +
                     at_right("cosine ≥", 11) + at_right("mean", 10) + at_right("neighbours", 12) + "\n";
  for (const TypeResult& result : report.types) {
    text += "  " + at_left(std::string(name(result.type)), kNameWidth) +
            at_left(instructions_of(engine, result.type), 28) + at_right(bytes_text(result.bytes), 10) +
            at_right(seconds_text(result.seconds), 10) +
            at_right(percent_text(result.seconds / report.types.front().seconds), 12) + loss_cells(result.loss);
  }
  return text;
}

std::string table_of_scales(const PrecisionReport& report) {
  std::string text = "Weights alone as 8-bit integers, products in float32: what shares a scale\n  " +
                     at_left("one scale for each", kNameWidth) + at_right("of weights", 12) + "  " +
                     at_left("worst matrix", 36) + at_right("its error", 10) + at_right("error", 12) +
                     at_right("cosine ≥", 11) + at_right("mean", 10) + at_right("neighbours", 12) + "\n";
  for (const ScaleResult& result : report.scales) {
    text += "  " + at_left(name(result.scale), kNameWidth) + at_right(number_text(result.weight_error), 12) + "  " +
            at_left(label(result.worst_matrix, 36), 36) + at_right(number_text(result.worst_error), 10) +
            loss_cells(result.loss);
  }
  return text;
}

std::string table_of_layers(const PrecisionReport& report) {
  std::string text = "Error after each layer\n" + at_right("layers", 8);
  for (const TypeResult& result : report.types) {
    if (result.type != NumberType::float32) text += at_right(std::string(name(result.type)), 12);
  }
  for (const ScaleResult& result : report.scales) text += at_right(name(result.scale), kNameWidth);
  text += "\n";
  for (std::size_t layer = 0; layer < report.types.front().loss.by_layer.size(); ++layer) {
    text += at_right(std::to_string(layer + 1), 8);
    for (const TypeResult& result : report.types) {
      if (result.type != NumberType::float32) text += at_right(number_text(result.loss.by_layer[layer]), 12);
    }
    for (const ScaleResult& result : report.scales) {
      text += at_right(number_text(result.loss.by_layer[layer]), kNameWidth);
    }
    text += "\n";
  }
  return text;
}

std::string described(const PrecisionSource& source, const PrecisionReport& report) {
  return source.model + ": " + counted(source.options.layers, "layer") + " of width " + grouped(source.options.width) +
         "; " + counted(static_cast<std::int64_t>(report.texts), "text") + " of " + counted(report.tokens, "token") +
         "; the best of " + counted(source.runs, "run") + ", types in turn";
}

Json document_of(const PrecisionLoss& loss) {
  return {{"error_by_layer", loss.by_layer},
          {"cosine", {{"least", loss.least_cosine}, {"mean", loss.mean_cosine}}},
          {"neighbours_kept", loss.neighbours_kept}};
}

ChartLine line_of(const std::string& label, const PrecisionLoss& loss) {
  ChartLine line{label};
  for (std::size_t layer = 0; layer < loss.by_layer.size(); ++layer) {
    line.points.push_back({static_cast<double>(layer + 1), loss.by_layer[layer]});
  }
  return line;
}

// "bfloat16: 54.1 % of float32's time, error 0.00485; …"
std::string subtitle_of(const PrecisionReport& report) {
  std::string text;
  for (const TypeResult& result : report.types) {
    if (result.type == NumberType::float32) continue;
    text += (text.empty() ? "" : "; ") + std::string(name(result.type)) + ": " +
            percent_text(result.seconds / report.types.front().seconds) + " of float32's time, error " +
            number_text(result.loss.by_layer.back());
  }
  return text;
}

ChartBars bar_of(const std::string& label, double value) { return {label, {{.series = "", .value = value}}}; }

}  // namespace

std::string precision_table(const Engine& engine, const PrecisionSource& source, const PrecisionReport& report) {
  const bool busy = std::any_of(report.types.begin(), report.types.end(), [](const auto& type) { return type.busy; });
  std::string compared;
  if (report.batch_texts < report.texts) {
    compared = " (over the first " + counted(static_cast<std::int64_t>(report.batch_texts), "text") + ")";
  }
  return "Precision: what narrower numbers in products cost, and what they buy\n" + described(source, report) + "." +
         (source.quick ? " Quick: few texts and runs.\n\n" : "\n\n") + table_of_types(engine, report) + "\n" +
         table_of_scales(report) + "\n" + table_of_layers(report) +
         "\nError: the length of the difference from float32's hidden states, as a share of theirs" + compared +
         ". Cosine: of each text's vector, the\nmean of its hidden states, and float32's. Neighbours: texts whose most "
         "similar other text is the same one as in float32.\nWeights: of all layers, as products read them. Outliers: "
         "of each matrix the largest weights, one in a thousand, which\nstay as they are.\n" +
         note_of_busy(busy);
}

std::string precision_document(const PrecisionSource& source, const PrecisionReport& report) {
  Json document = {{"study", "precision"},          {"quick", source.quick},
                   {"model", source.model},         {"layers", source.options.layers},
                   {"width", source.options.width}, {"texts", report.texts},
                   {"tokens", report.tokens},       {"runs", source.runs}};
  for (const TypeResult& result : report.types) {
    Json& entry = document["types"].push_back(document_of(result.loss));
    entry["type"] = name(result.type);
    entry["seconds"] = result.seconds;
    entry["weight_bytes"] = result.bytes;
  }
  for (const ScaleResult& result : report.scales) {
    Json& entry = document["int8_weights"].push_back(document_of(result.loss));
    entry["scale_of"] = name(result.scale);
    entry["weight_error"] = result.weight_error;
    entry["worst"] = {{"name", result.worst_matrix}, {"error", result.worst_error}};
  }
  return document.dump(2) + "\n";
}

std::string precision_chart(const PrecisionSource& source, const PrecisionReport& report) {
  Chart chart{.title = "Narrower numbers in products",
              .subtitle = subtitle_of(report),
              .note = described(source, report) + (source.quick ? "; --quick: few texts" : "")};
  ChartPanel error{.title = "Error of the hidden states",
                   .x = {.label = "after so many layers", .steps = ChartSteps::whole},
                   .y = {.label = "share of their length", .scale = ChartScale::logarithmic}};
  ChartPanel cosine{.title = "The text that is worst off",
                    .x = {.label = "1 − cosine with float32's vector", .scale = ChartScale::logarithmic}};
  ChartPanel time{.title = "Time", .x = {.label = "all texts", .text = &seconds_text}};
  ChartPanel bytes{.title = "Weights",
                   .x = {.label = "of all layers", .steps = ChartSteps::binary, .text = &bytes_text}};
  for (const TypeResult& result : report.types) {
    const std::string type(name(result.type));
    time.bars.push_back(bar_of(type, result.seconds));
    bytes.bars.push_back(bar_of(type, result.bytes));
    if (result.type == NumberType::float32) continue;
    error.lines.push_back(line_of(type, result.loss));
    cosine.bars.push_back(bar_of(type, 1 - result.loss.least_cosine));
  }
  for (const ScaleResult& result : report.scales) {
    const std::string scale = std::string("int8 weights by ") + name(result.scale);
    error.lines.push_back(line_of(scale, result.loss));
    cosine.bars.push_back(bar_of(scale, 1 - result.loss.least_cosine));
  }
  chart.panels = {error, cosine, time, bytes};
  return chart_svg(chart);
}

}  // namespace headlight::program
