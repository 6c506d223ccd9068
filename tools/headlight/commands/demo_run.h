// What `headlight demo` finds out, apart from how it shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/models/text_encoder.h"

namespace headlight::program {

// One layer of the network on the demonstration's sentences.
struct LayerTime {
  double seconds = 0;  // the best of `runs`
  int runs = 0;
  bool busy = false;  // they disagree
  double flops = 0;   // of the products and of attention; row operations are not counted
};

// What one token looks at, in one head: softmax weights over all tokens of the sentence.
struct Looks {
  std::vector<std::string> tokens;
  std::size_t from = 0;
  // [layers][heads][tokens]
  std::vector<std::vector<std::vector<float>>> weights;
};

struct Demo {
  std::vector<std::string> sentences;
  std::string question;  // the sentence of `looks`
  // [n, n]: cosines of the sentence vectors.
  Tensor<float, 2> similarity;
  std::int64_t tokens = 0;  // of all sentences
  std::vector<LayerTime> layers;
  std::optional<Looks> looks;  // nothing where the model sees no such word
};

// The word of Looks: of a pronoun everybody can tell where it should look.
inline constexpr const char* kDemoWord = "it";

// Without weights: a network drawn from the seed, over the demonstration's own words.
[[nodiscard]] models::TextEncoder make_demo_model(std::uint64_t seed);

[[nodiscard]] Demo run_demo(Engine& engine, const models::TextEncoder& model);

}  // namespace headlight::program
