// headlight rerank: texts in the order in which a cross-encoder finds that they answer a query.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/models/text_encoder.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/score_order.h"

namespace headlight::program {
namespace rerank_command {
namespace {

struct Arguments {
  ModelArguments model;
  std::string query;
  bool json = false;
};

// The scores of all texts. Numbers of a pair do not depend on its neighbours: so many at a time as memory has room for.
ScoreOrder scores_of(Engine& engine, const models::TextEncoder& model, const std::string& query, TextSource& texts) {
  ScoreOrder scores;
  Progress progress(texts.size());
  while (true) {
    const TextSource::Block block = texts.next_block();
    if (block.texts.empty()) break;
    std::vector<models::TextPair> pairs;
    for (const std::string& text : block.texts) pairs.push_back({query, text});
    const Tensor<float, 2> found = model.score(engine, pairs);
    for (std::size_t n = 0; n < pairs.size(); ++n) {
      scores.add(found(static_cast<std::int64_t>(n), 0), block.places[n]);
    }
    progress.advance(pairs.size());
  }
  progress.clear();
  return scores;
}

// Parts of lines are printed together.
class Lines {
 public:
  void add(std::string_view text) {
    lines_ += text;
    constexpr std::size_t kMany = std::size_t{1} << 18;
    if (lines_.size() > kMany) print_all();
  }
  void print_all() {
    print(lines_);
    lines_.clear();
  }

 private:
  std::string lines_;
};

void rerank(const Arguments& arguments) {
  arguments.model.check();
  Engine engine(arguments.model.engine.options());
  const models::TextEncoder model = arguments.model.load();
  if (model.score_width() == 0) {
    throw models::FileError(arguments.model.model,
                            "has no head for classification, expected architectures of config.json that end in "
                            "ForSequenceClassification, or cls.output.weight and pooling_type 4 of a GGUF file");
  }
  if (model.score_width() > 1) {
    throw models::FileError(arguments.model.model,
                            "gives " + std::to_string(model.score_width()) +
                                " scores for each pair of texts, expected one, as models for reranking do");
  }
  TextSource texts = open_texts(
      arguments.model, arguments.model.memory_of(engine, model, model.options().embed_max_length, /*result=*/0));
  ScoreOrder scores = scores_of(engine, model, arguments.query, texts);
  Lines lines;
  bool first = true;
  scores.for_each([&](float score, std::int64_t number, std::int64_t place) {
    const std::string of_text = json_number(score);  // null where it is NaN or infinite
    if (arguments.json) {
      lines.add((first ? "[" : ",\n ") + ("{\"index\": " + std::to_string(number) + ", \"score\": " + of_text + "}"));
    } else {
      lines.add(of_text + "\t" + texts.text_at(place) + "\n");
    }
    first = false;
  });
  if (arguments.json) lines.add(first ? "[]\n" : "]\n");
  lines.print_all();
}

}  // namespace
}  // namespace rerank_command

void add_rerank(Command& program) {
  using namespace rerank_command;
  Command command =
      program.add_subcommand("rerank", "Texts in the order in which they answer a query, by a cross-encoder");
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("--query", arguments->query, "What each text is scored against").type_name("TEXT").required();
  arguments->model.add_to(command, Inputs::texts_of_model);
  arguments->model.add_memory_to(command);
  command.add_flag("--json", arguments->json, "Print one JSON document: places of texts in the input, and scores");
  command.example(
      "--model downloads/ms-marco-MiniLM-L6-v2 --query 'What do pandas eat?' --text 'Bamboo.' --text 'Paris.'",
      "Any cross-encoder of a family that docs/model-folders.md lists will do: its config.json names architectures "
      "that end in ForSequenceClassification. That of the example is published, but not fetched by tools/run.");
  command.callback([arguments] { rerank(*arguments); });
}

}  // namespace headlight::program
