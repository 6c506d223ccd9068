// headlight presets: where the parameters of the classic transformers are, and what a pass over a sequence costs them.
#include "headlight/analysis/presets.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/number_types.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace presets_command {
namespace {

using analysis::Preset;

constexpr std::int64_t kHeadDim = 64;  // heads = width / 64, the rule of thumb
constexpr std::int64_t kLongest = std::int64_t{1} << 30;

// Three digits and a unit: "6.29 MB".
std::string scaled(double value, const std::vector<const char*>& units) {
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, units[unit]);
  return text;
}

std::string operations(double flops) {
  return scaled(flops, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"});
}
std::string bytes(double count) { return scaled(count, {"B", "kB", "MB", "GB", "TB", "PB", "EB"}); }

// One line of the table: a name and a cell for each preset.
class Table {
 public:
  void heading(const std::string& words) {
    text_.append("\n").append(style_.bold).append(words).append(style_.plain).append("\n");
  }

  void line(const std::string& name, const std::function<std::string(const Preset&)>& cell) {
    append(name, kNameWidth);
    for (const Preset& preset : analysis::presets()) {
      const std::string shown = cell(preset);
      text_.append(kCellWidth - std::min(kCellWidth, shown.size()), ' ').append(shown);
    }
    text_ += "\n";
  }

  void term(const std::string& name, const std::string& meaning) {
    append(name, kTermWidth);
    text_.append(meaning).append("\n");
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Style {
    std::string bold = colours_wanted() ? "\033[1m" : "";
    std::string plain = colours_wanted() ? "\033[0m" : "";
  };

  static constexpr std::size_t kNameWidth = 40;
  static constexpr std::size_t kTermWidth = 20;
  static constexpr std::size_t kCellWidth = 14;

  // Names are ASCII, so bytes are columns.
  void append(const std::string& words, std::size_t width) {
    text_.append("  ").append(words);
    if (words.size() < width) text_.append(width - words.size(), ' ');
  }

  std::string text_;
  Style style_;
};

std::int64_t count_of(const Preset& preset, const std::string& part) {
  for (const analysis::ParameterPart& found : analysis::parameters_by_part(preset.shape)) {
    if (found.name == part) return found.count;
  }
  return 0;
}

// The parts of all presets, each once, in their order.
std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const Preset& preset : analysis::presets()) {
    for (const analysis::ParameterPart& part : analysis::parameters_by_part(preset.shape)) {
      if (std::find(names.begin(), names.end(), part.name) == names.end()) names.push_back(part.name);
    }
  }
  return names;
}

void add_shapes(Table& table) {
  table.line("", [](const Preset& preset) { return std::string(preset.name); });
  const auto number = [&](const char* name, std::int64_t analysis::ModelShape::*member) {
    table.line(name, [member](const Preset& preset) { return grouped(preset.shape.*member); });
  };
  number("layers", &analysis::ModelShape::layers);
  number("width", &analysis::ModelShape::width);
  number("heads", &analysis::ModelShape::heads);
  table.line("heads by the rule width / 64",
             [](const Preset& preset) { return grouped(preset.shape.width / kHeadDim); });
  table.line("width of a head", [](const Preset& preset) { return grouped(preset.shape.width / preset.shape.heads); });
  number("feed-forward width", &analysis::ModelShape::feed_forward_width);
  number("vocabulary", &analysis::ModelShape::vocabulary);
  number("positions", &analysis::ModelShape::positions);
}

void add_attention(Table& table) {
  table.heading("Weights of one layer's attention");
  const auto number = [&](const std::string& name, std::int64_t analysis::AttentionParameters::*member, bool one_head) {
    table.line(name, [=](const Preset& preset) {
      const analysis::ModelShape& shape = preset.shape;
      return grouped(analysis::attention_parameters(shape.width, one_head ? 1 : shape.heads).*member);
    });
  };
  using Parameters = analysis::AttentionParameters;
  number("W_Q of one head (W_K, W_V as many)", &Parameters::one_projection, false);
  number("W_Q, W_K, W_V of one head", &Parameters::projections_per_head, false);
  number("W_Q, W_K, W_V of all heads", &Parameters::projections, false);
  number("W_O", &Parameters::output, false);
  number("all, with this many heads", &Parameters::weights, false);
  number("all, with one head of full width", &Parameters::weights, true);
  number("biases beside them", &Parameters::biases, false);
}

