// What `headlight beams` draws, apart from how it draws it: words, and how much each looks at each, head by head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/models/text_encoder.h"
#include "headlight/tensor.h"
#include "tools/headlight/support/model_network.h"
#include "tools/headlight/support/word_tokens.h"

namespace headlight::program {

struct BeamLayer {
  // [H, L, L]: softmax weights, row i what word i looks at.
  Tensor<float, 3> weights;
  // [L, H]: the length of each head's part of a word's new representation, after W_O; not given where only weights are.
  Tensor<float, 2> parts;
};

struct Beams {
  std::string title;   // the sentence
  std::string source;  // the model, or the file of weights
  // Sentences without a full stop that a reader of the picture must know: words that the model does not, or never saw.
  std::vector<std::string> notes;
  std::int64_t heads = 0;
  std::vector<Word> words;
  std::vector<BeamLayer> layers;

  [[nodiscard]] std::int64_t length() const noexcept { return static_cast<std::int64_t>(words.size()); }
};

constexpr std::int64_t kAll = -1;

// What goes beyond is cut where a picture shows a word.
constexpr std::size_t kWordColumns = 26;

// Which of it is shown, or shown first.
struct BeamView {
  std::int64_t layer = 0;
  std::vector<std::int64_t> heads{};  // ascending
  std::int64_t from = kAll;           // the word that looks
  std::int64_t to = kAll;             // the word that is looked at
  std::int64_t top = 0;               // beams of each word and head
};

// One beam: head `head` of word `from` looks at word `to`.
struct Beam {
  std::int64_t head = 0, from = 0, to = 0;
  float weight = 0;
};

// The sentence through the model. `pieces`: every token stands for itself; else the pieces of a word are put together:
// what looks at a word looks at any of its pieces, what a word looks at is the mean over them.
[[nodiscard]] Beams beams_of_text(Engine& engine, const models::TextEncoder& model, const ModelNetwork& network,
                                  const std::string& text, bool pieces);

// Words between spaces, and [layers, heads, L, L] weights for them. Throws models::FileError where the array is none
// for these words, std::invalid_argument where the words are none.
[[nodiscard]] Beams beams_of_arrays(const std::string& words, const std::string& attention);

// The layer in which words look most at words that are not their neighbours.
[[nodiscard]] std::int64_t telling_layer(const Beams& beams);

// The words among what stands for words: neither [CLS] and [SEP], nor marks, nor pieces that go on inside a word.
[[nodiscard]] std::int64_t word_count(const std::vector<Word>& words);

// How people and find_word() tell this word from others: its text, or text#2 for the second of several.
[[nodiscard]] std::string name_of_word(const Beams& beams, std::int64_t word);

// The number of the word that an option names: its text, or text#2 for the second of several. Throws
// UsageError that lists the words.
[[nodiscard]] std::int64_t find_word(const Beams& beams, const std::string& option, const std::string& name);

// The beams of the view: of each word and head the `top` heaviest, of these the ones that leave `from` and arrive at
// `to`; heaviest first. Less than a thousandth of the light is no beam.
[[nodiscard]] std::vector<Beam> beams_in_view(const Beams& beams, const BeamView& view);

// The share of all light of the layer's heads that the `top` heaviest beams of each word and head carry.
[[nodiscard]] double share_of_top(const Beams& beams, std::int64_t layer, std::int64_t top);

// Beams that a still picture shows, the brightest: a paper's figure, not a database. It says how many there are.
constexpr std::size_t kMostBeams = 2000;

// A page that shows everything, or a still picture of the view. UTF-8.
[[nodiscard]] std::string beams_page(const Beams& beams, const BeamView& view);
[[nodiscard]] std::string beams_still(const Beams& beams, const BeamView& view);

}  // namespace headlight::program
