// headlight beams: what every head of a sentence looks at, as light.
#include "tools/headlight/beams/beams.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/number_type.h"
#include "tools/headlight/beams/relations.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/demonstration/default_model.h"
#include "tools/headlight/support/engine_arguments.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/number_parse.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/output.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/text_tokens.h"
#include "tools/headlight/support/unknown_words.h"
#include "tools/headlight/support/validators.h"
#include "tools/headlight/support/word_tokens.h"

namespace headlight::program {
namespace beams_command {
namespace {

struct Arguments {
  EngineArguments engine;
  std::string model, text, words, attention, out;
  bool has_text = false, pieces = false;
  std::int64_t layer = kAll;
  std::string heads, from, to, format, precision;
  std::int64_t top = 0;  // 0: as many as a picture of so many words bears
};

enum class Kind : std::uint8_t { page, still };

// What is no file on a disk has no ending to tell by: a pipe, a terminal.
bool is_stream(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return is_standard_output(path) || (!error && std::filesystem::is_other(status));
}

Kind kind_of(const Arguments& arguments) {
  const std::string& out = arguments.out;
  if (!arguments.format.empty()) return arguments.format == "svg" ? Kind::still : Kind::page;
  if (out.ends_with(".svg")) return Kind::still;
  if (out.ends_with(".html") || is_stream(out)) return Kind::page;
  refuse_value("--output", out, "a name that ends in .html or .svg, or --format beside it");
}

void check(const Arguments& arguments) {
  const bool by_words = !arguments.words.empty() || !arguments.attention.empty();
  if (arguments.has_text == by_words) throw UsageError("either --text, or --words with --attention, is needed");
  if (by_words && !arguments.model.empty()) throw UsageError("--model goes with --text");
  if (by_words && !arguments.precision.empty()) throw UsageError("--precision goes with --text");
  if (by_words && (arguments.words.empty() || arguments.attention.empty())) {
    throw UsageError("--words and --attention go together");
  }
}

// "0,3,7"; nothing for what is no list of numbers from 0 on.
std::optional<std::vector<std::int64_t>> parse_heads(const std::string& list) {
  std::vector<std::int64_t> found;
  for (const std::string& part : parts_of(list, ",")) {
    const auto head = parse_number<std::int64_t>(part);
    if (!head || *head < 0) return std::nullopt;
    found.push_back(*head);
  }
  return found;
}

std::string expected_heads(const std::string& list) {
  return parse_heads(list) ? "" : "numbers from 0 on such as 0,3,7" + limit_of_parts(list, ",");
}

// Ascending numbers of heads, all where none are given. Throws UsageError for a head that there is not.
std::vector<std::int64_t> heads_of(const std::string& list, std::int64_t heads) {
  std::vector<std::int64_t> found(static_cast<std::size_t>(heads));
  std::iota(found.begin(), found.end(), 0);
  if (list.empty()) return found;
  found = *parse_heads(list);
  std::sort(found.begin(), found.end());
  if (found.back() >= heads) {
    refuse_value("--heads", list, "heads of the model, 0 to " + std::to_string(heads - 1));
  }
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

BeamView view_of(const Arguments& arguments, const Beams& beams) {
  const auto layers = static_cast<std::int64_t>(beams.layers.size());
  if (arguments.layer >= layers) {
    refuse_value("--layer", std::to_string(arguments.layer), "0 to " + std::to_string(layers - 1));
  }
  BeamView view;
  view.layer = arguments.layer == kAll ? telling_layer(beams) : arguments.layer;
  view.heads = heads_of(arguments.heads, beams.heads);
  if (!arguments.from.empty()) view.from = find_word(beams, "--from", arguments.from);
  if (!arguments.to.empty()) view.to = find_word(beams, "--to", arguments.to);
  view.top = arguments.top > 0 ? arguments.top : beams.length() <= 24 ? 24 : beams.length() <= 128 ? 12 : 8;
  view.top = std::min(view.top, beams.length());
  return view;
}

// How much of a text that is too long for the model the picture shows.
std::string note_of_cut(const models::TextEncoder& model, const Arguments& arguments, const Beams& beams) {
  const std::vector<std::int64_t> ids = model.tokenize(arguments.text, std::numeric_limits<std::int64_t>::max());
  std::vector<Word> all;
  for (WordTokens& word : words_of(model, arguments.text, ids, arguments.pieces)) {
    all.push_back(std::move(word.word));
  }
  return "This is the first " + counted(word_count(beams.words), "word") + " of " + grouped(word_count(all)) +
         ": the model takes no more";
}

// Warns of what the model does not see or know of the text; the picture, which goes further than standard error, gets
// it as notes.
void check_text(const models::TextEncoder& model, const Arguments& arguments, Beams& beams) {
  UnknownWords unknown(model);
  unknown.add(arguments.text);
  if (unknown.cut() > 0) {
    print_warning("the text has more than the " + std::to_string(unknown.most()) +
                  " tokens that the model takes; the rest is left out");
    beams.notes.push_back(note_of_cut(model, arguments, beams));
  }
  unknown.warn(arguments.model.empty());
  if (const std::string names = unknown.names(); !names.empty()) {
    beams.notes.push_back("The model does not know: " + names + "; what it shows of them means nothing");
  }
}

Beams read_beams(const Arguments& arguments, std::vector<FoundRelation>& relations) {
  if (!arguments.has_text) return beams_of_arrays(arguments.words, arguments.attention);
  Engine engine(arguments.engine.options());
  const demonstration::LoadedModel loaded = demonstration::load(
      arguments.model, arguments.precision.empty() ? NumberType::float32 : *parse_number_type(arguments.precision));
  const models::TextEncoder& model = loaded.encoder;
  const ModelNetwork network(model, arguments.model.empty() ? demonstration::kDefaultModel : arguments.model);
  if (static_cast<std::int64_t>(model.tokenize(arguments.text).size()) <= tokens_around(model).count())
    throw models::FileError("--text", "holds no words, expected a sentence");
  Beams beams = beams_of_text(engine, model, network, arguments.text, arguments.pieces);
  check_text(model, arguments, beams);
  relations = find_relations(engine, loaded, arguments.text, beams);
  beams.source = name_of_model(arguments.model.empty() ? demonstration::kDefaultModel : arguments.model);
  return beams;
}

void warn_of_many_beams(std::size_t count) {
  if (count <= kMostBeams) return;
  print_warning("the picture shows the " + grouped(kMostBeams) + " brightest of " +
                grouped(static_cast<std::int64_t>(count)) + " beams; --top, --heads, --from and --to choose fewer");
}

// The brightest beam between two different words of each head, the brightest heads first.
std::string summary(const Beams& beams, const BeamView& view) {
  const std::string layer = "layer " + std::to_string(view.layer);
  std::string text = layer + ", the brightest beams between words:\n";
  std::vector<std::int64_t> seen;
  for (const Beam& beam : beams_in_view(beams, view)) {
    const Word& from = beams.words[static_cast<std::size_t>(beam.from)];
    const Word& to = beams.words[static_cast<std::size_t>(beam.to)];
    const bool known = std::count(seen.begin(), seen.end(), beam.head) > 0;
    if (beam.from == beam.to || from.special || to.special || known || seen.size() == 5) continue;
    seen.push_back(beam.head);
    char weight[48];
    std::snprintf(weight, sizeof weight, "  head %2lld  %3.0f %%  ", static_cast<long long>(beam.head),
                  100 * static_cast<double>(beam.weight));
    text += weight + name_of_word(beams, beam.from) + " -> " + name_of_word(beams, beam.to) + "\n";
  }
  return seen.empty() ? layer + ": no beam between two different words\n" : text;
}

void show(const Arguments& arguments) {
  check(arguments);
  const Kind kind = kind_of(arguments);
  std::vector<FoundRelation> relations;
  const Beams beams = read_beams(arguments, relations);
  const BeamView view = view_of(arguments, beams);
  if (kind == Kind::still) warn_of_many_beams(beams_in_view(beams, view).size());
  const std::string picture = kind == Kind::page ? beams_page(beams, view) : beams_still(beams, view);
  write_file(arguments.out, picture);
  const std::string what = counted(word_count(beams.words), "word") + ", " +
                           counted(static_cast<std::int64_t>(beams.layers.size()), "layer") + " of " +
                           counted(beams.heads, "head");
  print_report(std::vector<WrittenFile>{{arguments.out, what}},
               summary(beams, view) + relations_summary(relations, beams));
}

}  // namespace
}  // namespace beams_command

void add_beams(Command& program) {
  using namespace beams_command;
  Command command =
      program.add_subcommand("beams", "A picture of what every head of a sentence looks at: HTML, or SVG for papers");
  const auto arguments = std::make_shared<Arguments>();
  const auto add = [&](const char* option, std::string& value, const char* type, const char* help) {
    return command.add_option(option, value, help).type_name(type);
  };
  add("--model", arguments->model, "DIR",
      "Folder with config.json, model.safetensors, vocab.txt or tokenizer.json, or a GGUF file; default: the "
      "demonstration model")
      .check(file_name());
  add_precision(command, arguments->precision);
  const Option text = add("--text", arguments->text, "TEXT", "The sentence");
  add("--words", arguments->words, "WORDS", "Instead of a model: words, with spaces between them");
  add("--attention", arguments->attention, "NPY", "float32 [layers, heads, L, L]: the weights for --words")
      .check(file_name())
      .reads();
  add("-o,--output", arguments->out, "FILE", "The picture: .html to explore, .svg for papers; - is standard output")
      .check(file_name())
      .writes()
      .required();
  add("--format", arguments->format, "html|svg", "What the picture is where its name has no ending; default: html")
      .check(one_of({"html", "svg"}));
  command
      .add_option("--layer", arguments->layer,
                  "The layer that is shown, in HTML at first; default: where words look at words most")
      .type_name("N")
      .check(at_least(0));
  add("--heads", arguments->heads, "0,3,7", "The heads that are shown, in HTML at first; default: all")
      .check(expected_heads);
  add("--from", arguments->from, "WORD", "Only what this word looks at; WORD#2 is the second of several");
  add("--to", arguments->to, "WORD", "Only what looks at this word");
  command
      .add_option("--top", arguments->top,
                  "Beams of each word and head, the brightest; default: 24, for long texts 12 or 8")
      .type_name("K")
      .check(at_least(1));
  command.add_flag("--pieces", arguments->pieces, "Show the tokens of --text, instead of putting words together");
  arguments->engine.add_to(command);
  command.example("--text \"The animal didn't cross the street because it was too tired.\" -o beams.html");
  command.callback([arguments, text] {
    arguments->has_text = text.given();
    show(*arguments);
  });
}

}  // namespace headlight::program
