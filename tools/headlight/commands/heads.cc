// headlight heads: what each head of a model does over a set of texts.
#include "tools/headlight/heads/heads.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/number_type.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/heads/example_texts.h"
#include "tools/headlight/heads/texts.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/number_parse.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/output.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/unknown_words.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace heads_command {
namespace {

struct Arguments {
  ModelArguments model;
  std::string json;
  std::string html;
  std::vector<std::string> mask;  // lists of heads
  bool importance = false;
  std::uint64_t seed = 1;
};

std::optional<HeadName> parse_head(const std::string& text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const auto layer = parse_number<std::int64_t>(text.substr(0, dot));
  const auto head = parse_number<std::int64_t>(text.substr(dot + 1));
  if (!layer || !head || *layer < 0 || *head < 0) return std::nullopt;
  return HeadName{*layer, *head};
}

std::string expected_heads(const std::string& list) {
  const std::vector<std::string> parts = parts_of(list, ",");
  const bool are_heads =
      std::all_of(parts.begin(), parts.end(), [](const std::string& part) { return parse_head(part).has_value(); });
  return are_heads ? "" : "heads as LAYER.HEAD, such as 3.2,3.7" + limit_of_parts(list, ".,");
}

std::vector<HeadName> heads_of(const std::vector<std::string>& lists, const NetworkSizes& model) {
  std::vector<HeadName> names;
  for (const std::string& list : lists) {
    for (const std::string& text : parts_of(list, ",")) {
      names.push_back(*parse_head(text));
      if (names.back().layer < model.layers && names.back().head < model.heads) continue;
      refuse_value(
          "--mask", text,
          "layers 0 to " + std::to_string(model.layers - 1) + " with heads 0 to " + std::to_string(model.heads - 1));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// The page and the document where they were asked for, and the summary.
void give(const Arguments& arguments, const std::string& model, const HeadsReport& report,
          const PruningReport* pruning) {
  const std::string all = counted(report.all_heads(), "head");
  const std::vector<WrittenFile> written = write_files(
      {{arguments.html, [&] { return heads_page(name_of_model(model), report, pruning); }, all + " on a page"},
       {arguments.json, [&] { return heads_json(model, report, pruning); }, all + " as JSON"}});
  print_report(written, heads_summary(model, report, pruning));
}

bool has_texts(const ModelArguments& arguments) { return !arguments.texts.empty() || !arguments.input.empty(); }

// The texts given. Where none are, a model of the demonstration's language, be it the program's own or one that
// `headlight train` made, gets sentences in it, and any other model the example texts.
TextSource texts_of(const ModelArguments& arguments, const demonstration::LoadedModel& loaded) {
  if (has_texts(arguments)) return open_texts(arguments);
  TextSource texts = usual_texts(loaded.readout.has_value());
  if (!loaded.readout) {
    print_warning("no texts are given: heads are measured on " +
                  counted(static_cast<std::int64_t>(texts.size()), "English sentence") +
                  " that come with the program; --text and --input take others");
  }
  return texts;
}

void heads(const Arguments& arguments) {
  if (has_texts(arguments.model)) arguments.model.check();
  Engine engine(arguments.model.engine.options());
  const demonstration::LoadedModel loaded =
      demonstration::load(arguments.model.model, *parse_number_type(arguments.model.precision));
  TextSource texts = texts_of(arguments.model, loaded);
  const models::TextEncoder& model = loaded.encoder;
  const std::string name = arguments.model.model.empty() ? demonstration::kDefaultModel : arguments.model.model;
  const ModelNetwork network(model, name);
  const std::vector<HeadName> mask = heads_of(arguments.mask, network.sizes());

  UnknownWords unknown(model);
  unknown.add(texts);
  Progress progress(texts.size() *
                    ((mask.empty() ? 1u : 2u) + (arguments.importance ? 1u : 0u) + (loaded.readout ? 1u : 0u)));
  const auto advance = [&](std::size_t done) { progress.advance(done); };
  HeadsReport report = run_heads(engine, model, network, texts, advance);
  if (report.rows == 0) {
    const std::string& input = arguments.model.input;
    throw models::FileError(input.empty()  ? "--text"
                            : input == "-" ? "standard input"
                                           : input,
                            "holds no words, expected some to measure heads by");
  }
  report.relations = run_relations(engine, loaded, texts, advance);
  if (arguments.importance) report.importance = run_importance(engine, model, network, texts, arguments.seed, advance);
  PruningReport pruning;
  if (!mask.empty()) pruning = run_without(engine, model, network, texts, mask, advance);
  const PruningReport* const asked = mask.empty() ? nullptr : &pruning;
  progress.clear();

  unknown.warn(arguments.model.model.empty());
  give(arguments, name, report, asked);
}

}  // namespace
}  // namespace heads_command

void add_heads(Command& program) {
  using namespace heads_command;
  Command command = program.add_subcommand("heads", "What each head of a model does over a set of texts");
  const auto arguments = std::make_shared<Arguments>();
  arguments->model.add_to(command, Inputs::texts);
  command.add_option("--json", arguments->json, "Write everything measured as one JSON document; - prints it alone")
      .type_name("FILE")
      .check(file_name())
      .check(ends_in(".json", "a JSON document"))
      .writes();
  command
      .add_option("--html", arguments->html,
                  "Write one page with a picture of each head, their similarities and a table to sort; - prints it "
                  "alone")
      .type_name("FILE")
      .check(apart_from("--json", arguments->json))
      .check(ends_in(".html", "a page in HTML"))
      .writes();
  command.add_option("--mask", arguments->mask, "Heads to silence, 3.2,3.7: what does the output lose without them?")
      .type_name("LAYER.HEAD,...")
      .one_at_a_time()
      .check(expected_heads);
  command.add_flag(
      "--importance", arguments->importance,
      "How much sentence vectors would miss each head, by gradient, in float32: takes some four times as long");
  command.add_option("--seed", arguments->seed, "Of the directions in which --importance looks (default: 1)")
      .type_name("N");
  command.example("--html heads.html",
                  "Layers and heads count from 0. A thousand sentences say more than ten. Without texts: 400 "
                  "sentences in the language of the demonstration model, for it and for models that `headlight train` "
                  "made, and " +
                      counted(std::ssize(kExampleTexts), "English sentence") + " for any other.");
  command.callback([arguments] { heads(*arguments); });
}

}  // namespace headlight::program
