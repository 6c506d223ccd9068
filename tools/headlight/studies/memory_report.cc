// What the study of memory found: a table, a document, a chart.
#include <algorithm>

#include "tools/headlight/pictures/chart.h"
#include "tools/headlight/studies/memory.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/quantity_text.h"

namespace headlight::program {
namespace {

std::string bytes_of(std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string named(const std::string& name) {
  return "  " + name + std::string(26 - std::min<std::size_t>(26, name.size()), ' ');
}

std::string times(double factor) { return format(factor < 9.95 ? "x %.2f" : "x %.1f", factor); }

std::int64_t foretold(const MemoryStudy& study, const MemoryPoint& point) { return point.bytes.all() + study.program; }

std::string heading(const MemoryStudy& study) {
  const MemoryStudyOptions& options = study.options;
  std::string text = "One pass of attention forward and backward, causal, float32, " +
                     (options.heads == 1 ? std::string("one head") : grouped(options.heads) + " heads") + " of " +
                     grouped(options.head_dim) + ", in " + bytes_of(options.budget) +
                     (options.quick ? " (--quick: short sequences)" : "") + "\n";
  text += study.options.measure
              ? "Measured on " + grouped(study.threads) + (study.threads == 1 ? " thread" : " threads") + " (" +
                    study.isa +
                    "), each pass in a process of its own: the most that was resident (VmHWM), the program itself and\n"
                    "its libraries (" +
                    bytes_of(study.program) + ") included, as in what is foretold.\n"
              : std::string("Foretold, and without what the program itself takes; --measure runs it.\n");
  return text;
}

std::string longest_table(const MemoryStudy& study) {
  const bool measured = study.options.measure;
  std::string text = "\nThe longest sequence\n" + named("") + padded_left("foretold", 12);
  if (measured) text += padded_left("measured", 12) + padded_left("peak", 12) + padded_left("seconds", 12);
  text += padded_left("x unfused", 12) + "   bytes beside fixed scratch memory\n";
  const auto base = static_cast<double>(std::max<std::int64_t>(1, study.methods.front().longest.length));
  for (const MemoryMethod& method : study.methods) {
    text += named(method.name) + padded_left(grouped(method.foretold), 12);
    if (measured) {
      const std::optional<MemoryRun>& run = method.longest.run;
      text += padded_left(run ? grouped(method.longest.length) : "none", 12) +
              padded_left(run ? bytes_of(run->peak) : "-", 12) +
              padded_left(run ? seconds_text(run->seconds) : "-", 12);
    }
    text += padded_left(format("%.1f", static_cast<double>(method.longest.length) / base), 12) + "   " +
            method.formula + "\n";
  }
  return text;
}

std::string told_seconds(const MemoryPoint& point) {
  if (point.run) return seconds_text(point.run->seconds);
  return point.extrapolated ? "≈ " + seconds_text(*point.extrapolated) : "-";
}

std::string told_table(const MemoryStudy& study) {
  const bool measured = study.options.measure;
  std::string text = "\nWhat a length takes: bytes foretold" +
                     std::string(measured ? ", seconds measured or (≈) extrapolated from the longest run" : "") + "\n" +
                     named("");
  for (const MemoryPoint& point : study.methods.front().told) {
    text += padded_left("L = " + grouped(point.length), 16) + (measured ? padded_left("seconds", 12) : "");
  }
  text += "\n";
  for (const MemoryMethod& method : study.methods) {
    text += named(method.name);
    for (const MemoryPoint& point : method.told) {
      text += padded_left(bytes_of(foretold(study, point)), 16);
      if (measured) text += padded_left(told_seconds(point), 12);
    }
    text += "\n";
  }
  return text;
}

std::string lengths_table(const MemoryStudy& study, const MemoryMethod& method) {
  const bool measured = study.options.measure;
  std::string text = "\n" + method.name + ", and how it grows when L doubles\n  " + padded_left("L", 10) +
                     padded_left("foretold", 12) + padded_left("", 9);
  if (measured) text += padded_left("peak", 12) + padded_left("", 9) + padded_left("seconds", 12) + padded_left("", 9);
  text += "\n";
  const MemoryPoint* before = nullptr;
  for (const MemoryPoint& point : method.lengths) {
    const auto factor = [&](double now, double then) { return padded_left(then > 0 ? times(now / then) : "", 9); };
    const auto bytes = [&](const MemoryPoint* of) {
      return of == nullptr ? 0.0 : static_cast<double>(foretold(study, *of));
    };
    text += "  " + padded_left(grouped(point.length), 10) + padded_left(bytes_text(bytes(&point)), 12) +
            factor(bytes(&point), bytes(before));
    if (measured && point.run) {
      const bool both = before != nullptr && before->run;
      text += padded_left(bytes_of(point.run->peak), 12) +
              factor(static_cast<double>(point.run->peak), both ? static_cast<double>(before->run->peak) : 0) +
              padded_left(seconds_text(point.run->seconds), 12) +
              factor(point.run->seconds, both ? before->run->seconds : 0);
    } else if (measured) {
      text += "   does not fit";
    }
    text += "\n";
    before = &point;
  }
  return text;
}

Json json_of(const MemoryStudy& study, const MemoryPoint& point) {
  Json entry;
  entry["length"] = point.length;
  entry["flops"] = point.flops;
  entry["bytes"] = {{"inputs", point.bytes.inputs},       {"outputs", point.bytes.outputs},
                    {"gradients", point.bytes.gradients}, {"probabilities", point.bytes.probabilities},
                    {"scratch", point.bytes.scratch},     {"program", study.program},
                    {"all", foretold(study, point)}};
  if (point.run) entry["measured"] = {{"peak", point.run->peak}, {"seconds", point.run->seconds}};
  if (point.extrapolated) entry["seconds_extrapolated"] = *point.extrapolated;
  return entry;
}

ChartLine line_of(const MemoryMethod& method, const std::string& label, ChartStroke stroke,
                  const std::function<double(const MemoryPoint&)>& value) {
  ChartLine line{.label = label, .stroke = stroke, .series = method.name};
  std::vector<MemoryPoint> points = method.lengths;
  if (method.longest.run) points.push_back(method.longest);
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.length < b.length; });
  for (const MemoryPoint& point : points) line.points.push_back({static_cast<double>(point.length), value(point)});
  return line;
}

// Through a point of the method, above it: "L²".
ChartGuide guide_of(const char* label, double power, const ChartLine& line, double factor) {
  for (auto point = line.points.rbegin(); point != line.points.rend(); ++point) {
    if (point->y > 0) return {.label = label, .power = power, .x = point->x, .y = point->y * factor};
  }
  return {.label = label, .power = power};
}

}  // namespace