void add_parameters(Table& table) {
  table.heading("Parameters of the model");
  for (const std::string& part : part_names()) {
    table.line(part, [&](const Preset& preset) {
      const std::int64_t count = count_of(preset, part);
      return count == 0 ? std::string("-") : grouped(count);
    });
  }
  table.line("sum", [](const Preset& preset) { return grouped(analysis::parameter_count(preset.shape)); });
  table.line("published", [](const Preset& preset) { return grouped(preset.published_parameters); });
}

void add_bytes(Table& table) {
  table.heading("Their bytes, by the type that products multiply in");
  for (const NumberType type : kNumberTypes) {
    table.line(std::string(name(type)),
               [type](const Preset& preset) { return bytes(analysis::weight_bytes(preset.shape, type)); });
  }
}

void add_costs(Table& table, std::int64_t length) {
  const std::string tokens = grouped(length) + (length == 1 ? " token" : " tokens");
  table.heading("One forward pass over " + tokens + " (a multiply-add counts as 2)");
  const auto flops = [&](const char* name, double analysis::ForwardFlops::*member) {
    table.line(name,
               [=](const Preset& preset) { return operations(analysis::forward_flops(preset.shape, length).*member); });
  };
  flops("to queries, keys, values, and W_O", &analysis::ForwardFlops::projections);
  flops("scores and weighted sums of values", &analysis::ForwardFlops::attention);
  flops("feed-forward", &analysis::ForwardFlops::feed_forward);
  table.line("all",
             [=](const Preset& preset) { return operations(analysis::forward_flops(preset.shape, length).all()); });
  table.heading("Attention in memory at " + tokens + ", one layer, float32");
  const auto memory = [&](const char* name, double analysis::AttentionBytes::*member) {
    table.line(name,
               [=](const Preset& preset) { return bytes(analysis::attention_bytes(preset.shape, length).*member); });
  };
  memory("scores, written out", &analysis::AttentionBytes::scores);
  memory("kept for backward, with the weights", &analysis::AttentionBytes::kept_plain);
  memory("kept for backward, weights rebuilt", &analysis::AttentionBytes::kept_rebuilt);
}

void add_merges(Table& table, std::int64_t length) {
  const auto costs = [=](const Preset& preset) {
    return analysis::merge_costs(preset.shape.width, preset.shape.heads, length);
  };
  const std::size_t count = costs(analysis::presets().front()).size();
  table.heading("Weights that put one layer's heads together (these models concatenate)");
  for (std::size_t n = 0; n < count; ++n) {
    table.line(std::string(name(static_cast<Merge>(n))),
               [=](const Preset& preset) { return grouped(costs(preset)[n].weights); });
  }
  table.heading("Its operations over the same tokens, with weighted sums, softmaxes and gates");
  for (std::size_t n = 0; n < count; ++n) {
    table.line(std::string(name(static_cast<Merge>(n))),
               [=](const Preset& preset) { return operations(costs(preset)[n].flops + costs(preset)[n].row_flops); });
  }
}

void add_terms(Table& table) {
  table.heading("Terms");
  table.term("W_Q, W_K, W_V", "the matrices that make a word's query, key and value");
  table.term("W_O", "the matrix behind the heads, which puts their outputs together");
  table.term("FLOP", "one addition or multiplication; a GFLOP is 10^9 of them");
  table.term("scores", "how well each query fits each key, L x L numbers a head");
  table.term("kept for backward", "what training holds from the forward pass on to compute gradients");
}

