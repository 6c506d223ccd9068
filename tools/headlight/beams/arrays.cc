// Any words with any weights: what is read, and what it must be.
#include "tools/headlight/support/arrays.h"

#include <cmath>
#include <stdexcept>

#include "headlight/models/errors.h"
#include "tools/headlight/beams/beams.h"

namespace headlight::program {
namespace {

// A picture of more would show nothing, and the page counts words in 16 bits.
constexpr std::int64_t kMostWords = 4096;
// What is lost when weights that sum to one are kept as float16.
constexpr double kTolerance = 2e-3;

std::vector<Word> split(const std::string& words) {
  std::vector<Word> found;
  std::string word;
  for (const char letter : words + ' ') {
    if (letter != ' ' && !(letter >= '\t' && letter <= '\r')) {
      word += letter;
    } else if (!word.empty()) {
      found.push_back({.text = word, .special = word == "[CLS]" || word == "[SEP]"});
      word.clear();
    }
  }
  return found;
}

void check_words(std::int64_t count) {
  if (count >= 1 && count <= kMostWords) return;
  throw std::invalid_argument("--words holds " + std::to_string(count) + " words, expected 1 to " +
                              std::to_string(kMostWords));
}

// Weights of one row: none is negative or no number, and they sum to 1, or are all 0 where nothing is seen.
void check_row(const std::string& path, const float* row, std::int64_t length, std::int64_t layer, std::int64_t head,
               std::int64_t number) {
  const auto fail = [&](const std::string& what) {
    throw models::FileError(path, "layer " + std::to_string(layer) + ", head " + std::to_string(head) + ", row " +
                                      std::to_string(number) + " " + what);
  };
  double sum = 0;
  bool any = false;
  for (std::int64_t j = 0; j < length; ++j) {
    if (!(row[j] >= 0)) fail("holds " + std::to_string(row[j]) + ", expected weights of 0 or more");
    sum += static_cast<double>(row[j]);
    any = any || row[j] > 0;
  }
  if (any && !(std::abs(sum - 1) <= kTolerance)) fail("sums to " + std::to_string(sum) + ", expected 1");
}

}  // namespace

Beams beams_of_arrays(const std::string& words, const std::string& attention) {
  Beams beams;
  beams.title = words;
  beams.source = attention.substr(attention.rfind('/') + 1);
  beams.words = split(words);
  const std::int64_t length = beams.length();
  check_words(length);
  const models::Array<float> array = read_array<float>(attention, 4, "[layers, heads, L, L]");
  const std::vector<std::int64_t>& shape = array.shape;
  if (shape[0] < 1 || shape[1] < 1 || shape[2] != length || shape[3] != length) {
    const std::string count = std::to_string(length);
    throw models::FileError(attention, "has shape " + describe(shape) + ", expected [layers, heads, " + count + ", " +
                                           count + "] for the " + count + " words of --words");
  }
  beams.heads = shape[1];
  const float* values = array.values.data();
  for (std::int64_t layer = 0; layer < shape[0]; ++layer) {
    BeamLayer& made = beams.layers.emplace_back();
    made.weights = Tensor<float, 3>({beams.heads, length, length});
    for (std::int64_t head = 0; head < beams.heads; ++head) {
      for (std::int64_t i = 0; i < length; ++i, values += length) {
        check_row(attention, values, length, layer, head, i);
        std::copy_n(values, length, &made.weights(head, i, 0));
      }
    }
  }
  return beams;
}

}  // namespace headlight::program
