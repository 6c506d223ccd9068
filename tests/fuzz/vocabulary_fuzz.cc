// vocab.txt of any bytes: refused by a FileError, or a tokenizer whose file would be read as the same, and which takes
// any text. The first byte chooses the options, a line of === ends the vocabulary, and the text follows.
#include <string>
#include <vector>

#include "fuzz/bytes.h"
#include "headlight/models/errors.h"
#include "headlight/models/tokenizer.h"
#include "models/tokenizers/vocabulary.h"

namespace headlight::fuzz::vocabulary_fuzz {

void run(const std::uint8_t* data, std::size_t size) {
  using namespace models;
  Bytes input(data, size);
  const std::uint8_t choice = input.byte();
  TokenizerOptions options;
  options.lower_case = (choice & 1) != 0;
  options.whole_words = (choice & 2) != 0;
  try {
    const std::vector<std::string> lines = vocabulary_lines(input.until_line("==="), "fuzz");
    try {
      must(vocabulary_lines(vocabulary_text(lines, "fuzz"), "fuzz") == lines, "a vocabulary is read as written");
    } catch (const FileError&) {  // a token that ends in a second \r is in no file
    }
    const Tokenizer tokenizer(lines, options);
    must(tokenizer.size() == static_cast<std::int64_t>(lines.size()), "an id for every line");
    for (std::int64_t id = 0; id < tokenizer.size(); ++id) {
      const auto found = tokenizer.id(tokenizer.token(id));
      must(found && *found >= id && tokenizer.token(*found) == tokenizer.token(id), "the last line of a token counts");
    }
    const std::string text(input.rest());
    if (first_invalid(text) == text.size()) {
      for (const std::int64_t id : tokenizer.encode(text, 32)) {
        must(id >= 0 && id < tokenizer.size(), "ids of the vocabulary");
      }
    }
  } catch (const FileError&) {
  }
}

}  // namespace headlight::fuzz::vocabulary_fuzz
