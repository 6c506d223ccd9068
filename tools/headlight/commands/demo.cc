// headlight demo: the main job on real input. Similar sentences, the time of every layer, and what "it" looks at.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/models/text_encoder.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/commands/demo_run.h"
#include "tools/headlight/support/engine_arguments.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/repeated_times.h"
#include "tools/headlight/support/unknown_words.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace demo_command {
namespace {

struct Arguments {
  EngineArguments engine;
  std::string model;
  std::string precision = "float32";
  std::uint64_t seed = 1;
  bool json = false;
};

// Terminal colours, or nothing.
struct Style {
  explicit Style(bool on) : bold(on ? "\033[1m" : ""), warm(on ? "\033[33m" : ""), plain(on ? "\033[0m" : "") {}
  std::string bold, warm, plain;
};

std::string heading(const Arguments& arguments, const Engine& engine, const models::TextEncoder& model,
                    const Style& style) {
  const EncoderOptions& options = model.options().encoder;
  std::string text;
  if (arguments.model.empty()) {
    text += "No published weights: this is a small random network (seed " + std::to_string(arguments.seed) +
            "). The work is real; its similarities and what its\nheads look at mean nothing.\n\n";
  }
  text += style.bold + (arguments.model.empty() ? "random network" : models::printable(arguments.model)) + style.plain;
  text += format(": %lld layers, width %lld, %lld heads, %.1f million parameters",
                 static_cast<long long>(options.layers), static_cast<long long>(options.width),
                 static_cast<long long>(options.heads), static_cast<double>(model.network().parameter_count()) / 1e6);
  text += "; " + std::string(name(engine.isa())) + ", " + std::to_string(engine.threads()) +
          (engine.threads() == 1 ? " thread" : " threads") + "; products in " +
          std::string(name(model.network().precision()));
  return text + "\n\n";
}

// Of all other sentences the closest one is warm.
std::string similarity_table(const Demo& demo, const Style& style) {
  std::string text = style.bold + "How close the sentences are (cosine)" + style.plain + "\n";
  const auto count = static_cast<std::int64_t>(demo.sentences.size());
  for (std::int64_t row = 0; row < count; ++row) {
    std::int64_t closest = row == 0 ? 1 : 0;
    for (std::int64_t column = 0; column < count; ++column) {
      if (column != row && demo.similarity(row, column) > demo.similarity(row, closest)) closest = column;
    }
    text += format("%3lld ", static_cast<long long>(row + 1));
    for (std::int64_t column = 0; column < count; ++column) {
      const std::string cell = format("%6.2f", static_cast<double>(demo.similarity(row, column)));
      text += column == closest ? style.warm + cell + style.plain : cell;
    }
    text += "   " + demo.sentences[static_cast<std::size_t>(row)] + "\n";
  }
  return text + "\n";
}

std::string time_table(const Demo& demo, const Style& style) {
  std::string text =
      style.bold +
      format("Time of each layer on these sentences (%lld tokens in one batch; the best of %d runs or more)",
             static_cast<long long>(demo.tokens),
             std::min_element(demo.layers.begin(), demo.layers.end(),
                              [](const auto& a, const auto& b) { return a.runs < b.runs; })
                 ->runs) +
      style.plain + "\n  layer        ms   GFLOP/s\n";
  LayerTime sum;
  for (std::size_t layer = 0; layer < demo.layers.size(); ++layer) {
    const LayerTime& time = demo.layers[layer];
    text += format("  %5zu  %8.3f  %8.1f\n", layer, 1e3 * time.seconds, 1e-9 * time.flops / time.seconds);
    sum.seconds += time.seconds;
    sum.flops += time.flops;
  }
  text += format("    all  %8.3f  %8.1f\n", 1e3 * sum.seconds, 1e-9 * sum.flops / sum.seconds);
  const bool busy =
      std::any_of(demo.layers.begin(), demo.layers.end(), [](const LayerTime& time) { return time.busy; });
  return text + note_of_busy(busy) + "\n";
}

// The token that gets the largest weight.
std::size_t strongest(const std::vector<float>& weights) {
  return static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
}

bool is_special(const std::string& token) { return token.starts_with('['); }

std::string look_table(const Looks& looks, const Style& style) {
  std::string sentence;
  for (const std::string& token : looks.tokens) sentence += (sentence.empty() ? "" : " ") + token;
  std::string text = style.bold + "What \"" + looks.tokens[looks.from] + "\" looks at most, in each head" +
                     style.plain + "\n  " + sentence + "\n  head";
  for (std::size_t layer = 0; layer < looks.weights.size(); ++layer)
    text += format("  %-14s", ("layer " + std::to_string(layer)).c_str());
  text += "\n";
  for (std::size_t head = 0; head < looks.weights.front().size(); ++head) {
    text += format("  %4zu", head);
    for (const auto& heads : looks.weights) {
      const std::size_t token = strongest(heads[head]);
      const std::string cell =
          format("  %-9.9s%3.0f %%", looks.tokens[token].c_str(), 100.0 * static_cast<double>(heads[head][token]));
      const bool elsewhere = !is_special(looks.tokens[token]) && token != looks.from;
      text += elsewhere ? style.warm + cell + style.plain : cell;
    }
    text += "\n";
  }
  return text + "\n";
}

// The mean over all heads of all layers, the words that get most first.
std::string look_summary(const Looks& looks) {
  std::vector<std::pair<double, std::size_t>> totals(looks.tokens.size());
  double count = 0;
  for (const auto& heads : looks.weights) {
    for (const auto& weights : heads) {
      for (std::size_t token = 0; token < weights.size(); ++token)
        totals[token].first += static_cast<double>(weights[token]);
      ++count;
    }
  }
  double special = 0;
  for (std::size_t token = 0; token < totals.size(); ++token) {
    totals[token].second = token;
    if (is_special(looks.tokens[token])) special += totals[token].first / count;
  }
  std::sort(totals.rbegin(), totals.rend());
  std::string text = format("On average over all heads: %.1f %% to [CLS] and [SEP]; of the words", 100 * special);
  int shown = 0;
  for (const auto& [total, token] : totals) {
    if (is_special(looks.tokens[token]) || shown == 5) continue;
    text += (shown++ == 0 ? " " : ", ") + looks.tokens[token] + format(" %.1f %%", 100 * total / count);
  }
  return text + ".\n";
}

Json as_json(const Arguments& arguments, const Engine& engine, const Demo& demo) {
  Json document;
  document["model"] = arguments.model.empty() ? Json(nullptr) : Json(models::printable(arguments.model));
  document["isa"] = name(engine.isa());
  document["threads"] = engine.threads();
  document["precision"] = name(*parse_number_type(arguments.precision));
  document["sentences"] = demo.sentences;
  for (std::size_t row = 0; row < demo.sentences.size(); ++row) {
    const float* const from = &demo.similarity(static_cast<std::int64_t>(row), 0);
    document["similarity"].push_back(std::vector<float>(from, from + demo.sentences.size()));
  }
  for (const LayerTime& time : demo.layers) {
    document["layers"].push_back({{"seconds", time.seconds}, {"runs", time.runs}, {"flops", time.flops}});
  }
  if (demo.looks) {
    document["tokens"] = demo.looks->tokens;
    document["from"] = demo.looks->from;
    document["weights"] = demo.looks->weights;
  }
  return document;
}

void show(const Arguments& arguments) {
  Engine engine(arguments.engine.options());
  models::TextEncoder model = arguments.model.empty() ? make_demo_model(arguments.seed) : models::load(arguments.model);
  if (!model.has_network()) {
    throw models::FileError(arguments.model, "has the model_type " + models::in_quotes(model.options().model_type) +
                                                 ", expected one whose layers are BERT's");
  }
  if (!model.has_tokenizer()) throw models::FileError(arguments.model, "has another tokenizer, expected BERT's");
  model.network().set_precision(*parse_number_type(arguments.precision));
  if (model.options().encoder.layers < 1)
    throw models::FileError(arguments.model, "has no layers, expected at least 1");
  const Demo demo = run_demo(engine, model);
  UnknownWords unknown(model);
  for (const std::string& sentence : demo.sentences) unknown.add(sentence);
  unknown.add(demo.question);
  unknown.warn(/*is_demonstration=*/false);
  if (!demo.looks) {
    print_warning("the model has no token " + models::in_quotes(kDemoWord) + " in '" + demo.question +
                  "', so what it looks at is left out; a model of English has one");
  }
  if (arguments.json) return print(as_json(arguments, engine, demo).dump(1) + "\n");
  const Style style(colours_wanted());
  print(heading(arguments, engine, model, style) + similarity_table(demo, style) + time_table(demo, style) +
        (demo.looks ? look_table(*demo.looks, style) + look_summary(*demo.looks) : ""));
}

}  // namespace
}  // namespace demo_command

void add_demo(Command& program) {
  using namespace demo_command;
  Command command =
      program.add_subcommand("demo", "Similar sentences, the time of every layer, and what \"it\" looks at");
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option(
          "--model", arguments->model,
          "Folder or GGUF file of a model whose layers and tokenizer are BERT's (default: a small random network)")
      .type_name("DIR")
      .check(file_name());
  add_precision(command, arguments->precision);
  command.add_option("--seed", arguments->seed, "Of the random network").type_name("N");
  command.add_flag("--json", arguments->json, "Print one JSON document");
  arguments->engine.add_to(command);
  command.example("");
  command.callback([arguments] { show(*arguments); });
}

}  // namespace headlight::program
