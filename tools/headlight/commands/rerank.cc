// headlight rerank: texts in the order in which a cross-encoder finds that they answer a query.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/progress.h"

namespace headlight::program {
namespace rerank_command {
namespace {

struct Arguments {
  ModelArguments model;
  std::string query;
  bool json = false;
};

struct Scored {
  std::string text;
  float score = 0;
};

// Numbers of a pair do not depend on its neighbours: so many at a time, for the bar.
constexpr std::size_t kBlock = 64;

std::vector<Scored> scored(Engine& engine, const models::TextEncoder& model, const std::string& query,
                           TextSource& texts) {
  std::vector<Scored> all(texts.size());
  for (Scored& one : all) static_cast<void>(texts.next(one.text));
  Progress progress(all.size());
  std::vector<models::TextPair> pairs;
  for (std::size_t done = 0; done < all.size(); done += pairs.size()) {
    pairs.clear();
    for (std::size_t n = done; n < std::min(done + kBlock, all.size()); ++n) pairs.push_back({query, all[n].text});
    const Tensor<float, 2> scores = model.score(engine, pairs);
    for (std::size_t n = 0; n < pairs.size(); ++n) all[done + n].score = scores(static_cast<std::int64_t>(n), 0);
    progress.advance(pairs.size());
  }
  progress.clear();
  return all;
}

// The highest score first, NaN last; equal ones as they came.
std::vector<std::size_t> order_of(const std::vector<Scored>& all) {
  const auto rank = [&](std::size_t n) {
    return std::isnan(all[n].score) ? -std::numeric_limits<float>::infinity() : all[n].score;
  };
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank(a) > rank(b); });
  return order;
}

void rerank(const Arguments& arguments) {
  arguments.model.check();
  Engine engine(arguments.model.engine.options());
  const models::TextEncoder model = arguments.model.load();
  if (model.score_width() > 1) {
    throw std::invalid_argument("--model gives " + std::to_string(model.score_width()) +
                                " scores for each pair of texts, expected one, as models for reranking do");
  }
  TextSource texts = open_texts(arguments.model);
  const std::vector<Scored> all = scored(engine, model, arguments.query, texts);
  std::string lines;
  for (const std::size_t n : order_of(all)) {
    const std::string score = json_number(all[n].score);  // null where it is NaN or infinite
    if (arguments.json) {
      lines += (lines.empty() ? "[" : ",\n ") + ("{\"index\": " + std::to_string(n) + ", \"score\": " + score + "}");
    } else {
      lines += score + "\t" + all[n].text + "\n";
    }
  }
  print(arguments.json ? (lines.empty() ? "[" : lines) + "]\n" : lines);
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
  command.add_flag("--json", arguments->json, "Print one JSON document: places of texts in the input, and scores");
  command.example(
      "--model downloads/ms-marco-MiniLM-L6-v2 --query 'What do pandas eat?' --text 'Bamboo.' --text 'Paris.'",
      "Any cross-encoder of a family that docs/model-folders.md lists will do: its config.json names architectures "
      "that end in ForSequenceClassification. That of the example is published, but not fetched by tools/run.");
  command.callback([arguments] { rerank(*arguments); });
}

}  // namespace headlight::program
