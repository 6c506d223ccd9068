// A small model, and texts and ids drawn for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "headlight/tensor.h"
#include "models/tiny_bert.h"
#include "support/random.h"

namespace headlight::models {

// A BERT with small sizes.
inline TextEncoder tiny() {
  const test::ScratchFolder folder;
  return load(test::TinyBert().write(folder));
}

// `count` texts of up to `most` words.
inline std::vector<std::string> random_texts(test::Random& random, std::int64_t count, std::int64_t most) {
  std::vector<std::string> texts;
  for (; count > 0; --count) {
    std::string& text = texts.emplace_back();
    for (std::int64_t words = random.integer(0, most); words > 0; --words) {
      text += static_cast<char>('a' + random.integer(0, 9));
      text += random.once_in(5) ? "é, " : " ";
    }
  }
  return texts;
}

struct Ids {
  Tensor<std::int64_t, 2> ids, mask;
};

inline Ids random_ids(test::Random& random, std::int64_t rows, std::int64_t columns) {
  Ids made{Tensor<std::int64_t, 2>({rows, columns}), Tensor<std::int64_t, 2>({rows, columns})};
  for (std::int64_t& id : made.ids) id = random.integer(0, test::TinyBert::kVocabulary - 1);
  for (std::int64_t& seen : made.mask) seen = random.once_in(4) ? 0 : 1;
  return made;
}

}  // namespace headlight::models
