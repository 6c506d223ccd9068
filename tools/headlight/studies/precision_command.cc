// The command line of headlight study precision.
#include <memory>
#include <string>
#include <vector>

#include "headlight/models/errors.h"
#include "tools/headlight/demonstration/default_model.h"
#include "tools/headlight/studies/precision.h"
#include "tools/headlight/studies/study.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/unknown_words.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace precision_study {
namespace {

// Every text is compared with every other.
constexpr std::int64_t kMostTexts = 1000, kQuickTexts = 64;
constexpr int kRuns = 9, kQuickRuns = 3;

struct Arguments {
  StudyArguments study;
  std::string model;
  std::string input;
};

// The first of them, as batches.
std::vector<TextBatch> batches_of(const models::TextEncoder& model, TextSource texts, bool quick) {
  const std::int64_t most = quick ? kQuickTexts : kMostTexts;
  texts.rewind();
  std::vector<std::string> first;
  for (std::string text; static_cast<std::int64_t>(first.size()) < most && texts.next(text);) first.push_back(text);
  if (first.size() < 2) throw std::invalid_argument("--input has 1 line, expected at least 2: texts are compared");
  TextSource kept(std::move(first));
  TextBatches all(model, kept);
  std::vector<TextBatch> batches;
  for (TextBatch batch; all.next(batch);) batches.push_back(std::move(batch));
  return batches;
}

void study_precision(const Arguments& arguments) {
  Engine engine(arguments.study.engine.options());
  const demonstration::LoadedModel loaded = demonstration::load(arguments.model);
  const bool quick = arguments.study.quick;
  const PrecisionSource source{.model = arguments.model.empty() ? demonstration::kDefaultModel : arguments.model,
                               .options = loaded.encoder.options().encoder,
                               .quick = quick,
                               .runs = quick ? kQuickRuns : kRuns};
  const ModelNetwork network(loaded.encoder, source.model);
  TextSource texts =
      arguments.input.empty() ? usual_texts(loaded.readout.has_value()) : TextSource::lines_of(arguments.input);
  UnknownWords unknown(loaded.encoder);
  unknown.add(texts);
  const std::vector<TextBatch> batches = batches_of(loaded.encoder, std::move(texts), quick);
  PrecisionReport report;
  {
    Progress progress(precision_steps(source.runs));
    report =
        measure_precision(engine, network, batches, source.runs, [&](std::size_t done) { progress.advance(done); });
  }
  unknown.warn(arguments.model.empty());
  unknown.warn_of_texts();
  arguments.study.give(precision_table(engine, source, report), precision_document(source, report),
                       [&] { return precision_chart(source, report); });
}

}  // namespace
}  // namespace precision_study

void add_study_precision(Command& study) {
  using namespace precision_study;
  Command command = study.add_subcommand("precision", "What narrower numbers in products cost and buy, layer by layer");
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option("--model", arguments->model,
                  "Folder with config.json, model.safetensors, vocab.txt or tokenizer.json, or a GGUF file; "
                  "default: the demonstration model")
      .type_name("DIR")
      .check(file_name());
  command
      .add_option("--input", arguments->input,
                  "A file with one text a line, of which the first " + grouped(kMostTexts) + " count, with --quick " +
                      grouped(kQuickTexts) + "; - is standard input (default: sentences of the program's)")
      .type_name("FILE")
      .check(file_name())
      .reads();
  arguments->study.add_to(command);
  command.example("--quick --svg precision.svg");
  command.callback([arguments] { study_precision(*arguments); });
}

}  // namespace headlight::program
