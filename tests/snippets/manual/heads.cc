// Where the heads of a model look, from a folder named on the command line.
#include <headlight/analysis.h>
#include <headlight/models/models.h>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace analysis = headlight::analysis;

void show_heads(const std::string& folder) {
  headlight::Engine engine;
  const headlight::models::TextEncoder model = headlight::models::load(folder);
  const std::vector<std::string> texts = {"The animal didn't cross the street because it was too tired.",
                                          "The animal didn't cross the street because it was too wide."};

  analysis::AttentionMeasures measures(model.options().encoder.heads);  // sums over any number of texts
  for (const std::string& text : texts) {
    const std::vector<std::int64_t> ids = model.tokenizer().encode(text, model.options().max_length);
    const headlight::Tensor<float, 3> weights = model.probabilities(engine, ids, /*layer=*/0);  // [H, L, L]
    const std::vector<std::int64_t> separators = {static_cast<std::int64_t>(ids.size()) - 1};   // [SEP]
    const analysis::AttentionText whole = {.weights = weights, .rows = {}, .separators = separators};
    measures.add(engine, {&whole, 1});
  }
  for (std::int64_t number = 0; number < measures.heads(); ++number) {
    const analysis::HeadAttention head = measures.head(number);
    std::cout << "head " << number << ": entropy " << head.entropy.value() << ", looks " << head.distance.value()
              << " tokens away" << (head.kinds().local ? ", near" : "") << '\n';
  }

  // What a step of training such a model takes, without taking it: on 64 texts of 14 tokens.
  const std::vector<std::int64_t> lengths(64, 14);
  const analysis::TrainingPlan plan = {.encoder = model.options().encoder, .lengths = lengths};
  std::cout << "a step of training takes " << analysis::training_bytes(engine, plan).all() / 1024 << " KiB\n";
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    show_heads(arguments[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';  // of a file: its name, what it holds and what was expected
    return 1;
  }
  return 0;
}