std::string notes(std::int64_t length) {
  std::string text =
      "\nHeads cost no weights: H heads have 3 x E x (E / H) each, 3 x E x E together, whatever H is, and W_O has E x "
      "E.\n"
      "MiniLM-L6 keeps BERT-base's 12 heads at half its width, so a head is 32 wide. GPT-2 sees backwards only: half "
      "the\n"
      "pairs. Its output head is its word table once more.\n";
  for (const Preset& preset : analysis::presets()) {
    if (length > preset.shape.positions) {
      text += std::string(preset.name) + " was trained for " + grouped(preset.shape.positions) +
              " positions: its column is what so long a text would cost.\n";
    }
  }
  return text;
}

std::string as_text(std::int64_t length) {
  Table table;
  add_shapes(table);
  add_attention(table);
  add_parameters(table);
  add_bytes(table);
  add_costs(table, length);
  add_merges(table, length);
  add_terms(table);
  return table.text() + notes(length);
}

// Counts are whole numbers as far as a double holds them.
Json number(double count) {
  if (count < 9007199254740992.0) return static_cast<std::int64_t>(count);
  return count;
}

Json as_json(const Preset& preset, std::int64_t length) {
  const analysis::ModelShape& shape = preset.shape;
  const analysis::AttentionParameters attention = analysis::attention_parameters(shape.width, shape.heads);
  const analysis::ForwardFlops flops = analysis::forward_flops(shape, length);
  const analysis::AttentionBytes memory = analysis::attention_bytes(shape, length);
  Json document;
  document["name"] = preset.name;
  document["layers"] = shape.layers;
  document["width"] = shape.width;
  document["heads"] = shape.heads;
  document["heads_by_rule"] = shape.width / kHeadDim;
  document["head_dim"] = attention.head_dim;
  document["feed_forward_width"] = shape.feed_forward_width;
  document["vocabulary"] = shape.vocabulary;
  document["positions"] = shape.positions;
  document["token_types"] = shape.token_types;
  document["causal"] = shape.causal;
  document["attention_weights"] = {{"one_projection_per_head", attention.one_projection},
                                   {"projections_per_head", attention.projections_per_head},
                                   {"projections", attention.projections},
                                   {"output", attention.output},
                                   {"all", attention.weights},
                                   {"all_with_one_head", analysis::attention_parameters(shape.width, 1).weights},
                                   {"biases", attention.biases}};
  for (const analysis::ParameterPart& part : analysis::parameters_by_part(shape)) {
    document["parameters"][part.name] = part.count;
  }
  document["parameter_count"] = analysis::parameter_count(shape);
  document["published_parameter_count"] = preset.published_parameters;
  for (const NumberType type : kNumberTypes) {
    document["weight_bytes"][name(type)] = number(analysis::weight_bytes(shape, type));
  }
  document["flops"] = {{"projections", number(flops.projections)},
                       {"attention", number(flops.attention)},
                       {"feed_forward", number(flops.feed_forward)},
                       {"all", number(flops.all())}};
  document["attention_bytes"] = {{"scores", number(memory.scores)},
                                 {"kept_plain", number(memory.kept_plain)},
                                 {"kept_rebuilt", number(memory.kept_rebuilt)}};
  for (const analysis::MergeCost& cost : analysis::merge_costs(shape.width, shape.heads, length)) {
    document["merges"].push_back({{"merge", name(cost.merge)},
                                  {"weights", cost.weights},
                                  {"flops", number(cost.flops)},
                                  {"row_flops", number(cost.row_flops)}});
  }
  return document;
}

struct Arguments {
  std::int64_t length = 512;
  bool json = false;
};

void show(const Arguments& arguments) {
  if (!arguments.json) return print(as_text(arguments.length));
  Json document;
  document["length"] = arguments.length;
  for (const Preset& preset : analysis::presets()) document["presets"].push_back(as_json(preset, arguments.length));
  print(document.dump(2) + "\n");
}

}  // namespace
}  // namespace presets_command

void add_presets(Command& program) {
  using namespace presets_command;
  Command command =
      program.add_subcommand("presets", "The classic configurations: parameters by part, operations, bytes");
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("--length", arguments->length, "Tokens that a pass goes over, 1 to 2^30 (default: 512)")
      .type_name("N")
      .check(between(1, kLongest));
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.example("--length 2048");
  command.callback([arguments] { show(*arguments); });
}

}  // namespace headlight::program
