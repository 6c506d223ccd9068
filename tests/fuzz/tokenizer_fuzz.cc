// A text of any bytes: refused where it is not UTF-8, and else ids of the vocabulary, of which a shorter length takes
// the first. The first byte chooses the options, the second the length.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/bytes.h"
#include "headlight/models/tokenizer.h"
#include "models/tokenizers/vocabulary.h"

namespace headlight::fuzz::tokenizer_fuzz {
namespace {

const std::vector<std::string> kWords{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",    "b",
                                      "c",     "##a",   "##b",   "##c",   "ab",     "abc",  "##bc",
                                      "it",    "it's",  "'",     "don't", "e",      "é",    "É",
                                      "ß",     "ss",    "中",    "中国",  "国",     "##国", "の",
                                      "!",     "…",     "``",    "1",     "##1",    "ا",    "한",
                                      "하",    "ᄒ",    "##ᅡ",  "i̇",     "σ",      "##ς",  "mother-in-law"};

models::Tokenizer tokenizer(int choice) {
  models::TokenizerOptions options;
  options.lower_case = (choice & 1) != 0;
  options.split_ideographs = (choice & 2) != 0;
  options.whole_words = (choice & 4) != 0;
  if ((choice & 8) != 0) options.strip_accents = (choice & 16) != 0;
  return models::Tokenizer(kWords, options);
}

void check(const models::Tokenizer& words, const std::string& text, std::int64_t length) {
  const std::vector<std::int64_t> some = words.encode(text, length);
  const std::vector<std::int64_t> all = words.encode(text, static_cast<std::int64_t>(2 * text.size() + 8));
  must(some.size() >= 2 && some.size() <= static_cast<std::size_t>(length), "at most max_length ids");
  for (const std::int64_t id : all) must(id >= 0 && id < words.size(), "ids of the vocabulary");
  must(all.front() == some.front() && all.back() == some.back(), "[CLS] and [SEP] around them");
  must(some.size() <= all.size() && std::equal(some.begin(), some.end() - 1, all.begin()), "a shorter text's ids");
  must(some.size() == std::min(all.size(), static_cast<std::size_t>(length)), "as many ids as there is room for");
  std::vector<std::int64_t> appended{7};
  words.append(text, length, appended);
  must(appended.front() == 7 && std::equal(some.begin(), some.end(), appended.begin() + 1, appended.end()),
       "append() gives what encode() does");
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  static const std::vector<models::Tokenizer> tokenizers = [] {
    std::vector<models::Tokenizer> all;
    for (int choice = 0; choice < 32; ++choice) all.push_back(tokenizer(choice));
    return all;
  }();
  Bytes input(data, size);
  const auto& words = tokenizers[input.byte() % 32];
  const std::int64_t length = input.integer(2, 40);
  const std::string text(input.rest());
  if (models::first_invalid(text) == text.size()) {
    check(words, text, length);
    return;
  }
  try {
    static_cast<void>(words.encode(text, length));
    must(false, "text that is not UTF-8 is refused");
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace headlight::fuzz::tokenizer_fuzz
