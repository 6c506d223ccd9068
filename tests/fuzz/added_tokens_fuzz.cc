// Added tokens and a text of any bytes: refused, or ids that there are, and matches that lie one behind another. Three
// tokens, each a byte of flags and a line; then the text.
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/bytes.h"
#include "headlight/models/errors.h"
#include "headlight/models/tokenizer.h"
#include "models/tokenizers/vocabulary.h"
#include "text/added_tokens.h"

namespace headlight::fuzz::added_tokens_fuzz {
namespace {

void check_matches(const std::vector<models::AddedToken>& list, std::string_view text) {
  text::AddedTokens tokens;
  for (const models::AddedToken& token : list) {
    if (!token.content.empty()) tokens.add(token.content, {token.id, token.single_word, token.lstrip, token.rstrip});
  }
  if (tokens.sort()) return;
  text::AddedTokens::Search search(tokens, text);
  std::size_t taken = 0, count = 0;
  for (text::AddedTokens::Match match = search.next(); match.id >= 0; match = search.next()) {
    must(match.begin >= taken && match.begin <= match.end && match.end <= text.size(), "one behind another");
    taken = match.end;
    must(++count <= text.size(), "no more than there are bytes");
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  using namespace models;
  Bytes input(data, size);
  TokenizerOptions options;
  const std::uint8_t choice = input.byte();
  options.lower_case = (choice & 1) != 0;
  options.clean_text = (choice & 2) != 0;
  options.split_ideographs = (choice & 4) != 0;
  std::vector<AddedToken> list;
  for (std::int64_t id = 5; id < 8; ++id) {
    const std::uint8_t flags = input.byte();
    std::string content(input.until_line("="));
    list.push_back({.content = std::move(content),
                    .id = id,
                    .single_word = (flags & 1) != 0,
                    .lstrip = (flags & 2) != 0,
                    .rstrip = (flags & 4) != 0,
                    .normalized = (flags & 8) != 0});
  }
  const std::string text(input.rest());
  if (first_invalid(text) == text.size()) check_matches(list, text);
  options.added_tokens = list;
  try {
    const Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"}, options);
    const std::vector<std::int64_t> ids = tokenizer.encode(text, 64);
    must(ids.size() >= 2 && ids.size() <= 64, "at most max_length ids");
    for (const std::int64_t id : ids) must(id >= 0 && id < tokenizer.size(), "ids that there are");
  } catch (const FileError&) {
  } catch (const std::invalid_argument&) {
    must(first_invalid(text) != text.size(), "text that is UTF-8 is taken");
  }
}

}  // namespace headlight::fuzz::added_tokens_fuzz
