// A tokenizer.json of any bytes, a line of ===, and a text: refused by a FileError, or ids that are tokens, which
// become text again. Reading it takes no more memory than twice the file and TableLimit::kBeside.
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/bytes.h"
#include "headlight/models/errors.h"
#include "headlight/text/tokenizer.h"
#include "support/heap_watch.h"
#include "text/table_limit.h"
#include "text/utf8.h"

namespace headlight::fuzz::tokenizer_json_fuzz {
namespace {

text::Tokenizer read(std::string_view json) {
  const test::HeapLimit limit(2 * json.size() + text::TableLimit::kBeside);
  return text::Tokenizer::parse(json);
}

void check(const text::Tokenizer& tokenizer, const std::string& text) {
  const bool valid = text::first_invalid(text) == text.size();
  std::vector<std::int64_t> ids;
  try {
    ids = tokenizer.encode(text);
    must(valid, "text that is not UTF-8 is refused");
    const std::vector<std::int64_t> pair = tokenizer.encode_pair(text, text);
    for (const std::int64_t id : pair) must(tokenizer.token(id).has_value(), "ids of tokens");
  } catch (const std::invalid_argument&) {  // or one that would grow beyond measure
    return;
  }
  for (const std::int64_t id : ids) {
    must(id < tokenizer.size() && tokenizer.token(id).has_value(), "ids of tokens");
    must(tokenizer.id(*tokenizer.token(id)).has_value(), "tokens that are found");
  }
  must(tokenizer.encode(text, text::SpecialTokens::without).size() <= ids.size(), "fewer ids without special tokens");
  try {
    const std::string again = tokenizer.decode(ids);
    must(text::first_invalid(again) == again.size(), "a text of UTF-8");
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes input(data, size);
  const std::string_view json = input.until_line("===");
  const std::string text(input.rest());
  try {
    check(read(json), text);
  } catch (const models::FileError&) {
  }
}

}  // namespace headlight::fuzz::tokenizer_json_fuzz