std::string memory_table(const MemoryStudy& study) {
  std::string text = heading(study) + longest_table(study) + told_table(study);
  for (const MemoryMethod& method : study.methods) text += lengths_table(study, method);
  return text +
         "\nUnfused keeps P, the L x L probabilities of every head, and makes dP, then dS of it, in one more such "
         "matrix "
         "for each thread\nat work. Recomputing keeps a log-sum-exp a row and works P out again from q and k, block by "
         "block. Both hold q, k, v, out and\ntheir gradients. Seconds grow with the square of L either way: "
         "recomputing "
         "buys memory, not operations.\n" +
         (study.options.measure ? "A run that is over in a moment is repeated in the same process, after its peak was "
                                  "read, and the best time counts.\n"
                                : "");
}

std::string memory_json(const MemoryStudy& study) {
  Json document;
  document["study"] = "memory";
  document["quick"] = study.options.quick;
  document["budget"] = study.options.budget;
  document["head_dim"] = study.options.head_dim;
  document["heads"] = study.options.heads;
  document["causal"] = true;
  document["threads"] = study.threads;
  document["isa"] = study.isa;
  document["measured"] = study.options.measure;
  for (const MemoryMethod& method : study.methods) {
    Json entry;
    entry["method"] = method.name;
    entry["formula"] = method.formula;
    entry["longest_foretold"] = method.foretold;
    entry["longest"] = json_of(study, method.longest);
    for (const MemoryPoint& point : method.lengths) entry["lengths"].push_back(json_of(study, point));
    for (const MemoryPoint& point : method.told) entry["told"].push_back(json_of(study, point));
    document["methods"].push_back(entry);
  }
  return document.dump(2) + "\n";
}

std::string memory_chart(const MemoryStudy& study) {
  ChartPanel bytes{.title = "Memory",
                   .x = {.label = "length L", .scale = ChartScale::binary},
                   .y = {.label = "bytes", .scale = ChartScale::binary, .text = &bytes_text}};
  ChartPanel seconds{.title = "Time",
                     .x = {.label = "length L", .scale = ChartScale::binary},
                     .y = {.label = "seconds", .scale = ChartScale::logarithmic, .text = &seconds_text}};
  for (const MemoryMethod& method : study.methods) {
    const auto told = [&](const MemoryPoint& point) { return static_cast<double>(foretold(study, point)); };
    const auto peak = [](const MemoryPoint& point) {
      return point.run ? static_cast<double>(point.run->peak) : kNotGiven;
    };
    const auto time = [](const MemoryPoint& point) { return point.run ? point.run->seconds : kNotGiven; };
    bytes.lines.push_back(line_of(method, method.name + (study.options.measure ? ", foretold" : ""),
                                  study.options.measure ? ChartStroke::dashed : ChartStroke::line, told));
    if (!study.options.measure) continue;
    bytes.lines.push_back(line_of(method, method.name, ChartStroke::points, peak));
    seconds.lines.push_back(line_of(method, method.name, ChartStroke::line, time));
  }
  const auto budget = static_cast<double>(study.options.budget);
  bytes.guides = {guide_of("L²", 2, bytes.lines.front(), 2),
                  guide_of("L", 1, bytes.lines.back(), 0.5),
                  {.label = "budget", .power = 0, .x = 1000, .y = budget}};
  if (!seconds.lines.empty()) seconds.guides = {guide_of("L²", 2, seconds.lines.front(), 2)};
  Chart chart{
      .title = "What a longer sequence costs to train on",
      .subtitle = "Attention forward and backward, causal: written out, memory grows with L²; recomputed, with L",
      .panels = {bytes}};
  if (!seconds.lines.empty()) chart.panels.push_back(seconds);
  chart.note = grouped(study.options.heads) + (study.options.heads == 1 ? " head" : " heads") + " of " +
               grouped(study.options.head_dim) + ", " + grouped(study.threads) +
               (study.threads == 1 ? " thread, " : " threads, ") + study.isa +
               (study.options.measure ? "; dots: peak resident memory of a process" : "; foretold");
  return chart_svg(chart);
}

}  // namespace headlight::program
