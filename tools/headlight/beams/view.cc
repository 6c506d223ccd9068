// Which beams are worth looking at.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <tuple>

#include "headlight/models/errors.h"
#include "text/characters.h"
#include "tools/headlight/beams/beams.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/number_parse.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

constexpr float kFaintest = 1e-3f;
constexpr std::size_t kNameColumns = 24;

std::string in_lower_case(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter | 0x20);
  }
  return text;
}

// The `count` heaviest columns of row i, heaviest first; of equals the first.
std::vector<std::int64_t> heaviest(const Tensor<float, 3>& weights, std::int64_t head, std::int64_t i,
                                   std::int64_t count) {
  std::vector<std::int64_t> columns;
  for (std::int64_t j = 0; j < weights.shape()[2]; ++j) {
    if (weights(head, i, j) >= kFaintest) columns.push_back(j);
  }
  const auto kept = std::min(columns.size(), static_cast<std::size_t>(count));
  std::partial_sort(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(kept), columns.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      return std::tuple(-weights(head, i, a), a) < std::tuple(-weights(head, i, b), b);
                    });
  columns.resize(kept);
  return columns;
}

}  // namespace

std::int64_t telling_layer(const Beams& beams) {
  std::int64_t best = 0;
  double most = -1;
  for (std::size_t number = 0; number < beams.layers.size(); ++number) {
    const Tensor<float, 3>& weights = beams.layers[number].weights;
    double sum = 0;
    for (std::int64_t head = 0; head < beams.heads; ++head) {
      for (std::int64_t i = 0; i < beams.length(); ++i) {
        for (std::int64_t j = 0; j < beams.length(); ++j) {
          // Neighbours are looked at in any layer, and tell nothing.
          const bool far_apart = std::abs(i - j) > 1 && !beams.words[static_cast<std::size_t>(i)].special &&
                                 !beams.words[static_cast<std::size_t>(j)].special;
          // Squares: a beam tells more than the same light spread out.
          if (far_apart) sum += static_cast<double>(weights(head, i, j)) * static_cast<double>(weights(head, i, j));
        }
      }
    }
    if (sum > most) {
      most = sum;
      best = static_cast<std::int64_t>(number);
    }
  }
  return best;
}

std::int64_t word_count(const std::vector<Word>& words) {
  std::int64_t count = 0;
  for (const Word& word : words) {
    bool marks = true;
    for_each_code_point(word.text, [&](char32_t code) { return marks = marks && text::is_punctuation(code); });
    count += word.special || marks || word.text.starts_with("##") ? 0 : 1;
  }
  return count;
}

std::string name_of_word(const Beams& beams, std::int64_t word) {
  const std::string& text = beams.words[static_cast<std::size_t>(word)].text;
  std::int64_t number = 0, all = 0;
  for (std::int64_t at = 0; at < beams.length(); ++at) {
    if (beams.words[static_cast<std::size_t>(at)].text != text) continue;
    ++all;
    number += at <= word ? 1 : 0;
  }
  return label(text, kNameColumns) + (all > 1 ? "#" + std::to_string(number) : "");
}

std::int64_t find_word(const Beams& beams, const std::string& option, const std::string& name) {
  const auto find = [&](const std::string& text, std::int64_t number) {
    for (const bool exact : {true, false}) {
      std::int64_t left = number;
      for (std::int64_t at = 0; at < beams.length(); ++at) {
        const std::string& word = beams.words[static_cast<std::size_t>(at)].text;
        if ((exact ? word == text : in_lower_case(word) == in_lower_case(text)) && --left == 0) return at;
      }
    }
    return kAll;
  };
  if (const std::int64_t found = find(name, 1); found != kAll) return found;
  if (const std::size_t mark = name.rfind('#'); mark != std::string::npos) {
    const auto number = parse_number<std::int64_t>(name.substr(mark + 1));
    const std::int64_t found = number ? find(name.substr(0, mark), *number) : kAll;
    if (found != kAll) return found;
  }
  std::string words;
  for (const Word& word : beams.words) words += (words.empty() ? "" : " ") + word.text;
  throw UsageError(option + ": there is no word " + models::in_quotes(name) + ", expected one of " +
                   models::in_quotes(words) + ", or WORD#2 for the second of several");
}

std::vector<Beam> beams_in_view(const Beams& beams, const BeamView& view) {
  const Tensor<float, 3>& weights = beams.layers[static_cast<std::size_t>(view.layer)].weights;
  std::vector<Beam> found;
  for (const std::int64_t head : view.heads) {
    for (std::int64_t i = 0; i < beams.length(); ++i) {
      if (view.from != kAll && view.from != i) continue;
      for (const std::int64_t j : heaviest(weights, head, i, view.top)) {
        if (view.to == kAll || view.to == j) found.push_back({head, i, j, weights(head, i, j)});
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Beam& a, const Beam& b) { return a.weight > b.weight; });
  return found;
}

double share_of_top(const Beams& beams, std::int64_t layer, std::int64_t top) {
  const Tensor<float, 3>& weights = beams.layers[static_cast<std::size_t>(layer)].weights;
  double kept = 0;
  double all = 0;
  for (std::int64_t head = 0; head < beams.heads; ++head) {
    for (std::int64_t i = 0; i < beams.length(); ++i) {
      for (std::int64_t j = 0; j < beams.length(); ++j) all += static_cast<double>(weights(head, i, j));
      for (const std::int64_t j : heaviest(weights, head, i, top)) kept += static_cast<double>(weights(head, i, j));
    }
  }
  return all > 0 ? kept / all : 1;
}

}  // namespace headlight::program
